"""Queries in sandboxed processes: the view, limits, errors and the queue."""

from __future__ import annotations

import dataclasses
import functools
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from logs import columns
from logs.sql.engines.exchange import unique_names
from logs.sql.engines.local import LocalEngine
from logs.sql.engines.pool import ProcessPool
from logs.sql.guard import IMPLICIT_CALLS
from logs.sql.protocol import (
    DayFiles,
    EngineUnavailable,
    Limits,
    LogSource,
    QueryFailed,
    QueryInterrupted,
    QueryRejected,
    QueryResult,
    QueryTimeout,
)
from tests.logs.sql.statements import ALLOWED
from tests.logs.sql.support import write_day

if TYPE_CHECKING:
    from logs.sql.engines.pool import QueryProcess

_LIMITS = Limits()


def _run(engine: LocalEngine, source: LogSource, statement: str, **limits: Any) -> QueryResult:
    return engine.execute(source=source, statement=statement, limits=dataclasses.replace(_LIMITS, **limits))


def _rows(result: QueryResult) -> list[dict[str, Any]]:
    return [row for batch in result.batches for row in batch.to_pylist()]


def test_the_view_has_the_contract_columns_then_day(engine: LocalEngine, log: LogSource) -> None:
    result = _run(engine, log, "SELECT * FROM proxy_logs LIMIT 1")
    expected = [(column.name, column.type.value) for column in columns.COLUMNS] + [("day", "VARCHAR")]
    assert [(column.name, column.type) for column in result.columns] == expected


def test_a_tenant_without_logs_has_an_empty_view_of_the_same_types(engine: LocalEngine) -> None:
    result = _run(engine, LogSource("empty", ()), "SELECT * FROM proxy_logs")
    expected = [(column.name, column.type.value) for column in columns.COLUMNS] + [("day", "VARCHAR")]
    assert [(column.name, column.type) for column in result.columns] == expected
    assert (result.row_count, result.truncated) == (0, False)


def test_only_a_source_with_positions_has_the_row_numbers(
    engine: LocalEngine, log: LogSource, tmp_path: Path
) -> None:
    statement = "SELECT day, userName AS u, _row AS r, _hour AS h FROM proxy_logs ORDER BY 1, 3"
    with pytest.raises(QueryFailed, match='Referenced column "_row" not found'):
        _run(engine, log, statement)
    old = write_day(tmp_path / "tenant" / "old", "2026-01-04", [{"userName": "o"}], without=["tables"])
    source = LogSource("tenant", (*log.days[1:2], old), has_positions=True)
    assert [tuple(row.values()) for row in _rows(_run(engine, source, statement))] == [
        ("2026-01-02", "u1", 0, None),
        ("2026-01-02", "u2", 1, None),
        ("2026-01-04", "o", 0, None),
    ]
    assert _rows(_run(engine, LogSource("empty", (), has_positions=True), statement)) == []


@pytest.mark.parametrize("days", [("2026-01-01",), ("2026-01-01", "2026-01-02")])
def test_min_and_max_of_day_over_one_file_and_two_files(
    engine: LocalEngine, make_log: Callable[..., LogSource], days: tuple[str, ...]
) -> None:
    source = make_log({day: [{"timestamp": 1}] for day in days})
    result = _run(
        engine, source, "SELECT min(day) AS a, max(day) AS b, typeof(min(day)) AS c FROM proxy_logs"
    )
    assert _rows(result) == [{"a": days[0], "b": days[-1], "c": "VARCHAR"}]


@pytest.mark.parametrize(
    "condition", ["= '2026-01-01'", "= strftime(DATE '2026-01-01', '%Y-%m-%d')", "< '2026-01-02'"]
)
def test_min_and_max_of_day_with_a_condition_that_selects_the_first_day(
    engine: LocalEngine, log: LogSource, condition: str
) -> None:
    statement = f"SELECT min(day) AS a, max(day) AS b, count(*) AS n FROM proxy_logs WHERE day {condition}"
    assert _rows(_run(engine, log, statement)) == [{"a": "2026-01-01", "b": "2026-01-01", "n": 1}]


#: The columns that the files of three days lack, because older versions wrote them.
_MISSING_COLUMNS = {
    "the first": [["requestSize", "tables", "xRealIp"], [], []],
    "the last": [[], [], ["requestSize", "tables", "xRealIp"]],
    "between": [[], ["xRealIp", "tables"], []],
    "each another": [["requestSize"], ["tables"], ["xRealIp", "cacheStatus"]],
    "all": [["tables", "xRealIp", "responseSize"]] * 3,
}

