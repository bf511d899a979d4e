"""Expire, prune, merge, summarise and archive records."""
