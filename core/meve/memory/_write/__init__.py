"""Add, update, delete, forget, hold and release records."""