_STATEMENTS = (
    "SELECT * FROM proxy_logs ORDER BY day",
    "SELECT count(*) AS n, count(xRealIp) AS a, max(tables) AS b, sum(requestSize) AS c FROM proxy_logs",
    "SELECT day FROM proxy_logs WHERE requestSize > 5 OR tables IS NULL ORDER BY day",
    "SELECT min(day) AS d, max(xRealIp) AS x FROM proxy_logs WHERE day > '2026-01-01'",
    "SELECT * FROM proxy_logs WHERE day = '2026-01-01'",
    "SELECT * FROM proxy_logs WHERE day = '2026-01-03'",
)


@pytest.mark.parametrize("old_files", _MISSING_COLUMNS)
def test_a_column_that_a_file_lacks_is_null(engine: LocalEngine, tmp_path: Path, old_files: str) -> None:
    row = {"requestSize": 7, "tables": "[]", "xRealIp": "::1", "cacheStatus": "HIT", "responseSize": 5}
    old, new = [], []
    for number, without in enumerate(_MISSING_COLUMNS[old_files], 1):
        day = f"2026-01-0{number}"
        known = {name: value for name, value in row.items() if name not in without}
        with_extra_column = {f"unknown{number}": "x", **known}
        old.append(write_day(tmp_path / "tenant" / "old", day, [with_extra_column], without=without))
        # responseSize is never null.
        new.append(write_day(tmp_path / "tenant" / "new", day, [{"responseSize": 0, **known}]))
    for statement in _STATEMENTS:
        expected = _run(engine, LogSource("tenant", tuple(new)), statement)
        result = _run(engine, LogSource("tenant", tuple(old)), statement)
        assert _rows(result) == _rows(expected)
        assert result.columns == expected.columns


def test_a_log_of_one_old_file_can_be_queried(engine: LocalEngine, tmp_path: Path) -> None:
    source = LogSource("tenant", (write_day(tmp_path / "tenant", "2026-01-01", [{}], without=["tables"]),))
    statement = "SELECT min(day) AS d, count(*) AS n, count(tables) AS t FROM proxy_logs"
    assert _rows(_run(engine, source, statement)) == [{"d": "2026-01-01", "n": 1, "t": 0}]


def test_errors_of_the_statement_are_reported_over_old_files(engine: LocalEngine, tmp_path: Path) -> None:
    source = LogSource("tenant", (write_day(tmp_path / "tenant", "2026-01-01", [{}], without=["tables"]),))
    for statement in ("SELECT tabels FROM proxy_logs", "SELECT tables FROM (SELECT host FROM proxy_logs)"):
        with pytest.raises(QueryFailed, match='Referenced column "tab'):
            _run(engine, source, statement)


def test_a_message_that_ends_within_a_character_is_reported_over_old_files(
    engine: LocalEngine, tmp_path: Path
) -> None:
    source = LogSource("tenant", (write_day(tmp_path / "tenant", "2026-01-01", [{}], without=["tables"]),))
    with pytest.raises(QueryFailed) as caught:
        _run(engine, source, "SELECT tables, 'é'::BIT FROM proxy_logs")
    message = "Invalid character encountered in string -> bit conversion: '\ufffd'"
    assert caught.value.text == (message if _has_cut_messages() else _MESSAGE_LOST)


_MESSAGE_LOST = (
    "The engine's message is lost because it ends within a character. Look for text beyond ASCII in what the"
    " query converts, parses or formats."
)


@functools.cache
def _has_cut_messages() -> bool:
    """Return True if this version of Python keeps messages that it cannot decode. Some drop them."""
    with duckdb.connect() as connection, pytest.raises((duckdb.Error, UnicodeDecodeError)) as caught:
        connection.execute("SELECT 'é'::BIT")
    return isinstance(caught.value, UnicodeDecodeError)


@pytest.mark.parametrize("statement", ALLOWED)
def test_every_allowed_statement_runs(engine: LocalEngine, log: LogSource, statement: str) -> None:
    assert _run(engine, log, statement).columns


