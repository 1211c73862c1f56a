"""Checks of ``manage.py check --deploy``: do the configured servers answer."""

from __future__ import annotations

from typing import Any, Final

import redis
from django.conf import settings
from django.core import checks, mail

from tenantadmin.lib.objectstore import StoreError, default_store

_SECONDS: Final = 5


@checks.register(deploy=True)
def check_servers(**_: Any) -> list[checks.CheckMessage]:
    """Connect to the object store, Redis and the mail server. Writes and sends nothing."""
    found: list[checks.CheckMessage] = []
    try:
        default_store().check_reachable(seconds=_SECONDS)
    except StoreError as error:
        hint = "Check OBJECT_STORE_URL and the AWS variables; manage.py create_bucket makes the bucket."
        found.append(
            checks.Error(f"The object store cannot be reached: {error}", hint=hint, id="tenantadmin.E101")
        )
    limits: Any = {"socket_timeout": _SECONDS, "socket_connect_timeout": _SECONDS}
    try:
        with redis.Redis.from_url(settings.REDIS_URL, **limits) as client:
            client.ping()
    except redis.RedisError as error:
        found.append(
            checks.Error(f"Redis cannot be reached: {error}", hint="Check REDIS_URL.", id="tenantadmin.E102")
        )
    if settings.MAGIC_LINKS_ENABLED:
        try:
            with mail.get_connection(timeout=_SECONDS):
                pass
        except OSError as error:
            found.append(
                checks.Error(
                    f"The mail server cannot be reached: {error}",
                    hint="Check EMAIL_URL.",
                    id="tenantadmin.E103",
                )
            )
    return found
