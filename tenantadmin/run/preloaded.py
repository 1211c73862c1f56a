"""What the workers of the web server inherit from its main process: Django and the views.

It opens no connection and starts no thread of ours. `tenantadmin.asgi` does, in each worker.
"""

from __future__ import annotations

import gc
import os

import django
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tenantadmin.settings")
django.setup()
get_resolver().url_patterns  # noqa: B018 - imports the views
# The collector would write to each object, and so copy the memory that the workers share.
gc.freeze()
