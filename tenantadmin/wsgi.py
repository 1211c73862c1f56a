"""Django's WSGI application. `tenantadmin.asgi` is what granian serves."""

from __future__ import annotations

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from tenantadmin.lib.database.connections import limit_connections
from tenantadmin.run import telemetry

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tenantadmin.settings")

limit_connections(
    statement_seconds=settings.DATABASE_STATEMENT_SECONDS,
    idle_transaction_seconds=settings.DATABASE_IDLE_SECONDS,
)

telemetry.start()
application = get_wsgi_application()
