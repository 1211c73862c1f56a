"""Health checks for the platform that runs the process. They are not part of the contract.

``GET /health`` checks nothing: the process answers. ``GET /health/ready`` answers 503 if the database cannot
be reached. The middleware runs before all checks of a request, as probes send any ``Host`` and no token.
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

#: After this time without an answer, the database counts as unreachable.
TIMEOUT_SECONDS: Final = 2
#: A result is reused for this time, because anybody may send requests without a limit.
CACHE_SECONDS: Final = 1.0


class DatabaseUnreachable(ApiError):
    status: ClassVar[int] = 503
    code: ClassVar[str] = "database_unreachable"
    message: ClassVar[str] = "The database cannot be reached."


class CachedCheck:
    """Runs ``check`` in one thread at a time, and reuses the result for `CACHE_SECONDS`."""

    def __init__(self, check: Callable[[], bool]) -> None:
        self._check = check
        self._lock = threading.Lock()
        self._result = False
        self._expires_at = 0.0

    def run(self) -> bool:
        with self._lock:
            if monotonic() >= self._expires_at:
                self._result = self._check()
                self._expires_at = monotonic() + CACHE_SECONDS
            return self._result


def is_database_reachable() -> bool:
    """Return True if a new connection to the database can run a query. Uses `TIMEOUT_SECONDS`."""
    parameters: dict[str, Any] = {
        **connection.get_connection_params(),
        "connect_timeout": TIMEOUT_SECONDS,
        "tcp_user_timeout": TIMEOUT_SECONDS * 1000,
    }
    try:
        with psycopg.connect(**parameters) as new_connection:
            new_connection.execute("SELECT 1")
    except psycopg.Error as error:
        logger.warning("Not ready: %s", error)
        return False
    return True


database_check = CachedCheck(is_database_reachable)


def health(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Answer health checks (middleware)."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if request.path_info not in {"/health", "/health/ready"} or request.method not in {"GET", "HEAD"}:
            return get_response(request)
        if request.path_info == "/health/ready" and not database_check.run():
            response = error_response(DatabaseUnreachable())
        else:
            response = HttpResponse(dump_json({"status": "ok"}), content_type="application/json")
        response["Cache-Control"] = "no-store"
        # Django's middleware that sets it runs after this one.
        response["Content-Length"] = str(len(response.content))
        return response

    return middleware