@pytest.mark.parametrize(
    "predicate",
    [
        "day = '2026-01-02'",
        "'2026-01-02' = day",
        "day IN ('2026-01-02')",
        "day BETWEEN '2026-01-02' AND '2026-01-02'",
        "day >= '2026-01-02' AND day < '2026-01-03'",
        "day LIKE '2026-01-02%'",
        "starts_with(day, '2026-01-02')",
        "day = strftime(DATE '2026-01-01' + 1, '%Y-%m-%d')",
        "day = (DATE '2026-01-01' + INTERVAL 1 DAY)::DATE::VARCHAR",
        "day = concat('2026-01', '-02')",
        "day = strftime(current_date + (DATE '2026-01-02' - current_date)::INT, '%Y-%m-%d')",
    ],
)
def test_a_predicate_on_day_opens_no_other_file(engine: LocalEngine, log: LogSource, predicate: str) -> None:
    # The other days' files are not Parquet: reading one of them fails.
    for day in log.days:
        if day.day != "2026-01-02":
            Path(day.files[0]).write_bytes(b"not parquet")
    readable_first = LogSource(log.tenant_id, (log.days[1], log.days[0], log.days[2]))
    result = _run(engine, readable_first, f"SELECT count(*) AS n FROM proxy_logs WHERE {predicate}")
    assert _rows(result) == [{"n": 2}]


def test_an_unreadable_file_is_a_fault_of_the_service(engine: LocalEngine, log: LogSource) -> None:
    Path(log.days[0].files[0]).write_bytes(b"not parquet")
    with pytest.raises(EngineUnavailable) as caught:
        _run(engine, log, "SELECT count(*) FROM proxy_logs")
    assert caught.value.text == "The service failed to answer this request."


@pytest.mark.parametrize(
    ("rows", "limit", "returned", "truncated"),
    [(9, 10, 9, False), (10, 10, 10, False), (11, 10, 10, True), (5_000, 4_000, 4_000, True)],
)
def test_rows_are_limited(
    engine: LocalEngine, log: LogSource, rows: int, limit: int, returned: int, truncated: bool
) -> None:
    result = _run(engine, log, f"SELECT i FROM range({rows}) t(i)", max_rows=limit)
    assert [row["i"] for row in _rows(result)] == list(range(returned))
    assert (result.row_count, result.truncated) == (returned, truncated)


def test_bytes_are_limited(engine: LocalEngine, log: LogSource) -> None:
    result = _run(engine, log, "SELECT repeat('x', 1000) AS t FROM range(100)", max_bytes=50_000)
    assert result.truncated
    assert 40 <= result.row_count <= 50
    assert result.nbytes <= 50_000


def test_a_row_larger_than_the_limit_is_not_returned(engine: LocalEngine, log: LogSource) -> None:
    result = _run(engine, log, "SELECT repeat('x', 100000) AS t", max_bytes=50_000)
    assert (result.row_count, result.truncated, result.columns[0].name) == (0, True, "t")


def test_rows_beyond_the_limit_are_not_computed(engine: LocalEngine, log: LogSource) -> None:
    result = _run(engine, log, "SELECT i FROM range(1000000000000) t(i)", max_rows=3)
    assert [row["i"] for row in _rows(result)] == [0, 1, 2]


def test_columns_are_limited(engine: LocalEngine, log: LogSource) -> None:
    asked = 2 * (len(columns.COLUMNS) + 1)
    with pytest.raises(QueryFailed) as caught:
        _run(engine, log, "SELECT *, * FROM proxy_logs", max_columns=asked - 1)
    assert caught.value.text == (
        f"The result has {asked} columns; at most {asked - 1} are allowed. Name the columns that you need."
    )
    assert len(_run(engine, log, "SELECT *, * FROM proxy_logs", max_columns=asked).columns) == asked


def test_repeated_column_names_are_numbered(engine: LocalEngine, log: LogSource) -> None:
    result = _run(engine, log, 'SELECT 1 AS a, 2 AS a, 3 AS a_1, 4 AS a, 5 AS "A"')
    assert [column.name for column in result.columns] == ["a", "a_2", "a_1", "a_3", "A"]


@pytest.mark.parametrize(
    ("names", "unique"),
    [
        ([], []),
        (["x", "x", "x"], ["x", "x_1", "x_2"]),
        (["x", "x", "x_1"], ["x", "x_2", "x_1"]),
        (["x_1", "x", "x"], ["x_1", "x", "x_2"]),
    ],
)
def test_repeated_names_get_free_suffixes(names: list[str], unique: list[str]) -> None:
    assert unique_names(names) == unique


