"""Record the turns of a conversation as memories."""
