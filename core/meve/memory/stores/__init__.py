"""Where memories are kept: a file of SQLite's, behind a Protocol that others can stand in for."""