_TOO_DEEP = "The result nests too deeply. Cast the column to JSON or VARCHAR."


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("DROP VIEW proxy_logs", QueryRejected, "DROP is not allowed. Send one SELECT"),
        ("SELECT `day` FROM proxy_logs", QueryRejected, "(line 1, column 8)"),
        ("SELECT\n  getenv('HOME')", QueryRejected, "may call. (line 2, column 3)"),
        ("SELECT '\ud800'", QueryRejected, "Remove it. (line 1, column 9)"),
        ("SELECT usrName FROM proxy_logs", QueryFailed, 'Candidate bindings: "userName"'),
        ("SELECT 'é', usrName FROM proxy_logs", QueryFailed, "(line 1, column 13)"),
        ("SELECT CAST('abc' AS INT)", QueryFailed, "Could not convert string 'abc' to INT32"),
        (
            "SELECT CAST(if(i > 4000, 'x', '1') AS INT) FROM range(5000) t(i)",
            QueryFailed,
            "Could not convert",
        ),
        ("SELECT error('stop')", QueryFailed, "stop"),
        ("SELECT 9223372036854775807 + 1", QueryFailed, "Overflow in addition of INT64"),
        (f"SELECT {'[' * 63}1{']' * 63}", QueryFailed, _TOO_DEEP),
        (f"SELECT {'MAP {1: ' * 32}1{'}' * 32}", QueryFailed, _TOO_DEEP),
        ("SELECT 1::VARIANT", QueryFailed, "Unsupported Arrow type VARIANT. Cast the column to VARCHAR."),
    ],
)
def test_errors_have_a_message_and_a_position(
    engine: LocalEngine, log: LogSource, statement: str, error: type[QueryFailed], message: str
) -> None:
    with pytest.raises(error) as caught:
        _run(engine, log, statement)
    assert message in caught.value.text
    assert "/" not in caught.value.text.replace("SELECT", "")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("5 BETWEEN least(7, 3) AND greatest(7, 3)", True),
        ("list_transform(['a'], lambda v: v::ENUM('a', 'b'))", ["a"]),
        ("struct_pack(k := {'k': 'a'}.k::ENUM('a', 'b'))", {"k": "a"}),
        (f"({'[' * 63}1{']' * 63})::JSON", "[" * 63 + "1" + "]" * 63),
        (f"({'[' * 63}1{']' * 63})::VARCHAR", "[" * 63 + "1" + "]" * 63),
        (f"length(({'MAP {1: ' * 32}1{'}' * 32})::JSON)", 32 * len('{"1":}') + 1),
    ],
)
def test_the_statements_that_messages_propose_run(
    engine: LocalEngine, log: LogSource, expression: str, value: object
) -> None:
    assert _rows(_run(engine, log, f"SELECT {expression} AS x")) == [{"x": value}]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT 'é'::BIT", "Invalid character encountered in string -> bit conversion: '\ufffd'"),
        (
            "SELECT if(i > 4000, 'é', '1')::BIT FROM range(5000) t(i)",
            "Invalid character encountered in string -> bit conversion: '\ufffd'",
        ),
        ("SELECT unhex('éé')", "Invalid input for hex digit: \ufffd"),
        (
            "SELECT strftime(now(), '%é')",
            """Failed to parse format specifier %é: \
Unrecognized format for strftime/strptime: %\ufffd""",
        ),
        ("SELECT printf('%é', 1)", 'Invalid type specifier "\ufffd" for formatting a value of type int'),
        (
            "SELECT '', ('[1, ' || repeat('é', 200) || ']')::JSON",
            f"""Malformed JSON at byte 4 of input: unexpected character. \
 Input: "[1, {"é" * 21}\ufffd..." (line 1, column 47)""",
        ),
    ],
)
def test_a_message_that_ends_within_a_character_is_reported(
    engine: LocalEngine, log: LogSource, statement: str, message: str
) -> None:
    with pytest.raises(QueryFailed) as caught:
        _run(engine, log, statement)
    assert caught.value.text == (message if _has_cut_messages() else _MESSAGE_LOST)


