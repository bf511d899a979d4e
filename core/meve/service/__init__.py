"""Programs that run beside an application: the graph kernel, and the client of it."""
