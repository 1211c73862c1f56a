"""The settings of a production process, with bare views beside the real ones to compare with."""

from __future__ import annotations

from tenantadmin.settings import *  # noqa: F403

DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "bench.urls"
