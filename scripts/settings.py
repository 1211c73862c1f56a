"""The settings of development, for tools that only read the code (the type checker)."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_DEBUG", "true")

from tenantadmin.settings import *  # noqa: F403
