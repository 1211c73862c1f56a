"""A known stream, written as each source writes it, gives the entries of the stream."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from analytics.history.access import read_accesses
from analytics.history.entries import Choices, Hashed, Read, write_entries
from analytics.history.rows import BadHistory, Options, Source
from tests.analytics.history.reading import NOW, bad, read, read_body
from tests.analytics.history.stream import (
    PREFIX,
    Sent,
    as_csvlog,
    as_databricks,
    as_jsonlog,
    as_snowflake,
    as_text,
    make_stream,
)

FORMATS: dict[str, tuple[Source, Callable[[list[Sent]], bytes], Options]] = {
    "snowflake": (Source.SNOWFLAKE, as_snowflake, Options()),
    "databricks": (Source.DATABRICKS, as_databricks, Options()),
    "csvlog": (Source.POSTGRESQL, as_csvlog, Options()),
    "jsonlog": (Source.POSTGRESQL, as_jsonlog, Options()),
    "text": (Source.POSTGRESQL, as_text, Options(log_line_prefix=PREFIX)),
}
#: The database and schema of the sessions, as far as the source tells them.
DATABASES = {"snowflake": "SHOP.", "databricks": "", "csvlog": "shop.", "jsonlog": "shop.", "text": "shop."}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_a_known_stream_gives_its_own_entries(name: str, packed: bool, tmp_path: Path) -> None:
    source, write, options = FORMATS[name]
    sent = make_stream(400)
    body = write(sent)
    counted, entries = read_body(gzip.compress(body) if packed else body, source, tmp_path, options=options)
    database = DATABASES[name]
    expected = sorted(sent, key=lambda one: one.at)
    assert (counted.rows, counted.unparsed, counted.failed) == (400, 0, 0)
    assert len(entries) == 400
    assert sorted(entry["logId"] for entry in entries) == sorted({entry["logId"] for entry in entries})
    found = [
        (
            entry["timestamp"],
            entry["standardizedSql"],
            json.loads(entry["parameterValues"]),
            json.loads(entry["tables"]),
            entry["userName"],
            entry["warehouseExecutionTimeMs"],
            entry["statementType"],
            entry["isReadOnly"],
            entry["isDataChange"],
            entry["cacheStatus"],
        )
        for entry in entries
    ]
    quote = "`" if source is Source.DATABRICKS else '"'
    assert sorted(found, key=repr) == sorted(
        (
            (
                int(one.at.timestamp() * 1000),
                one.text.strip().replace('"', quote),
                list(one.values or ()),
                [f"{database}{table}" for table in one.tables],
                one.user,
                one.ms,
                one.kind,
                one.kind == "SELECT",
                one.kind != "SELECT",
                "PASSTHROUGH",
            )
            for one in expected
        ),
        key=repr,
    )


@pytest.mark.parametrize("name", ["snowflake", "databricks"])
def test_parquet_and_json_arrays_give_the_same(name: str, tmp_path: Path) -> None:
    source, write, _ = FORMATS[name]
    path = tmp_path / "history"
    path.write_bytes(write(make_stream(50)))
    reader = "read_csv" if name == "snowflake" else "read_json"
    with duckdb.connect() as engine:
        engine.execute(f"CREATE TABLE t AS FROM {reader}('{path}')")
        engine.execute(f"COPY t TO '{tmp_path}/history.parquet' (FORMAT parquet)")
        engine.execute(f"COPY t TO '{tmp_path}/history.json' (FORMAT json, ARRAY true)")
    _, plain = read(path, Choices(source=source), tmp_path / "1")
    _, parquet = read(tmp_path / "history.parquet", Choices(source=source), tmp_path / "2")
    _, array = read(tmp_path / "history.json", Choices(source=source), tmp_path / "3")
    assert parquet == plain
    assert array == plain


def line(message: str, **more: Any) -> bytes:
    """Return a line of jsonlog."""
    record = {
        "timestamp": "2026-03-01 12:00:10.500 UTC",
        "user": "ana",
        "dbname": "shop",
        "session_id": "1.2",
        "line_num": more.pop("line_num", 1),
        "error_severity": more.pop("severity", "LOG"),
        "message": message,
        **more,
    }
    return json.dumps(record).encode() + b"\n"


def statements(body: bytes, tmp_path: Path) -> list[tuple[Any, ...]]:
    """Return text, literals, time and status of the statements of a log."""
    _, entries = read_body(body, Source.POSTGRESQL, tmp_path)
    return [
        (
            entry["standardizedSql"],
            entry["parameterValues"],
            entry["warehouseExecutionTimeMs"],
            entry["cacheStatus"],
        )
        for entry in entries
    ]


def test_parameters_of_postgresql_are_literals_in_the_order_of_the_text(tmp_path: Path) -> None:
    body = line(
        "duration: 1.600 ms  execute s1: SELECT 1.50, $2 FROM t WHERE a = $1 AND b = $3 LIMIT 5",
        detail="Parameters: $1 = 'it''s', $2 = '7', $3 = NULL",
    )
    assert statements(body, tmp_path) == [
        (
            "SELECT ?, ? FROM t WHERE a = ? AND b = ? LIMIT ?",
            '[1.50, "7", "it\'s", null, 5]',
            2,
            "PASSTHROUGH",
        )
    ]


def test_hidden_parameters_stay_in_the_text(tmp_path: Path) -> None:
    body = line("duration: 1.4 ms  execute <unnamed>: SELECT $1::int")
    assert statements(body, tmp_path) == [("SELECT $1:: int", "[]", 1, "PASSTHROUGH")]


def test_a_statement_and_its_duration_on_another_line_are_one(tmp_path: Path) -> None:
    body = (
        line("statement: SELECT 1")
        + line("duration: 2.4 ms", line_num=2)
        + line("execute <unnamed>: SELECT 2", line_num=3)
        + line("duration: 0.9 ms  bind <unnamed>: SELECT 2", line_num=4)
        + line("duration: 3.0 ms", line_num=5)
        + line("statement: SELECT nothing", line_num=6)
        + line("no such column", severity="ERROR", statement="SELECT nothing", line_num=7)
    )
    assert statements(body, tmp_path) == [
        ("SELECT ?", "[1]", 2, "PASSTHROUGH"),
        ("SELECT ?", "[2]", 3, "PASSTHROUGH"),
        ("SELECT nothing", "[]", None, "ERROR"),
    ]


def test_a_plan_and_its_statement_are_one(tmp_path: Path) -> None:
    plan = "duration: 7.1 ms  plan:\nQuery Text: SELECT 1\nResult  (cost=0.00..0.01 rows=1 width=4)"
    both = line(plan) + line("duration: 7.2 ms  statement: SELECT 1", line_num=2)
    assert statements(both, tmp_path) == [("SELECT ?", "[1]", 7, "PASSTHROUGH")]


def test_a_plan_alone_is_a_statement(tmp_path: Path) -> None:
    plan = "duration: 7.1 ms  plan:\nQuery Text: SELECT 1\nResult  (cost=0.00..0.01 rows=1 width=4)"
    assert statements(line(plan), tmp_path) == [("SELECT ?", "[1]", 7, "PASSTHROUGH")]


def test_lines_of_text_that_go_on_belong_to_the_statement(tmp_path: Path) -> None:
    body = (
        b"2026-03-01 12:00:00.000 UTC [5] LOG:  duration: 1.0 ms  statement: SELECT *\n\tFROM t\n"
        b"2026-03-01 12:00:01.000 UTC [5] ERROR:  no\n2026-03-01 12:00:01.000 UTC [5] STATEMENT:  SELECT x\n"
    )
    _, entries = read_body(body, Source.POSTGRESQL, tmp_path, options=Options(log_line_prefix="%m [%p] "))
    assert [(entry["standardizedSql"], entry["cacheStatus"]) for entry in entries] == [
        ("SELECT * FROM t", "PASSTHROUGH"),
        ("SELECT x", "ERROR"),
    ]


def snowflake(tmp_path: Path, *rows: dict[str, Any]) -> tuple[Read, list[dict[str, Any]]]:
    base = {
        "query_text": "SELECT 1", "start_time": "2026-03-01 12:00:00Z", "execution_time": 5, "query_type":
        "SELECT", "warehouse_size": "Small", "bytes_scanned": 10, "execution_status": "SUCCESS",
    }  # fmt: skip
    lines = [json.dumps({"query_id": f"q{n}", **base, **row}) for n, row in enumerate(rows)]
    return read_body("\n".join(lines).encode(), Source.SNOWFLAKE, tmp_path)


def test_what_the_warehouse_itself_cached_failed_or_cut_is_counted_apart(tmp_path: Path) -> None:
    counted, entries = snowflake(
        tmp_path,
        {},
        {"warehouse_size": None, "bytes_scanned": 0, "execution_time": 30},
        {"execution_status": "FAIL"},
        {"query_text": "SELECT '" + "x" * 100_000},
        {"query_text": "SELEC nonsense ("},
    )
    assert (counted.rows, counted.result_cache, counted.failed) == (5, 1, 1)
    assert (counted.truncated, counted.unparsed, counted.unparsed_ms) == (1, 1, 5)
    assert [
        (entry["cacheStatus"], entry["warehouseExecutionTimeMs"], entry["operationType"]) for entry in entries
    ] == [
        ("PASSTHROUGH", 5, None),
        ("PASSTHROUGH", None, "RESULT_CACHE"),
        ("ERROR", None, None),
        ("PASSTHROUGH", 5, None),
        ("PASSTHROUGH", 5, None),
    ]
    assert [entry.get("standardizedSql") for entry in entries[3:]] == [None, "SELEC nonsense ("]


def test_hashes_hide_names_and_keep_what_is_equal(tmp_path: Path) -> None:
    sent = make_stream(200)
    path = tmp_path / "history"
    path.write_bytes(as_snowflake(sent))
    hashed = Choices(source=Source.SNOWFLAKE, hashed=frozenset(Hashed), key=b"secret")
    _, plain = read(path, Choices(source=Source.SNOWFLAKE), tmp_path / "1")
    _, hidden = read(path, hashed, tmp_path / "2")
    text = json.dumps([{k: v for k, v in entry.items() if k != "serverHostname"} for entry in hidden])
    for word in ("ana", "orders", "people", "it's", "2026-01-01"):
        assert word in json.dumps(plain)
        assert word not in text
    for name in ("userName", "standardizedSql", "parameterValues", "tables"):
        pairs = {(before[name], after[name]) for before, after in zip(plain, hidden, strict=True)}
        assert len(pairs) == len({before for before, _ in pairs}) == len({after for _, after in pairs})


HEADER = b"QUERY_ID,QUERY_TEXT,START_TIME\n"
GOOD = b"q1,SELECT 1,2026-03-01 12:00:00Z\nq2,SELECT 1,2026-03-02 12:00:00Z\n"


@pytest.mark.parametrize(
    ("body", "source", "parts"),
    [
        (b"", Source.SNOWFLAKE, ["is empty", "Export"]),
        (b"", Source.POSTGRESQL, ["is empty", "Export"]),
        (HEADER, Source.SNOWFLAKE, ["no rows"]),
        (b"QUERY_ID,START_TIME\nq,2026-03-01\n", Source.SNOWFLAKE, ["no column QUERY_TEXT"]),
        (b"QUERY_ID,QUERY_TEXT\nq,x\n", Source.SNOWFLAKE, ["no column START_TIME"]),
        (HEADER + GOOD, Source.DATABRICKS, ["STATEMENT_TEXT", "It looks like Snowflake's QUERY_HISTORY"]),
        (HEADER + GOOD, Source.POSTGRESQL, ["line 1", "--from snowflake"]),
        (as_databricks(make_stream(3)), Source.SNOWFLAKE, ["looks like Databricks' system.query.history"]),
        (as_databricks(make_stream(3)), Source.POSTGRESQL, ["line 1", "--from databricks"]),
        (as_jsonlog(make_stream(3)), Source.SNOWFLAKE, ["looks like a log of PostgreSQL in JSON"]),
        (as_csvlog(make_stream(3)), Source.SNOWFLAKE, ["looks like PostgreSQL's csvlog"]),
        (as_text(make_stream(3)), Source.POSTGRESQL, ["line 1", "--log-line-prefix"]),
        (
            HEADER + b"q1,SELEC x (,2026-03-01 12:00:00Z\nq2,SELECT 1,2026-03-02 12:00:00Z\n",
            Source.SNOWFLAKE,
            ["1 of 2 statements cannot be parsed", "SELEC x (", "--from snowflake"],
        ),
        (
            HEADER + b"q1,SELECT 1,2026-03-01 12:00:00Z\nq2,SELECT 1,2026-03-01 12:00:30Z\n",
            Source.SNOWFLAKE,
            ["within one minute", "2026-03-01 12:00"],
        ),
        (HEADER + b"q9,SELECT 1,2031-03-01 12:00:00Z\n", Source.SNOWFLAKE, ["q9", "future", "--timezone"]),
        (
            HEADER + b"q9,SELECT 1,1899-12-31 00:00:00Z\n",
            Source.SNOWFLAKE,
            ["row 1", "not from 1970 to 9999"],
        ),
        (
            b'{"statement_text": "SELECT 1", "start_time": 253402300800000}',
            Source.DATABRICKS,
            ["row 1", "no time from 1970 to 9999"],
        ),
        (HEADER + b"q9,SELECT 1,yesterday\n", Source.SNOWFLAKE, ["row 1", "'yesterday' is no time"]),
        (
            HEADER + GOOD + b"q3,SELECT 1,2026-03-01 12:00:00\n",
            Source.SNOWFLAKE,
            ["row 3", "times with a zone and times without one", "--timezone"],
        ),
        (HEADER + b'q1,"SELECT \0",2026-03-01\n', Source.SNOWFLAKE, ["line 2", "NUL", "UTF-8"]),
        (HEADER + b'q1,"SELECT "x" FROM t",2026-03-01\n', Source.SNOWFLAKE, ["line 2", "quote"]),
        (HEADER + b'q1,"SELECT 1,2026-03-01\n', Source.SNOWFLAKE, ["line 2", "quotes break"]),
        (HEADER + b"q1,SELECT a,b,2026-03-01\n", Source.SNOWFLAKE, ["line 2", "4 values", "3 columns"]),
        (b'{"statement_text": "x"', Source.DATABRICKS, ["Export it again"]),
        (b'PAR1{"}', Source.DATABRICKS, ["damaged Parquet"]),
        (b"\x1f\x8bxx", Source.SNOWFLAKE, ["gzip cannot unpack"]),
        (b"\x1f\x8bxx", Source.POSTGRESQL, ["gzip cannot unpack"]),
        (
            gzip.compress(HEADER + GOOD, mtime=0)[:-9],
            Source.SNOWFLAKE,
            ["gzip cannot unpack", "Copy it again"],
        ),
        (
            gzip.compress(as_csvlog(make_stream(3)), mtime=0)[:10] + b"\x07",
            Source.SNOWFLAKE,
            ["gzip cannot unpack"],
        ),
        (
            gzip.compress(as_csvlog(make_stream(3)), mtime=0)[:10] + b"\x07",
            Source.POSTGRESQL,
            ["gzip cannot unpack"],
        ),
        (HEADER + b"q1,\xff,2026-03-01\n", Source.SNOWFLAKE, ["not UTF-8"]),
        (as_csvlog(make_stream(3)) + b"\xff", Source.POSTGRESQL, ["not UTF-8"]),
        (line("nothing to see"), Source.POSTGRESQL, ["no statement", "log_min_duration_statement"]),
        (
            line("duration: 1 ms  statement: SELECT 1", timestamp="2026-03-01 12:00:00.000 CET"),
            Source.POSTGRESQL,
            ["line 1", "'CET'", "--timezone"],
        ),
    ],
)
def test_bad_input_is_named_with_its_place_and_cure(
    body: bytes, source: Source, parts: list[str], tmp_path: Path
) -> None:
    error = bad(body, source, tmp_path)
    for part in parts:
        assert part in error


def test_two_zones_need_files_of_their_own(tmp_path: Path) -> None:
    body = line("duration: 1 ms  statement: SELECT 1", timestamp="2026-07-01 12:00:00.000 CEST")
    _, entries = read_body(body, Source.POSTGRESQL, tmp_path, options=Options(timezone="Europe/Berlin"))
    assert entries[0]["timestamp"] == datetime(2026, 7, 1, 9, 59, 59, 999_000, UTC).timestamp() * 1000
    other = line("duration: 1 ms  statement: SELECT 1", timestamp="2026-07-01 12:00:00.000 PDT")
    error = bad(other, Source.POSTGRESQL, tmp_path, timezone="Europe/Berlin")
    assert "'PDT'" in error
    assert "Give the files of each zone alone" in error
    assert "no time zone 'Berlin'" in bad(other, Source.POSTGRESQL, tmp_path, timezone="Berlin")


def test_a_text_of_a_megabyte_is_read_and_not_parsed(tmp_path: Path) -> None:
    long = b"SELECT " + b"1 + " * 300_000 + b"1"
    body = (
        HEADER + GOOD + GOOD.replace(b"q1", b"q3").replace(b"q2", b"q4") + b"q5," + long + b",2026-03-01Z\n"
    )
    counted, _ = read_body(body.replace(b"2026-03-01Z", b"2026-03-01 00:00:00Z"), Source.SNOWFLAKE, tmp_path)
    assert (counted.rows, counted.truncated) == (5, 1)


def test_a_file_that_grows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_bytes(as_snowflake(make_stream(20_050)))
    choices = Choices(source=Source.SNOWFLAKE)
    reading = write_entries(
        path, choices, digest=choices.digest(path), directory=tmp_path / "tree", now_ms=NOW
    )
    next(reading)
    with path.open("ab") as stream:
        stream.write(b"\n")
    with pytest.raises(BadHistory, match=r"changed while it was read\. Copy it"):
        list(reading)


def test_missing_columns_are_named_with_what_is_lost(tmp_path: Path) -> None:
    counted, _ = read_body(HEADER + GOOD, Source.SNOWFLAKE, tmp_path)
    assert counted.missing["execution_time"] == "time in the warehouse, savings and the bill"


TWO_QUERIES = (
    b"QUERY_ID,QUERY_TEXT,DATABASE_NAME,SCHEMA_NAME,START_TIME\n"
    b"q1,SELECT x FROM recent,SHOP,PUBLIC,2026-03-01 12:00:00Z\n"
    b"q2,INSERT INTO log SELECT * FROM TABLE(f()),SHOP,PUBLIC,2026-03-01 12:01:00Z\n"
)


def accessed(domain: str, name: str | None) -> dict[str, Any]:
    return {"objectDomain": domain, "objectName": name, "columns": []}


@pytest.mark.parametrize("is_text", [True, False])
def test_accessed_tables_are_those_that_snowflake_found(is_text: bool, tmp_path: Path) -> None:
    rows = [
        {
            "QUERY_ID": "q2",
            "DIRECT_OBJECTS_ACCESSED": [
                accessed("Stage", "SHOP.PUBLIC.S"),
                accessed("Function", "F"),
                accessed("Stage", None),
            ],
            "OBJECTS_MODIFIED": [accessed("Table", 'SHOP."Odd".LOG')],
        },
        {
            "QUERY_ID": "other",
            "DIRECT_OBJECTS_ACCESSED": [accessed("Table", "A.B.C")],
            "OBJECTS_MODIFIED": [],
        },
    ]
    if is_text:
        # As CSV and Parquet have arrays of Snowflake.
        rows = [{key: v if key == "QUERY_ID" else json.dumps(v) for key, v in row.items()} for row in rows]
    access, path = tmp_path / "access.json", tmp_path / "history"
    access.write_text("\n".join(map(json.dumps, rows)))
    path.write_bytes(TWO_QUERIES)
    accesses = read_accesses(access)
    choices = Choices(source=Source.SNOWFLAKE, accesses=accesses)
    _, entries = read(path, choices, tmp_path / "1")
    assert [(entry["tables"], entry["tableCount"]) for entry in entries] == [
        ('["SHOP.PUBLIC.recent"]', 1),
        ('["SHOP.Odd.LOG"]', 1),
    ]
    assert choices.digest(path) != Choices(source=Source.SNOWFLAKE).digest(path)
    # Names of both are hidden, in whatever case.
    hashed = Choices(source=Source.SNOWFLAKE, accesses=accesses, hashed=frozenset(Hashed), key=b"secret")
    _, hidden = read(path, hashed, tmp_path / "2")
    text = json.dumps([[entry["standardizedSql"], entry["tables"]] for entry in hidden]).lower()
    assert not {word for word in ("recent", "odd", "log", "shop") if word in text}


def test_a_bad_file_of_accesses_is_named_with_its_row(tmp_path: Path) -> None:
    access, path = tmp_path / "access.csv", tmp_path / "history"
    path.write_bytes(TWO_QUERIES)
    for body, message in (
        ("QUERY_ID,DIRECT_OBJECTS_ACCESSED\nq1,nonsense\n", r"access\.csv, row 1: the objects of query q1"),
        ("QUERY_ID,DIRECT_OBJECTS_ACCESSED\nq1,{}\n", r"access\.csv, row 1: the objects of query q1"),
        ("QUERY_ID\nq1\n", "has no column DIRECT_OBJECTS_ACCESSED"),
    ):
        access.write_text(body)
        with pytest.raises(BadHistory, match=message):
            read_accesses(access)
    access.write_text("QUERY_ID,DIRECT_OBJECTS_ACCESSED\nq1,[]\n")
    choices = Choices(source=Source.SNOWFLAKE, accesses=read_accesses(access))
    counted, entries = read(path, choices, tmp_path)
    assert (entries[0]["tables"], entries[0]["tableCount"]) == (None, 0)
    assert "which tables statements write" in counted.missing["objects_modified"]
