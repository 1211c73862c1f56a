"""The separate SQL service gives the same results as a local engine. Its errors and its restart."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
import urllib3

from logs.sql import sandbox
from logs.sql.engines.remote import PATH, Query, RemoteEngine, encode_query
from logs.sql.protocol import (
    Cancellation,
    EngineUnavailable,
    Limits,
    LogSource,
    QueryCancelled,
    QueryFailed,
    QueryInterrupted,
    QueryRejected,
    QueryResult,
    QueryTimeout,
)
from logs.sql.service import SqlService, make_application
from logs.sql.source import make_source
from tenantadmin.conf.environment import ConfigurationError
from tenantadmin.lib.objectstore import LocalStore
from tenantadmin.lib.objectstore.local_copies import LocalCopies
from tests.conftest import ApiClient
from tests.environment import environment
from tests.ports import reserved_port

if TYPE_CHECKING:
    from logs.sql.engines.local import LocalEngine
    from tests.factories import World

_ROOT = Path(__file__).resolve().parents[3]
_SECRET = "0123456789abcdef" * 2
_ENDLESS = "SELECT sum(hash(i)) FROM range(1000000000000) t(i)"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Service:
    """A running SQL service over the objects in ``store``."""

    def __init__(self, directory: Path, *, port: int) -> None:
        self.store = directory / "objects"
        self.store.mkdir(exist_ok=True)
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "tenantadmin.run.serve.web", "--workers", "1"]
        # The service needs no other variable and no secret of the web processes.
        environment = {
            "PATH": os.environ["PATH"],
            "OBJECT_STORE_URL": self.store.as_uri(),
            "VAR_DIR": str(directory),
            "SQL_SERVICE_SECRET": _SECRET,
            "SQL_WARM_PROCESSES": "1",
            **{name: value for name, value in os.environ.items() if name.startswith("COV")},
        }
        self.process = subprocess.Popen(
            [*command, "--port", str(port), "logs.sql.asgi:application"],
            cwd=_ROOT,
            env=environment,
            start_new_session=True,
        )
        _wait_until(self._answers)

    def _answers(self) -> bool:
        assert self.process.poll() is None
        try:
            return self.running() == 0
        except urllib3.exceptions.HTTPError:
            return False

    def running(self) -> int:
        """Return the number of queries that are running."""
        return int(urllib3.request("GET", f"{self.url}/health", retries=False).json()["running"])

    def kill(self) -> None:
        """Kill all processes of the service: granian's worker does not end with granian."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with reserved_port() as port:
        service = Service(tmp_path_factory.mktemp("service"), port=port)
    yield service
    service.stop()


@pytest.fixture
def remote(service: Service) -> Iterator[RemoteEngine]:
    engine = RemoteEngine(url=service.url, secret=_SECRET)
    yield engine
    engine.close()


@pytest.fixture
def stored_log(service: Service, log: LogSource, request: pytest.FixtureRequest) -> LogSource:
    """The log of three days in the store of the service."""
    tenant = request.node.name.replace("/", "-")
    files = []
    for day in log.days:
        key = f"{tenant}/compacted/day={day.day}/build.parquet"
        (service.store / key).parent.mkdir(parents=True, exist_ok=True)
        (service.store / key).write_bytes(Path(day.files[0]).read_bytes())
        files.append((day.day, key))
    copies = LocalCopies(service.store / "unused", max_bytes=0)
    return make_source(LocalStore(service.store), copies=copies, tenant=tenant, files=files)


def _run(engine: Any, source: LogSource, statement: str, **limits: Any) -> QueryResult:
    result: QueryResult = engine.execute(
        source=source, statement=statement, limits=dataclasses.replace(Limits(), **limits)
    )
    return result


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT day, count(*) AS n, list(userName ORDER BY 1) AS users FROM proxy_logs GROUP BY 1 ORDER BY 1",
        "SELECT * FROM proxy_logs WHERE day = '2026-01-02' ORDER BY timestamp",
        "SELECT 1 AS a, 2 AS a, true AS b, 'x'::BLOB AS c, uuid() = uuid() AS d, INTERVAL 1 MONTH AS e",
        "SELECT 170141183460469231731687303715884105727::HUGEINT AS h, {'k': [DATE '2026-01-01']} AS s",
        "SELECT userName FROM proxy_logs WHERE false",
        "SELECT i FROM range(100000) t(i)",
    ],
)
def test_results_are_the_same_as_of_the_local_engine(
    remote: RemoteEngine, engine: LocalEngine, stored_log: LogSource, statement: str
) -> None:
    actual, expected = _run(remote, stored_log, statement), _run(engine, stored_log, statement)
    assert actual.columns == expected.columns
    assert (actual.row_count, actual.truncated) == (expected.row_count, expected.truncated)
    assert [batch.to_pylist() for batch in actual.batches if batch.num_rows] == [
        batch.to_pylist() for batch in expected.batches if batch.num_rows
    ]


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("DROP VIEW proxy_logs", QueryRejected, "DROP is not allowed"),
        ("SELECT '\ud800'", QueryRejected, r"Remove it\. \(line 1, column 9\)"),
        ("SELECT usrName FROM proxy_logs", QueryFailed, 'Candidate bindings: "userName"'),
        (_ENDLESS, QueryTimeout, r"took longer than 0\.5 seconds\. Narrow the days"),
    ],
)
def test_errors_keep_their_class_and_message(
    remote: RemoteEngine, stored_log: LogSource, statement: str, error: type[QueryFailed], message: str
) -> None:
    with pytest.raises(error, match=message):
        _run(remote, stored_log, statement, seconds=0.5 if statement == _ENDLESS else 15)


