"""Query processes that are kept for their tenant: how long, for whom, and that no query leaves anything."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import psutil
import pytest

from logs.sql import child, wire
from logs.sql.engines.local import LocalEngine
from logs.sql.engines.pool import Lease, LeaseKey, Leases, ProcessPool
from logs.sql.options import LeaseOptions
from logs.sql.protocol import Limits, LogSource, QueryFailed, QueryRejected, QueryTimeout
from logs.sql.view import LogView
from tests.logs.sql.statements import ALLOWED
from tests.logs.sql.support import write_day

if TYPE_CHECKING:
    from logs.sql.engines.pool import QueryProcess

_PROCESS_LIMITS = wire.ProcessLimits(seconds=15, memory_bytes=1 << 30, threads=2, idle_seconds=60)
_OPTIONS = LeaseOptions(processes=4, queries=3, idle_seconds=60, processor_seconds=10, growth_bytes=256 << 20)


class FakeProcess:
    """A process whose numbers a test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.bytes = 1000
        self.alive = True
        self.ended = False

    def used_seconds(self) -> float:
        return self.seconds

    def resident_bytes(self) -> int:
        return self.bytes

    def is_alive(self) -> bool:
        return self.alive

    def end(self) -> None:
        self.ended = True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def leases(clock: Clock) -> Leases:
    return Leases(_OPTIONS, clock=clock)


def _key(tenant: str = "a", **changes: Any) -> LeaseKey:
    key = LeaseKey(tenant, f"/logs/{tenant}", device=1, inode=2, limits=_PROCESS_LIMITS)
    return dataclasses.replace(key, **changes)


def _lease(key: LeaseKey | None) -> tuple[Lease, FakeProcess]:
    process: Any = FakeProcess()
    return Lease(key, process), process


class TestLeases:
    def test_the_tenants_next_query_gets_the_process_that_was_used_last(self, leases: Leases) -> None:
        (first, _), (second, _) = _lease(_key()), _lease(_key())
        leases.give_back(first)
        leases.give_back(second)
        assert [leases.take(_key()), leases.take(_key()), leases.take(_key())] == [second, first, None]

    @pytest.mark.parametrize(
        "other",
        [
            _key("b"),
            _key(folder="/logs/a/day=2026-01-01"),
            _key(device=9),
            _key(inode=9),
            _key(limits=dataclasses.replace(_PROCESS_LIMITS, threads=1)),
            None,
        ],
        ids=["tenant", "folder", "device", "inode", "limits", "no folder"],
    )
    def test_another_key_does_not_get_it(self, leases: Leases, other: LeaseKey | None) -> None:
        leases.give_back(_lease(_key())[0])
        assert leases.take(other) is None

    @pytest.mark.parametrize(
        ("change", "is_kept"),
        [
            ({"seconds": 9.9}, True),
            ({"seconds": 10.0}, False),
            ({"bytes": 1000 + (256 << 20) - 1}, True),
            ({"bytes": 1000 + (256 << 20)}, False),
        ],
    )
    def test_a_process_that_used_much_ends(
        self, leases: Leases, change: dict[str, Any], *, is_kept: bool
    ) -> None:
        lease, process = _lease(_key())
        vars(process).update(change)
        leases.give_back(lease)
        assert process.ended is not is_kept
        assert (leases.take(_key()) is lease) is is_kept

    def test_a_process_ends_after_so_many_queries(self, leases: Leases) -> None:
        lease, process = _lease(_key())
        for _ in range(2):
            leases.give_back(lease)
            assert leases.take(_key()) is lease
        leases.give_back(lease)
        assert process.ended
        assert leases.take(_key()) is None

    def test_a_process_without_a_folder_ends(self, leases: Leases) -> None:
        lease, process = _lease(None)
        leases.give_back(lease)
        assert process.ended
        assert leases.take(None) is None

    def test_a_process_ends_that_waited_too_long(self, leases: Leases, clock: Clock) -> None:
        lease, process = _lease(_key())
        leases.give_back(lease)
        clock.now = 60.0
        assert leases.take(_key()) is lease
        leases.give_back(lease)
        clock.now = 120.1
        assert leases.take(_key("b")) is None
        assert process.ended

    def test_a_process_that_died_is_not_taken(self, leases: Leases) -> None:
        lease, process = _lease(_key())
        leases.give_back(lease)
        process.alive = False
        assert leases.take(_key()) is None
        assert process.ended  # closes its descriptors

    def test_a_tenant_keeps_at_most_half(self, leases: Leases) -> None:
        processes = []
        for _ in range(3):
            lease, process = _lease(_key())
            leases.give_back(lease)
            processes.append(process)
        assert [process.ended for process in processes] == [True, False, False]

    def test_a_single_process_is_kept(self, clock: Clock) -> None:
        leases = Leases(dataclasses.replace(_OPTIONS, processes=1), clock=clock)
        processes = []
        for tenant in ("a", "a", "b"):
            lease, process = _lease(_key(tenant))
            leases.give_back(lease)
            processes.append(process)
        assert [process.ended for process in processes] == [True, True, False]

    def test_the_oldest_ends_if_there_are_too_many(self, leases: Leases) -> None:
        processes = []
        for tenant in ("a", "b", "a", "b", "c"):
            lease, process = _lease(_key(tenant))
            leases.give_back(lease)
            processes.append(process)
        assert [process.ended for process in processes] == [True, False, False, False, False]

    def test_close_ends_all(self, leases: Leases) -> None:
        lease, process = _lease(_key())
        leases.give_back(lease)
        leases.close()
        assert process.ended
        assert leases.take(_key()) is None


