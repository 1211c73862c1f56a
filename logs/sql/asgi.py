"""The ASGI application of the SQL service, made from environment variables when a server imports it."""

from __future__ import annotations

from logs.sql.service import make_application

application = make_application()
