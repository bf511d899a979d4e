"""Classify what is added: tags, and facts stated in a turn."""
