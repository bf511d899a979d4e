"""Keep the messages of conversations, word for word."""
