"""Django's PostgreSQL backend (``ENGINE``) with a health check that costs no round trip."""
