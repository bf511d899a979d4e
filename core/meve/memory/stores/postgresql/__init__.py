"""Keep memories in a PostgreSQL database."""
