"""Answers for probes of the machine that runs a process. Operational: no part of the contract.

``GET /health``: the process answers; nothing is looked at. ``GET /health/ready``: the database can be reached
too, else 503. Both are answered ahead of everything else, since probes name any ``Host``, and carry no token.
"""

from __future__ import annotations

import logging
import threading
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Final

import psycopg
from django.db import connection
from django.http import HttpResponse

from tenantadmin.core.errors import ApiError
from tenantadmin.core.rendering import dump_json
from tenantadmin.http.middleware import error_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

logger = logging.getLogger(__name__)

#: Over this the database counts as gone.
TIMEOUT_SECONDS: Final = 2
#: Whoever asks more often than this hears the answer before: anybody may ask.
REMEMBERED_SECONDS: Final = 1.0


class DatabaseUnreachable(ApiError):
    status: ClassVar[int] = 503
    code: ClassVar[str] = "database_unreachable"
    message: ClassVar[str] = "The database cannot be reached."


class Probe:
    """Asks ``question`` one at a time, and remembers the answer for a moment."""

    def __init__(self, question: Callable[[], bool]) -> None:
        self._question = question
        self._lock = threading.Lock()
        self._answer = False
        self._until = 0.0

    def ask(self) -> bool:
        with self._lock:
            if monotonic() >= self._until:
                self._answer = self._question()
                self._until = monotonic() + REMEMBERED_SECONDS
            return self._answer


def is_database_reachable() -> bool:
    """Tell whether the database answers on a connection of its own, within `TIMEOUT_SECONDS` each way."""
    parameters: dict[str, Any] = {
        **connection.get_connection_params(),
        "connect_timeout": TIMEOUT_SECONDS,
        "tcp_user_timeout": TIMEOUT_SECONDS * 1000,
    }
    try:
        with psycopg.connect(**parameters) as own:
            own.execute("SELECT 1")
    except psycopg.Error as error:
        logger.warning("Not ready: %s", error)
        return False
    return True


database = Probe(is_database_reachable)


def health(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Answer probes (middleware)."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if request.path_info not in {"/health", "/health/ready"} or request.method not in {"GET", "HEAD"}:
            return get_response(request)
        if request.path_info == "/health/ready" and not database.ask():
            response = error_response(DatabaseUnreachable())
        else:
            response = HttpResponse(dump_json({"status": "ok"}), content_type="application/json")
        response["Cache-Control"] = "no-store"
        # The middleware that sets it comes later.
        response["Content-Length"] = str(len(response.content))
        return response

    return middleware