@pytest.mark.parametrize(
    "expression",
    [
        r"regexp_extract('é', '\C')",
        r"regexp_replace('é', '\C', 'x')",
        r"regexp_extract_all('é', '\C')",
        # Together with a time that Arrow's own checks refuse.
        r"{'at': TIME '24:00:00', 'c': [regexp_extract('é', '\C')]}",
        r"if(i > 4000, regexp_extract('é', '\C'), 'x')",
    ],
)
def test_text_that_is_not_utf_8_is_an_error_of_the_query(
    engine: LocalEngine, log: LogSource, expression: str
) -> None:
    with pytest.raises(QueryFailed) as caught:
        _run(engine, log, f"SELECT 1 AS a, {expression} AS b FROM range(5000) t(i)")
    assert caught.value.text == (
        r'The column "b" holds text that is not UTF-8: \C in a regular expression makes'
        " single bytes. Use . instead, or encode(…) for a BLOB."
    )


def test_the_functions_proposed_for_text_that_is_not_utf_8_run(engine: LocalEngine, log: LogSource) -> None:
    statement = r"SELECT regexp_extract('é', '.') AS a, encode(regexp_extract('é', '\C')) AS b"
    assert _rows(_run(engine, log, statement)) == [{"a": "é", "b": b"\xc3"}]


@pytest.mark.parametrize("name", sorted(IMPLICIT_CALLS))
def test_a_session_value_cannot_be_read_by_naming_a_column_out_of_scope_like_it(
    engine: LocalEngine, log: LogSource, name: str
) -> None:
    in_scope = f'SELECT "{name}", {name} AS b FROM (SELECT 1 AS "{name}")'
    assert _rows(_run(engine, log, in_scope)) == [{name: 1, "b": 1}]
    with pytest.raises(QueryRejected, match=f'"{name}" reads settings, the session or the catalog'):
        _run(engine, log, f"SELECT {name}")
    for reference in (name, f'"{name}"', name.upper()):
        with pytest.raises(QueryFailed) as caught:
            _run(engine, log, f'SELECT {reference}, (SELECT 1 AS "{name}") FROM proxy_logs')
        assert caught.value.text == f'There is no column "{name}" here, and the session may not be read.'


def test_a_message_has_no_advice_and_no_echo_of_the_statement(engine: LocalEngine, log: LogSource) -> None:
    with pytest.raises(QueryFailed) as caught:
        _run(engine, log, "SELECT day\nFROM proxy_logs LIMIT -1")
    assert caught.value.text == "LIMIT/OFFSET cannot be negative (line 2, column 23)"


_MEMORY_MESSAGE = (
    "The query needs more memory than a query may use (64 MiB)."
    " Narrow the days it reads, or aggregate before joining and sorting."
)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT len(range(200000000))",
        "SELECT length(repeat('x', 4000000000))",
        "SELECT i FROM range(100000000) t(i) ORDER BY hash(i)",
        "SELECT list_transform(range(100000000), lambda x: x * x)",
    ],
)
def test_a_query_that_needs_too_much_memory_fails_alone(
    engine: LocalEngine, log: LogSource, statement: str
) -> None:
    with pytest.raises(QueryFailed) as caught:
        _run(engine, log, statement, memory_bytes=64 << 20)
    assert caught.value.text == _MEMORY_MESSAGE
    assert _rows(_run(engine, log, "SELECT 1 AS one")) == [{"one": 1}]


def test_a_query_that_crashes_fails_alone(engine: LocalEngine, log: LogSource) -> None:
    deep = "SELECT json_structure(repeat('[', 500000) || repeat(']', 500000))"
    with pytest.raises(QueryFailed) as caught:
        _run(engine, log, deep)
    assert caught.value.text.startswith("The engine stopped while it ran this query")
    assert _rows(_run(engine, log, "SELECT 1 AS one")) == [{"one": 1}]


@pytest.mark.parametrize("has_begun", [True, False], ids=["running", "starting"])
def test_a_query_whose_process_is_killed_may_be_tried_again(
    engine: LocalEngine, log: LogSource, monkeypatch: pytest.MonkeyPatch, has_begun: bool
) -> None:
    """The kernel does that if the machine runs short of memory. The statement is not at fault."""
    take = ProcessPool.take

    def take_doomed(pool: ProcessPool, **options: Any) -> QueryProcess:
        process = take(pool, **options)
        # A process that has not begun is replaced once, so the second one is killed too.
        threading.Timer(0.3 if has_begun else 0, os.kill, (process.pid, signal.SIGKILL)).start()
        if not has_begun:
            process.wait(10)
        return process

    with monkeypatch.context() as patch:
        patch.setattr(ProcessPool, "take", take_doomed)
        with pytest.raises(QueryInterrupted) as caught:
            _run(engine, log, "SELECT count(*) FROM range(10000000000000)")
    error = caught.value
    assert (error.status, error.code, error.headers) == (503, "service_busy", {"Retry-After": "1"})
    assert _rows(_run(engine, log, "SELECT 1 AS one")) == [{"one": 1}]


