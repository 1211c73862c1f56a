"""Django's backend for PostgreSQL, which asks the server whether a connection lives only if it may not."""
