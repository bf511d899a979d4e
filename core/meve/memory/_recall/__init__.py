"""Search one user's memories."""
