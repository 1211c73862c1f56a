"""A separate SQL service, which runs the queries of web processes that have ``SQL_SERVICE_URL``.

An ASGI application without a database. It uses only the storages of Django. Its only secrets are
``SQL_SERVICE_SECRET`` and the object store's. Start it with
``python -m tenantadmin.run.serve.web --workers 1 logs.sql.asgi:application`` (docs/operating.md).
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging.config
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from prometheus_client import REGISTRY, CollectorRegistry, Gauge, start_http_server

from logs.sql.engines import remote
from logs.sql.engines.choosing import engine_from
from logs.sql.engines.local import LocalEngine
from logs.sql.options import options_from
from logs.sql.protocol import Cancellation, EngineUnavailable, QueryCancelled
from logs.sql.sandbox import missing_restrictions
from logs.sql.source import make_source
from tenantadmin.conf.environment import Environment
from tenantadmin.lib.core import metrics
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.log_lines import logging_config
from tenantadmin.lib.core.probes import Probes
from tenantadmin.lib.core.request_context import REQUEST_ID_HEADER, begin_request
from tenantadmin.lib.core.timestamps import format_timestamp
from tenantadmin.lib.objectstore import InvalidKey, ObjectStore, open_store
from tenantadmin.lib.objectstore.local_copies import LocalCopies

if TYPE_CHECKING:
    from logs.sql.protocol import Engine, QueryResult

    Receive = Callable[[], Awaitable[dict[str, Any]]]
    Send = Callable[[dict[str, Any]], Awaitable[None]]

logger = logging.getLogger(__name__)

_JSON: Final = "application/json"

#: Enough for a statement and the object keys of a long history.
_MAX_BODY_BYTES: Final = 16 << 20

#: A query of `/health` that takes longer has failed.
_CHECK_SECONDS: Final = 4.0

#: Threads besides those for running and waiting queries. They refuse the queries that exceed the queue.
_EXTRA_THREADS: Final = 8


class SqlService:
    """The ASGI application. ``POST /execute`` runs one query.

    ``GET /health`` runs one too, and answers 503 if that fails. Its body is ``{status, running, diskFullAt,
    missing}``: ``running`` is the number of queries, ``diskFullAt`` when the disk was last too full for a
    copy of a file, or null, and ``missing`` names restrictions that the kernel lacks. ``GET /health/live``
    answers 200 while the process does.
    """

    def __init__(
        self,
        *,
        engine: Engine,
        local: LocalEngine,
        store: ObjectStore,
        copies: LocalCopies,
        secret: str,
        threads: int,
    ) -> None:
        self._engine = engine
        self._local = local
        self._store = store
        self._copies = copies
        self._credentials = f"Bearer {secret}".encode()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="query")
        self._checks = Probes({"query": self._check}, deadline=_CHECK_SECONDS)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        match scope["method"], scope["path"]:
            case "GET", "/health":
                checked = await asyncio.to_thread(self._checks.ask)
                await self._answer_health(send, is_working=checked["query"] is not None)
            case "GET", "/health/live":
                await _answer(send, 200, b"{}")
            case "POST", remote.PATH:
                await self._execute(scope, receive, send)
            case _:
                await _answer(send, 404, b"{}")

    def _check(self) -> bool:
        self._local.check(seconds=_CHECK_SECONDS)
        return True

    async def _answer_health(self, send: Send, *, is_working: bool) -> None:
        full_at = self._copies.full_at
        health = {
            "status": "ok" if is_working else "queries fail",
            "running": self._local.running,
            "diskFullAt": full_at and format_timestamp(full_at),
            "missing": missing_restrictions(),
        }
        await _answer(send, 200 if is_working else 503, json.dumps(health).encode())

    async def _execute(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        credentials = dict(scope["headers"]).get(b"authorization", b"")
        if not hmac.compare_digest(credentials, self._credentials):
            await _answer(send, 401, b"{}")
            return
        body = await _read(receive)
        if body is None:
            await _answer(send, 413, b"{}")
            return
        cancellation = Cancellation()
        loop = asyncio.get_running_loop()
        request_id = dict(scope["headers"]).get(REQUEST_ID_HEADER.lower().encode(), b"").decode("latin-1")
        running: asyncio.Future[Any] = loop.run_in_executor(
            self._threads, self._run, request_id, body, cancellation
        )
        disconnected: asyncio.Future[Any] = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            await asyncio.wait([running, disconnected], return_when=asyncio.FIRST_COMPLETED)
        finally:
            cancellation.cancel()
            disconnected.cancel()
        status, answer, media_type = await running
        await _answer(send, status, answer, media_type)

    def _run(self, request_id: str, body: bytes, cancellation: Cancellation) -> tuple[int, bytes, str]:
        """Run one query in a thread. Return the status, body and content type of the answer."""
        begin_request(request_id)
        try:
            return 200, remote.encode_result(self._query(body, cancellation)), remote.RESULT_TYPE
        except QueryCancelled:
            # The caller has disconnected and does not get this answer.
            return 503, b"{}", _JSON
        except (remote.InvalidMessage, InvalidKey, ValueError) as error:
            logger.warning("Invalid request: %s", error)
            return 422, b"{}", _JSON
        except ApiError as error:
            if error.status in remote.ERROR_STATUSES:
                return error.status, remote.encode_error(error), _JSON
            if not isinstance(error, EngineUnavailable):
                logger.exception("A query failed")
            return 500, b"{}", _JSON
        except Exception:
            logger.exception("A query failed")
            return 500, b"{}", _JSON

    def _query(self, body: bytes, cancellation: Cancellation) -> QueryResult:
        query = remote.decode_query(body)
        source = make_source(
            self._store,
            copies=self._copies,
            tenant=query.tenant,
            files=query.files,
            has_positions=query.has_positions,
            sizes=query.sizes,
            engine=query.engine,
        )
        return self._engine.execute(
            source=source, statement=query.statement, limits=query.limits, cancellation=cancellation
        )


async def _read(receive: Receive) -> bytes | None:
    """Return the body of a request, or None if it is too large."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > _MAX_BODY_BYTES:
            return None
        if not message.get("more_body"):
            return bytes(body)


