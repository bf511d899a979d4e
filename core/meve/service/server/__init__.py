"""`meve serve`: verified documents and a governed memory for other programs, by MCP and by REST."""
