"""Checks of ``manage.py check --deploy``: do servers answer, and is the configuration whole."""

from __future__ import annotations

import difflib
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import psycopg
import redis
from django.conf import settings
from django.core import checks, mail

from tenantadmin.lib.http.health import ask_database, ask_redis, ask_store
from tenantadmin.lib.objectstore import StoreError
from tenantadmin.settings import env

_SECONDS: Final = 5
#: A variable whose name is this similar to a known name is a misspelt one.
_SIMILARITY: Final = 0.85
#: Kubernetes gives these to every container, for each Service.
_OF_KUBERNETES: Final = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT.*|PORT|PORT_[0-9].*)")
#: Variables that a deployment sets, and what happens without them.
_NEEDED: Final = {
    "OBJECT_STORE_URL": (
        "Each machine and container keeps raw logs, summaries and terms of service in files of its own.",
        "Set it to s3://bucket/prefix, or to file:///directory if all processes see this directory.",
    ),
    "PUBLIC_BASE_URL": (
        "Links in mails and the issuer of access tokens name this machine.",
        "Set it to the address that people and Gateways use, such as https://tenants.example.com.",
    ),
}


@checks.register(deploy=True)
def check_servers(**_: Any) -> list[checks.CheckMessage]:
    """Connect to the servers that are configured. Writes and sends nothing."""
    asked: list[tuple[str, str, str, Callable[[], None], type[Exception]]] = [
        (
            "E101",
            "The object store",
            "Check OBJECT_STORE_URL and the AWS variables; manage.py create_bucket makes the bucket.",
            partial(ask_store, seconds=_SECONDS),
            StoreError,
        ),
        ("E102", "Redis", "Check REDIS_URL.", partial(ask_redis, seconds=_SECONDS), redis.RedisError),
        (
            "E104",
            "The database",
            "Check DATABASE_URL.",
            partial(ask_database, seconds=_SECONDS),
            psycopg.Error,
        ),
    ]
    if settings.MAGIC_LINKS_ENABLED:
        asked.append(("E103", "The mail server", "Check EMAIL_URL.", _ask_mail_server, OSError))
    if settings.SQL_OPTIONS.service_url:
        hint = "Check SQL_SERVICE_URL, and the log of the SQL service."
        asked.append(("E105", "The SQL service", hint, _ask_sql_service, OSError))
    found: list[checks.CheckMessage] = []
    for code, server, hint, ask, error_type in asked:
        try:
            ask()
        except error_type as error:
            message = f"{server} cannot be reached: {str(error).strip()}"
            found.append(checks.Error(message, hint=hint, id=f"tenantadmin.{code}"))
    return found


def _ask_mail_server() -> None:
    with mail.get_connection(timeout=_SECONDS):
        pass


def _ask_sql_service() -> None:
    """Raise OSError unless queries work there."""
    address = f"{settings.SQL_OPTIONS.service_url}/health"
    try:
        urllib.request.urlopen(address, timeout=_SECONDS).close()  # noqa: S310  # the settings allow only http
    except urllib.error.HTTPError as error:
        error.close()
        raise


@checks.register(deploy=True)
def check_variables(**_: Any) -> list[checks.CheckMessage]:
    """Find variables that a deployment needs and does not set, and variables that seem misspelt."""
    given = {name.removesuffix("_FILE") for name, value in os.environ.items() if value}
    found: list[checks.CheckMessage] = [
        checks.Warning(f"{name} is not set. {effect}", hint=cure, id="tenantadmin.W101")
        for name, (effect, cure) in _NEEDED.items()
        if name not in given
    ]
    known = env.dump()
    for name in sorted(given - known.keys()):
        if not _OF_KUBERNETES.fullmatch(name):
            for similar in difflib.get_close_matches(name, known, n=1, cutoff=_SIMILARITY):
                message = f"The variable {name} is not read. Do you mean {similar}?"
                found.append(checks.Warning(message, hint="Rename or remove it.", id="tenantadmin.W102"))
    return found
