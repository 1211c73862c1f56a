"""The engine of another process or machine, `logs.sql.service`, over HTTP. Implements `protocol.Engine`."""

from __future__ import annotations

import http
import logging
import time
from typing import TYPE_CHECKING, Final

import urllib3
from urllib3.exceptions import HTTPError, ProtocolError, ReadTimeoutError

from logs.sql import guard, transfer
from logs.sql.errors import EngineUnavailable, QueryRejected, QueryTimeout
from logs.sql.messages import with_place

if TYPE_CHECKING:
    from logs.sql.protocol import Limits, LogSource, QueryResult

logger = logging.getLogger(__name__)

#: Seconds in which the service must accept a connection. It accepts them while all its slots are taken.
_CONNECT_SECONDS: Final = 2.0

#: The service answers at the deadline by itself. This much later nobody waits for it any more.
_GRACE_SECONDS: Final = 2.0

#: Tries to connect, with rising pauses (0.2 s, 0.4 s): a service that is being replaced is back by then.
_CONNECT_TRIES: Final = 3

#: Within this time a failure means that the kept connection was closed already.
_STALE_SECONDS: Final = 0.1

#: The Arrow stream may exceed the byte cap by its own framing.
_FRAMING_BYTES: Final = 8 << 20


class RemoteEngine:
    """Sends queries to the SQL service at ``url``, over up to ``connections`` kept ones.

    Closing a connection, which happens when this process gives up or ends, ends the query there.
    """

    def __init__(self, *, url: str, secret: str, connections: int = 64) -> None:
        self._url = url + transfer.PATH
        self._headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        self._pool = urllib3.PoolManager(maxsize=connections, retries=False)

    def execute(self, *, source: LogSource, statement: str, limits: Limits) -> QueryResult:
        """See `protocol.Engine.execute`."""
        try:
            guard.check_text(statement)
        except guard.Refused as refusal:
            raise QueryRejected(with_place(refusal.message, statement, refusal.position)) from None
        query = transfer.Query.over(source, statement, limits)
        try:
            status, body = self._ask(query)
            if status == http.HTTPStatus.OK:
                return transfer.decode_result(body)
            if status == http.HTTPStatus.BAD_REQUEST:
                raise transfer.decode_failure(body)
            if status == http.HTTPStatus.UNAUTHORIZED:
                logger.error("The SQL service refuses SQL_SERVICE_SECRET: set the same one there and here")
            else:
                logger.error("The SQL service answered %s: %s", status, body[:500])
        except transfer.BadTransfer:
            logger.exception("The SQL service answered with something else than a result")
        except ReadTimeoutError:
            logger.warning("The SQL service overran the deadline")
            raise QueryTimeout(f"The query took longer than {limits.seconds:g} seconds.") from None
        except HTTPError:
            logger.exception("The SQL service cannot be reached")
        raise EngineUnavailable

    def close(self) -> None:
        """Close the kept connections."""
        self._pool.clear()

    def _ask(self, query: transfer.Query) -> tuple[int, bytes]:
        started = time.monotonic()
        body = transfer.encode_query(query)
        try:
            return self._send(body, query.limits, started)
        except ProtocolError as error:
            # A kept connection that the service has closed meanwhile fails at once: nothing was heard.
            if time.monotonic() - started > _STALE_SECONDS:
                raise
            logger.info("Asking the SQL service again: %s", error)
            return self._send(body, query.limits, started)

    def _send(self, body: bytes, limits: Limits, started: float) -> tuple[int, bytes]:
        left = limits.seconds + _GRACE_SECONDS - (time.monotonic() - started)
        response = self._pool.request(
            "POST",
            self._url,
            body=body,
            headers=self._headers,
            timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=left),
            retries=urllib3.Retry(
                total=None,
                connect=_CONNECT_TRIES,
                # A query that was heard is not asked again: it may be what ended the service.
                read=False,
                redirect=False,
                status=False,
                other=False,
                backoff_factor=0.1,
            ),
            preload_content=False,
        )
        try:
            data = _read_bounded(response, limits.max_bytes + _FRAMING_BYTES)
        except BaseException:
            response.close()
            raise
        response.release_conn()
        return response.status, data


def _read_bounded(response: urllib3.BaseHTTPResponse, most: int) -> bytes:
    data = response.read(most)
    if response.read(1):
        raise transfer.BadTransfer("a result larger than a result may be")
    return data
