"""The DuckDB that a process shares: its sessions are separate, and it is replaced after a crash."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from uuid import uuid4

import duckdb
import pytest

from analytics.numbers.store import ended_after, new_engine, shared_engine
from analytics.numbers.users import UserSource, user_document
from tests.analytics import oracle
from tests.analytics.builds import TENANT, merge, roll_day, store_files

DAY = date(2026, 3, 1)
USERS = [f"user {number}" for number in range(24)]


def test_sessions_of_many_threads_are_separate(tmp_path: Path) -> None:
    body = b"\n".join(
        json.dumps({"userName": user, "standardizedSql": f"SELECT {number}", "cacheStatus": "HIT"}).encode()
        for number, user in enumerate(USERS)
    )
    store = store_files(tmp_path / "store", {DAY: {"00/a.json": body}})
    _, part = roll_day(store, DAY, directory=tmp_path / "store" / "built")
    assert part is not None
    merged = merge([part], directory=tmp_path / "store" / "merged")
    keys = {table: path.removeprefix(f"{tmp_path}/store/") for table, path in merged.items()}
    rows = oracle.read_day({"00/a.json": body}, DAY)

    def read(user: str) -> bytes:
        # Each call has another ETag, so no document comes from the cache.
        source = UserSource(TENANT, user, "2026-03", {"2026-03": keys}, uuid4().hex)
        document = user_document(store, source)
        assert isinstance(document, bytes)
        return document

    with ThreadPoolExecutor(8) as pool:
        documents = list(pool.map(read, USERS * 2))
    for user, document in zip(USERS * 2, documents, strict=True):
        assert json.loads(document) == oracle.month_document(oracle.for_user(rows, user), 3)


def test_a_duckdb_that_refuses_all_queries_is_replaced() -> None:
    with shared_engine() as engine:
        engine.connection.execute("CREATE TABLE mark AS SELECT 1")
    with shared_engine() as engine:
        assert engine.connection.execute("FROM mark").fetchall() == [(1,)]
    with pytest.raises(duckdb.FatalException), shared_engine():
        raise duckdb.FatalException("the database has been invalidated")
    with shared_engine() as engine, pytest.raises(duckdb.CatalogException):
        engine.connection.execute("FROM mark")


def test_a_time_that_ends_between_two_statements_ends_the_next() -> None:
    with new_engine() as engine, ended_after(0.05, engine.connection):
        assert engine.connection.execute("SELECT 1").fetchall() == [(1,)]
        time.sleep(0.2)
        with pytest.raises(duckdb.InterruptException):
            engine.connection.execute(
                "SELECT sum(a.range * b.range) FROM range(10_000_000) a, range(1_000) b"
            )
