"""The settings of a production process, with additional bare views for comparison."""

from __future__ import annotations

from tenantadmin.settings import *  # noqa: F403

DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "bench.urls"
