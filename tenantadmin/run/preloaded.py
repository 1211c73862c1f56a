"""What the workers of the web server inherit from its main process: Django and the views.

It opens no connection and starts no thread of ours. `tenantadmin.asgi` does, in each worker.
"""

from __future__ import annotations

import os

import django
from django.urls import get_resolver

from tenantadmin.lib.core.memory import freeze_objects

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tenantadmin.settings")
django.setup()
get_resolver().url_patterns  # noqa: B018 - imports the views
freeze_objects()