async def _wait_for_disconnect(receive: Receive) -> None:
    """Wait until the caller closes the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _answer(send: Send, status: int, body: bytes, media_type: str = _JSON) -> None:
    headers = [(b"content-type", media_type.encode()), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def make_application() -> SqlService:
    """Return the application, configured by environment variables.

    Raises:
        ConfigurationError: variables are missing or invalid.
    """
    env = Environment()
    store_url = env.object_store("OBJECT_STORE_URL", "", required=True)
    options = options_from(env, store_url=store_url, needs_secret=True)
    var_dir = env.path("VAR_DIR", Path("var")).resolve()
    log_format = env.log_format("LOG_FORMAT", "text" if env.bool("DJANGO_DEBUG", default=False) else "json")
    log_level = env.log_level("LOG_LEVEL", logging.INFO)
    metrics_address = env.listening_address("METRICS_ADDRESS", "")
    env.seal()
    if not settings.configured:
        # The object store is a Django storage, which reads settings. Their defaults are right.
        settings.configure()
    logging.config.dictConfig(logging_config(level=log_level, is_json=log_format == "json"))
    engine = LocalEngine.from_options(options)
    choosing = engine_from(options, engine)
    if metrics_address:
        _serve_metrics(*metrics_address, engine=engine)
    return SqlService(
        engine=choosing,
        local=engine,
        store=open_store(store_url),
        copies=LocalCopies(var_dir / "cache", max_bytes=options.cache_bytes),
        secret=options.service_secret,
        threads=options.slots + options.queue + _EXTRA_THREADS,
    )


def _serve_metrics(host: str, port: int, *, engine: LocalEngine) -> None:
    """Serve the counts of this process, and how many queries run, for Prometheus."""
    metrics.declare()
    registry = CollectorRegistry()
    registry.register(REGISTRY)
    running = Gauge("tenantadmin_sql_running_queries", "Queries that run", registry=registry)
    running.set_function(lambda: engine.running)
    missing = Gauge(
        "tenantadmin_sql_missing_restrictions",
        "Restrictions of query processes that the kernel lacks",
        registry=registry,
    )
    missing.set(len(missing_restrictions()))
    try:
        start_http_server(port, addr=host, registry=registry)
    except OSError:
        # Queries are more important than metrics.
        logger.exception("METRICS_ADDRESS %s:%d cannot be served", host, port)
