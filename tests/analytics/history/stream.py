"""A stream of statements that is known, and the histories that warehouses would write of it.

The histories are written from the documentation of the vendors, not from the readers.
"""

from __future__ import annotations

import csv
import io
import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

FIRST = datetime(2026, 3, 1, 7, tzinfo=UTC)


@dataclass(frozen=True)
class Sent:
    """A statement that was sent: its text with ``?`` for the literals, and these; None if they are hidden."""

    text: str
    values: tuple[Any, ...] | None
    tables: tuple[str, ...]
    user: str
    at: datetime
    ms: int
    kind: str = "SELECT"

    @property
    def written(self) -> str:
        """The statement with its literals."""
        if self.values is None:
            return self.text
        parts = self.text.split("?")
        literals = [
            "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
            for value in self.values
        ]
        return "".join(part + literal for part, literal in zip(parts, [*literals, ""], strict=True))


def make_stream(count: int, seed: int = 1) -> list[Sent]:
    """Return statements of three days, whose times have milliseconds."""
    chance = random.Random(seed)  # noqa: S311
    shapes: list[tuple[str, tuple[str, ...], str]] = [
        ("SELECT sum(amount) FROM sales.orders WHERE day = ? AND region = ?", ("sales.orders",), "SELECT"),
        (
            "WITH top AS (SELECT * FROM sales.orders LIMIT ?) SELECT * FROM top JOIN crm.people p ON id = ?",
            ("sales.orders", "crm.people"),
            "SELECT",
        ),
        ('SELECT count(*) FROM "sales"."items" i WHERE i.name = ? -- ?\n', ("sales.items",), "SELECT"),
        ("INSERT INTO sales.orders (amount, name) VALUES (?, ?)", ("sales.orders",), "INSERT"),
        ("UPDATE crm.people SET name = ? WHERE id = ?", ("crm.people",), "UPDATE"),
    ]
    sent = []
    for number in range(count):
        text, tables, kind = shapes[min(chance.randrange(8), 7) % len(shapes) if number % 9 else 0]
        text = text.split(" -- ")[0] if number % 2 else text.replace(" -- ?\n", "")
        values = tuple(
            chance.choice(["2026-01-01", "it's", "a;b", "é", 7, 2.5, 1000]) for _ in range(text.count("?"))
        )
        at = FIRST + timedelta(milliseconds=number * 60_123 % (3 * 86_400_000) + chance.randrange(1000))
        user = chance.choice(["ana", "bo"])
        sent.append(Sent(text, values, tables, user, at, chance.randrange(5, 4000), kind))
    return sent


def _zoned(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def as_snowflake(sent: list[Sent]) -> bytes:
    """Return a CSV of QUERY_HISTORY."""
    names = [
        "QUERY_ID", "QUERY_TEXT", "DATABASE_NAME", "SCHEMA_NAME", "QUERY_TYPE", "SESSION_ID", "USER_NAME",
        "WAREHOUSE_NAME", "WAREHOUSE_SIZE", "CLUSTER_NUMBER", "EXECUTION_STATUS", "START_TIME",
        "TOTAL_ELAPSED_TIME", "EXECUTION_TIME", "BYTES_SCANNED", "ROLE_NAME",
    ]  # fmt: skip
    rows = [
        [
            f"q-{number}", one.written, "SHOP", "PUBLIC", one.kind, 5, one.user, "WH", "X-Small", 1,
            "SUCCESS",
            f"{_zoned(one.at.astimezone(UTC) - timedelta(hours=8))} -0800", one.ms + 3, one.ms, 100, "R",
        ]
        for number, one in enumerate(sent)
    ]  # fmt: skip
    return _csv([names, *rows])


def as_databricks(sent: list[Sent]) -> bytes:
    """Return lines of JSON of system.query.history."""
    return b"".join(
        json.dumps(
            {
                "statement_id": f"q-{number}",
                "executed_by": one.user,
                "session_id": "s",
                "execution_status": "FINISHED",
                "compute": {"type": "WAREHOUSE", "warehouse_id": "w1"},
                # Two quotes end one text and begin another.
                "statement_text": one.written.replace("''", "\\'").replace('"', "`"),
                "statement_type": one.kind,
                "start_time": f"{one.at:%Y-%m-%dT%H:%M:%S}.{one.at.microsecond // 1000:03}Z",
                "total_duration_ms": one.ms + 3,
                "execution_duration_ms": one.ms,
                "from_result_cache": False,
            }
        ).encode()
        + b"\n"
        for number, one in enumerate(sent)
    )


def _csvlog(one: Sent, number: int) -> list[str]:
    ended = one.at + timedelta(milliseconds=one.ms)
    head = [_zoned(ended) + " UTC", one.user, "shop", "77", "10.0.0.1:5", "66c0.4d", str(number + 1)]
    middle = [one.kind, "2026-03-01 00:00:00 UTC", "3/1", "0", "LOG", "00000"]
    message = f"duration: {one.ms}.000 ms  statement: {one.written}"
    return [*head, *middle, message, "", "", "", "", "", "", "", "", "psql", "client backend", "", "0"]


def as_csvlog(sent: list[Sent]) -> bytes:
    return _csv([_csvlog(one, number) for number, one in enumerate(sent)])


def as_jsonlog(sent: list[Sent]) -> bytes:
    lines = []
    for number, one in enumerate(sent):
        row = _csvlog(one, number)
        record = {
            "timestamp": row[0], "user": row[1], "dbname": row[2], "pid": 77, "remote_host": "10.0.0.1",
            "session_id": row[5], "line_num": number + 1, "ps": row[7], "error_severity": row[11],
            "message": row[13], "application_name": row[22], "backend_type": row[23], "query_id": 0,
        }  # fmt: skip
        lines.append(json.dumps(record) + "\n")
    return "".join(lines).encode()


#: The setting of `as_text`.
PREFIX = "%m [%p] %q%u@%d/%a %c:%l "


def as_text(sent: list[Sent]) -> bytes:
    lines = []
    for number, one in enumerate(sent):
        row = _csvlog(one, number)
        message = row[13].replace("\n", "\n\t")
        lines.append(f"{row[0]} [77] {row[1]}@{row[2]}/psql 66c0.4d:{row[6]} LOG:  {message}\n")
    return "".join(lines).encode()


def _csv(rows: list[list[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
