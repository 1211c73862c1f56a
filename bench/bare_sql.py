"""What one would build by hand: DuckDB behind HTTP, without tenants, guard, audit and processes of their own.

An ASGI application for one granian worker: POST a statement, get its rows as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from bench.harness import ROOT, Caller, free_port, wait_for
from logs import columns


def open_engine(folder: Path | str, *, threads: int) -> duckdb.DuckDBPyConnection:
    """Return an engine in this process, with the same view as in the service's query processes."""
    connection = duckdb.connect(config={"threads": threads})
    names = ", ".join(f'"{column.name}"' for column in columns.COLUMNS)
    connection.execute(
        f"CREATE VIEW proxy_logs AS SELECT {names}, day FROM read_parquet('{folder}/*/*.parquet',"
        " hive_partitioning = true, hive_types = {'day': VARCHAR})"
    )
    return connection


@contextlib.contextmanager
def bare_server(folder: Path, *, threads: int) -> Iterator[Caller]:
    """Serve the log in a folder. Yield a caller with a kept connection."""
    port = free_port()
    command = [sys.executable, "-m", "granian", "--interface", "asginl", "--port", str(port)]
    variables = {**os.environ, "BENCH_FOLDER": str(folder), "BENCH_THREADS": str(threads)}
    server = subprocess.Popen(
        [*command, "bench.bare_sql:make_application", "--factory"],
        cwd=ROOT,
        env=variables,
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_for(port, server)
        yield Caller(port, "")
    finally:
        server.terminate()
        server.wait(20)


def make_application() -> Callable[..., Awaitable[None]]:
    """Return the ASGI application."""
    engine = open_engine(os.environ["BENCH_FOLDER"], threads=int(os.environ["BENCH_THREADS"]))

    def run(statement: str) -> bytes:
        cursor = engine.cursor().execute(statement)
        names = [name for name, *_ in cursor.description or ()]
        return msgspec.json.encode([dict(zip(names, row, strict=True)) for row in cursor.fetchall()])

    async def application(_scope: Any, receive: Any, send: Any) -> None:
        body, is_complete = b"", False
        while not is_complete:
            message = await receive()
            body += message.get("body", b"")
            is_complete = not message.get("more_body")
        rows = await asyncio.to_thread(run, body.decode())
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(rows)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": rows})

    return application
