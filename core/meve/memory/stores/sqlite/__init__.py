"""Keep memories in one SQLite file."""
