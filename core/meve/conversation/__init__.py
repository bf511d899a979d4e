"""What a conversation is made of, whoever keeps it: turns that matter, and what was said around them."""
