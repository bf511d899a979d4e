"""Back ends of a memory: SQLite, and the protocol that others implement."""