def test_concurrent_callers_get_their_own_results(remote: RemoteEngine, stored_log: LogSource) -> None:
    with ThreadPoolExecutor(8) as callers:
        results = list(callers.map(lambda n: _run(remote, stored_log, f"SELECT {n} AS n"), range(24)))
    assert [result.batches[0].to_pylist() for result in results] == [[{"n": n}] for n in range(24)]


def test_a_query_is_cancelled_when_its_caller_disconnects(service: Service, stored_log: LogSource) -> None:
    query = Query.over(stored_log, _ENDLESS, Limits(seconds=600))
    body = encode_query(query)
    head = f"POST {PATH} HTTP/1.1\r\nHost: sql\r\nAuthorization: Bearer {_SECRET}\r\n"
    with socket.create_connection(("127.0.0.1", service.port)) as caller:
        caller.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        _wait_until(lambda: service.running() == 1)
    _wait_until(lambda: service.running() == 0)


def test_a_cancelled_query_ends_in_the_service_too(
    service: Service, remote: RemoteEngine, stored_log: LogSource
) -> None:
    cancellation = Cancellation()
    with ThreadPoolExecutor(1) as caller:
        running = caller.submit(
            remote.execute,
            source=stored_log,
            statement=_ENDLESS,
            limits=Limits(seconds=600),
            cancellation=cancellation,
        )
        _wait_until(lambda: service.running() == 1)
        cancellation.cancel()
        with pytest.raises(QueryCancelled):
            running.result(30)
    _wait_until(lambda: service.running() == 0)
    assert _run(remote, stored_log, "SELECT 1").row_count == 1


def test_a_wrong_secret_is_refused_and_logged(
    service: Service, stored_log: LogSource, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = RemoteEngine(url=service.url, secret="x" * 32)
    with pytest.raises(EngineUnavailable):
        _run(stranger, stored_log, "SELECT 1")
    stranger.close()
    assert "The SQL service refuses SQL_SERVICE_SECRET" in caplog.text


def test_positions_are_read_by_the_service_too(remote: RemoteEngine, stored_log: LogSource) -> None:
    source = dataclasses.replace(stored_log, has_positions=True)
    result = _run(remote, source, "SELECT max(_row) AS last FROM proxy_logs")
    assert [row for batch in result.batches for row in batch.to_pylist()] == [{"last": 2}]


def test_a_file_of_another_tenant_is_not_read(service: Service, stored_log: LogSource) -> None:
    foreign = Query("other", (("2026-01-01", stored_log.keys[0]),), "SELECT 1", Limits())
    answer = urllib3.request(
        "POST",
        service.url + PATH,
        body=encode_query(foreign),
        headers={"Authorization": f"Bearer {_SECRET}"},
    )
    assert answer.status == 422


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/", b"", 404),
        ("GET", PATH, b"", 404),
        ("POST", PATH, b"no json", 422),
        ("POST", PATH, b"{}", 422),
        ("POST", PATH, b" " * (17 << 20), 413),
    ],
)
def test_invalid_requests_are_refused(
    service: Service, method: str, path: str, body: bytes, status: int
) -> None:
    headers = {"Authorization": f"Bearer {_SECRET}"}
    answer = urllib3.request(method, service.url + path, body=body, headers=headers)
    assert answer.status == status