def test_the_check_of_health_runs_a_statement_outside_of_the_slots(log: LogSource) -> None:
    engine = LocalEngine(slots=1, per_tenant=1, queue=0, warm=1, default_limits=Limits())
    try:
        with engine._semaphore.slot("tenant", deadline=time.monotonic() + 5):
            engine.check(seconds=10)
        engine.close()
        with pytest.raises(EngineUnavailable):
            engine.check(seconds=10)
    finally:
        engine.close()


@pytest.mark.parametrize("version", [3, -1])
def test_a_kernel_without_landlock_is_in_the_log(
    version: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("logs.sql.sandbox.landlock_version", lambda: version)
    LocalEngine(slots=1, per_tenant=1, queue=0, warm=0, default_limits=Limits()).close()
    assert ("This kernel lacks landlock" in caplog.text) == (version < 1)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "SELECT count(*) FROM proxy_logs a, range(1000000000000)",
            """The query took longer than 0.3 seconds. It names no day, so it reads the tenant's \
whole history: add a predicate such as day >= '2026-01-31'.""",
        ),
        (
            "SELECT count(*) FROM proxy_logs a, range(1000000000000) WHERE day > ''",
            "The query took longer than 0.3 seconds. Narrow the days it reads, or compute less.",
        ),
        # DuckDB cannot interrupt this function.
        (
            "SELECT levenshtein(repeat('ab', 60000), repeat('ba', 60000))",
            "The query took longer than 0.3 seconds. Narrow the days it reads, or compute less.",
        ),
    ],
)
def test_a_query_is_ended_at_the_deadline(
    engine: LocalEngine, log: LogSource, statement: str, message: str
) -> None:
    with pytest.raises(QueryTimeout) as caught:
        _run(engine, log, statement, seconds=0.3)
    assert caught.value.text == message


def test_the_wait_for_a_slot_counts_towards_the_deadline(log: LogSource) -> None:
    engine = LocalEngine(slots=1, per_tenant=1, queue=24, warm=1, default_limits=Limits())
    try:
        endless = "SELECT count(*) FROM range(10000000000000)"
        with ThreadPoolExecutor(1) as others:
            running = others.submit(_run, engine, log, endless, seconds=0.8)
            while not engine.running:
                threading.Event().wait(0.01)
            with pytest.raises(QueryTimeout, match=r"^No query could start within its time limit"):
                _run(engine, log, "SELECT 1", seconds=0.2)
            with pytest.raises(QueryTimeout):
                running.result()
    finally:
        engine.close()


def test_a_query_fails_at_once_if_the_queue_is_full(log: LogSource) -> None:
    engine = LocalEngine(slots=1, per_tenant=1, queue=0, warm=1, default_limits=Limits())
    try:
        with ThreadPoolExecutor(1) as others:
            endless = "SELECT count(*) FROM range(10000000000000)"
            running = others.submit(_run, engine, log, endless, seconds=2)
            while not engine.running:
                threading.Event().wait(0.01)
            with pytest.raises(QueryTimeout, match=r"^Too many queries are waiting"):
                _run(engine, log, "SELECT 1", seconds=600)
            with pytest.raises(QueryTimeout):
                running.result()
    finally:
        engine.close()


def test_concurrent_callers_get_their_own_results(engine: LocalEngine, log: LogSource) -> None:
    with ThreadPoolExecutor(8) as callers:
        results = callers.map(lambda n: _rows(_run(engine, log, f"SELECT {n} AS n")), range(24))
    assert list(results) == [[{"n": n}] for n in range(24)]


@pytest.mark.parametrize(
    "path",
    [
        "t/day=2026-01-01/a.parquet",
        "/t/day=2026-01-02/a.parquet",
        "/t/../day=2026-01-01/a.parquet",
        "/other/day=2026-01-01/a.parquet",
        "/t/day=2026-01-01/a\n.parquet",
    ],
)
def test_a_source_refuses_files_of_another_tenant_or_day(path: str) -> None:
    with pytest.raises(ValueError, match="is not a file of tenant t and day 2026-01-01"):
        LogSource("t", (DayFiles("2026-01-01", (path,)),))