@pytest.fixture
def leasing() -> Iterator[LocalEngine]:
    """An engine of its own: other tests would end its processes."""
    engine = LocalEngine(slots=2, per_tenant=2, queue=8, warm=1, default_limits=Limits())
    yield engine
    engine.close()


def _run(engine: LocalEngine, source: LogSource, statement: str, **limits: Any) -> list[tuple[Any, ...]]:
    changed = dataclasses.replace(Limits(), **limits)
    result = engine.execute(source=source, statement=statement, limits=changed)
    return [tuple(row.values()) for batch in result.batches for row in batch.to_pylist()]


COUNT = "SELECT count(*) AS n FROM proxy_logs"


class TestEngine:
    def test_a_process_answers_its_tenants_queries_alone(
        self, leasing: LocalEngine, log: LogSource, make_log: Callable[..., LogSource]
    ) -> None:
        assert _run(leasing, log, COUNT) == [(6,)]
        (first,) = leasing.leased_pids()
        assert _run(leasing, log, COUNT) == [(6,)]
        assert leasing.leased_pids() == [first]
        stranger = make_log({"2026-01-01": [{}], "2026-01-02": [{}]}, tenant="stranger")
        assert _run(leasing, stranger, COUNT) == [(2,)]
        assert len({first, *leasing.leased_pids()}) == 2
        assert first in leasing.leased_pids()

    @pytest.mark.parametrize(
        ("statement", "error"),
        [
            ("SELECT 1 FROM proxy_logs LIMIT 1", None),
            ("SELECT * FROM proxy_logs", None),
            ("SELECT nothing FROM proxy_logs", QueryFailed),
            ("SELECT 1 / 0 + 'x'::INT FROM proxy_logs", QueryFailed),
            ("COPY proxy_logs TO 'x'", QueryRejected),
            ("SELECT", QueryRejected),
        ],
    )
    def test_ordinary_answers_keep_it(
        self, leasing: LocalEngine, log: LogSource, statement: str, error: type[Exception] | None
    ) -> None:
        _run(leasing, log, COUNT)
        before = leasing.leased_pids()
        if error is None:
            _run(leasing, log, statement, max_rows=2)
        else:
            with pytest.raises(error):
                _run(leasing, log, statement)
        assert leasing.leased_pids() == before
        assert _run(leasing, log, COUNT) == [(6,)]

    @pytest.mark.parametrize(
        ("statement", "limits", "error"),
        [
            ("SELECT sum(hash(i)) FROM range(1000000000000) t(i)", {"seconds": 0.4}, QueryTimeout),
            ("SELECT length(repeat('x', 4000000000))", {}, QueryFailed),
        ],
        ids=["timeout", "memory"],
    )
    def test_anything_else_ends_it(
        self,
        leasing: LocalEngine,
        log: LogSource,
        statement: str,
        limits: dict[str, Any],
        error: type[Exception],
    ) -> None:
        _run(leasing, log, COUNT)
        assert len(leasing.leased_pids()) == 1
        with pytest.raises(error):
            _run(leasing, log, statement, **limits)
        assert leasing.leased_pids() == []
        assert _run(leasing, log, COUNT) == [(6,)]

    def test_a_process_with_lowered_priority_ends(
        self, leasing: LocalEngine, log: LogSource, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("logs.sql.engines.pool._LOW_PRIORITY_SECONDS", 0.0)
        assert _run(leasing, log, COUNT) == [(6,)]
        assert leasing.leased_pids() == []

    def test_a_process_that_was_killed_is_replaced(self, leasing: LocalEngine, log: LogSource) -> None:
        _run(leasing, log, COUNT)
        (pid,) = leasing.leased_pids()
        psutil.Process(pid).kill()
        assert _run(leasing, log, COUNT) == [(6,)]
        assert leasing.leased_pids() != [pid]

    def test_a_replaced_folder_is_read_again(
        self, leasing: LocalEngine, log: LogSource, tmp_path: Path
    ) -> None:
        _run(leasing, log, COUNT)
        before = leasing.leased_pids()
        folder = tmp_path / "tenant" / "compacted"
        folder.rename(tmp_path / "moved")
        for day in ("2026-01-01", "2026-01-02", "2026-01-03"):
            write_day(folder, day, [{"userName": "new"}])
        assert _run(leasing, log, "SELECT DISTINCT userName FROM proxy_logs") == [("new",)]
        assert not set(before) & set(leasing.leased_pids()[1:])

    def test_a_new_file_is_read(self, leasing: LocalEngine, log: LogSource, tmp_path: Path) -> None:
        _run(leasing, log, COUNT)
        before = leasing.leased_pids()
        more = write_day(tmp_path / "tenant" / "compacted", "2026-01-04", [{}, {}])
        assert _run(leasing, LogSource("tenant", (*log.days, more)), COUNT) == [(8,)]
        assert leasing.leased_pids() == before

    def test_each_query_has_its_own_view(self, leasing: LocalEngine, log: LogSource, tmp_path: Path) -> None:
        folder = tmp_path / "tenant" / "compacted"
        older = write_day(folder, "2026-01-05", [{"userName": "old"}], without=["tables"])
        lacking = LogSource("tenant", (*log.days, older))
        positioned = dataclasses.replace(log, has_positions=True)
        users = "SELECT count(DISTINCT userName), count(tables) FROM proxy_logs"
        for _ in range(2):
            assert _run(leasing, log, users) == [(3, 0)]
            assert _run(leasing, lacking, users) == [(4, 0)]
            assert _run(leasing, positioned, "SELECT max(_row) FROM proxy_logs") == [(2,)]
            with pytest.raises(QueryFailed, match='column "_row" not found'):
                _run(leasing, log, "SELECT _row FROM proxy_logs")
        assert len(leasing.leased_pids()) == 1

    def test_no_process_is_kept_if_the_operator_wants_none(self, log: LogSource) -> None:
        engine = LocalEngine(
            slots=1,
            per_tenant=1,
            queue=1,
            warm=1,
            default_limits=Limits(),
            leases=LeaseOptions(processes=0),
        )
        try:
            assert _run(engine, log, COUNT) == [(6,)]
            assert engine.leased_pids() == []
        finally:
            engine.close()


def _request(source: LogSource, statement: str) -> dict[str, Any]:
    files = [file for day in source.days for file in day.files]
    return wire.Request(
        statement=statement,
        folder=source.folder,
        files=tuple(file[len(source.folder) + 1 :] for file in files),
        days=tuple(day.day for day in source.days),
        wait=False,
        has_positions=False,
        seconds=15,
        max_rows=10,
        max_bytes=1 << 20,
        max_columns=10,
    ).as_json()


def _ask(process: QueryProcess, request: dict[str, Any]) -> list[str]:
    """Return the kinds of the two answers."""
    process.channel.sendall(wire.encode(request))
    kinds = []
    for _ in range(2):
        head = wire.read_head(process.channel.fileno())
        wire.read_exactly(process.channel.fileno(), head["body"])
        kinds.append(head["kind"])
    return kinds


@pytest.fixture
def process() -> Iterator[QueryProcess]:
    pool = ProcessPool(warm=1, limits=_PROCESS_LIMITS)
    process = pool.take()
    process.channel.setblocking(True)
    yield process
    process.end()
    pool.close()


def test_a_process_refuses_a_request_for_another_folder(
    process: QueryProcess, log: LogSource, make_log: Callable[..., LogSource]
) -> None:
    stranger = make_log({"2026-01-01": [{}], "2026-01-02": [{}]}, tenant="stranger")
    assert _ask(process, _request(log, COUNT)) == ["checked", "result"]
    with pytest.raises(wire.ConnectionEnded):
        _ask(process, _request(stranger, COUNT))


def test_a_process_cannot_open_a_strangers_file(
    process: QueryProcess, log: LogSource, make_log: Callable[..., LogSource]
) -> None:
    """The kernel refuses it, even if the service asked a process of one tenant for a file of another."""
    stranger = make_log({"2026-01-01": [{}]}, tenant="stranger")
    assert _ask(process, _request(log, COUNT)) == ["checked", "result"]
    request = _request(log, COUNT)
    request["files"] = [f"../../stranger/compacted/{file}" for file in _request(stranger, COUNT)["files"]]
    request["days"] = ["2026-01-01"]
    assert _ask(process, request) == ["checked", "fault"]


def test_files_are_named_only_when_they_change() -> None:
    connection = Mock()
    view = LogView(connection)
    statements = []
    for files in (["a", "b"], ["a", "b"], [], [], ["a", "b"], ["a", "c"]):
        connection.reset_mock()
        view.make(files)
        statements.append([call.args[0].split()[0] for call in connection.execute.call_args_list])
    # No file needs a view of its own. The fast view then comes back, and its files are still named.
    assert statements == [["SET"], [], ["CREATE"], [], ["CREATE"], ["SET"]]


#: What a session may keep besides data.
_STATE = """
    SELECT 'setting' AS kind, name, value FROM duckdb_settings()
    UNION ALL SELECT 'variable', name, value FROM duckdb_variables()
    UNION ALL SELECT 'function', function_name, count(*)::VARCHAR FROM duckdb_functions() GROUP BY 2
    UNION ALL SELECT 'table', table_name, temporary::VARCHAR FROM duckdb_tables()
    UNION ALL SELECT 'view', view_name, temporary::VARCHAR FROM duckdb_views()
    UNION ALL SELECT 'type', type_name, count(*)::VARCHAR FROM duckdb_types() GROUP BY 2
    UNION ALL SELECT 'sequence', sequence_name, last_value::VARCHAR FROM duckdb_sequences()
    UNION ALL SELECT 'prepared', name, statement FROM duckdb_prepared_statements()
    UNION ALL SELECT 'secret', name, secret_string FROM duckdb_secrets()
    UNION ALL SELECT 'database', database_name, path FROM duckdb_databases()
    ORDER BY ALL
"""


@pytest.mark.slow
def test_no_statement_that_the_guard_allows_leaves_anything_behind(log: LogSource) -> None:
    connection = child.connect()
    files = [file for day in log.days for file in day.files]
    LogView(connection).make(files)
    before = connection.execute(_STATE).fetchall()
    for statement in ALLOWED:
        connection.execute(statement).to_arrow_table()
        assert connection.execute(_STATE).fetchall() == before, statement