def test_a_query_answers_500_if_the_service_cannot_be_reached(
    world: World, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests import factories

    engine = RemoteEngine(url=f"http://127.0.0.1:{_free_port()}", secret=_SECRET)
    monkeypatch.setattr("logs.queries.get_engine", lambda: engine)
    answer = ApiClient(factories.sign_in(world.owner)).post(
        f"/tenants/{world.tenant.pk}/query", {"sql": "SELECT 1 AS a"}
    )
    assert (answer.status_code, answer.json()["error"]) == (500, "internal_error")


def test_the_health_says_that_the_disk_was_full_and_metrics_count(tmp_path: Path) -> None:
    port = _free_port()
    variables = {
        "SQL_SERVICE_SECRET": _SECRET,
        "OBJECT_STORE_URL": tmp_path.as_uri(),
        "VAR_DIR": str(tmp_path),
        "METRICS_ADDRESS": f"127.0.0.1:{port}",
    }
    with environment(variables):
        application = make_application()
    missing = sandbox.missing_restrictions()
    health = {"status": "ok", "running": 0, "diskFullAt": None, "missing": missing}
    assert _get(application, "/health") == (200, health)
    application._copies.full_at = datetime(2026, 11, 21, 2, 45, 7, 123_000, tzinfo=UTC)
    assert _get(application, "/health") == (200, {**health, "diskFullAt": "2026-11-21T02:45:07.123Z"})
    scraped = urllib3.request("GET", f"http://127.0.0.1:{port}/metrics").data.decode()
    assert "\ntenantadmin_sql_running_queries 0.0\n" in scraped
    assert "\ntenantadmin_full_disks_total " in scraped
    assert f"\ntenantadmin_sql_missing_restrictions {float(len(missing))}\n" in scraped
    application._local.close()


def test_a_service_whose_queries_fail_is_not_healthy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe must not send callers to it. The process itself lives, and a restart may not help."""
    with environment({"SQL_SERVICE_SECRET": _SECRET, "OBJECT_STORE_URL": tmp_path.as_uri()}):
        application = make_application()
    monkeypatch.setattr("logs.sql.engines.pool._PROGRAM", "raise SystemExit")
    status, body = _get(application, "/health")
    assert (status, body["status"], body["running"]) == (503, "queries fail", 0)
    assert _get(application, "/health/live") == (200, {})


def test_a_killed_query_process_may_be_tried_again(
    service: Service, remote: RemoteEngine, stored_log: LogSource
) -> None:
    with ThreadPoolExecutor(1) as caller:
        running = caller.submit(_run, remote, stored_log, _ENDLESS, seconds=600)
        _wait_until(lambda: service.running() == 1)

        def kill_the_busiest() -> bool:
            children = psutil.Process(service.process.pid).children(recursive=True)
            busy = [child for child in children if sum(child.cpu_times()[:2]) > 0.5 and not child.children()]
            for child in busy:
                child.kill()
            return bool(busy)

        _wait_until(kill_the_busiest)
        with pytest.raises(QueryInterrupted):
            running.result(30)
    assert _run(remote, stored_log, "SELECT 1").row_count == 1


def _get(application: SqlService, path: str) -> Any:
    """Return the status and the JSON body of the answer, without a server."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(application({"type": "http", "method": "GET", "path": path, "headers": []}, receive, send))
    return sent[0]["status"], json.loads(sent[1]["body"])


def test_queries_run_again_after_the_service_restarted(tmp_path: Path) -> None:
    empty = LogSource("empty", ())
    with reserved_port() as port:
        service = Service(tmp_path, port=port)
    remote = RemoteEngine(url=service.url, secret=_SECRET)
    try:
        assert _run(remote, empty, "SELECT 1 AS n").row_count == 1
        with ThreadPoolExecutor(1) as caller:
            running = caller.submit(_run, remote, empty, _ENDLESS, seconds=600)
            _wait_until(lambda: service.running() == 1)
            service.kill()
            with pytest.raises(EngineUnavailable):
                running.result()
        service = Service(tmp_path, port=service.port)
        assert _run(remote, empty, "SELECT 2 AS n").row_count == 1
    finally:
        remote.close()
        service.stop()


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({}, "SQL_SERVICE_SECRET: Set it to 32 random characters"),
        ({"SQL_SERVICE_SECRET": "short"}, "SQL_SERVICE_SECRET: Set it to 32 random characters"),
        ({"SQL_SERVICE_SECRET": _SECRET}, "OBJECT_STORE_URL: Set it to file:///directory or s3://"),
        ({"SQL_SERVICE_SECRET": _SECRET, "OBJECT_STORE_URL": "/dir"}, "OBJECT_STORE_URL: Set it to file://"),
    ],
)
def test_a_service_without_its_settings_does_not_start(variables: dict[str, str], message: str) -> None:
    with environment(variables), pytest.raises(ConfigurationError, match=message):
        make_application()
