"""Random rulesets and streams of log rows for the replay, and the Parquet files that hold them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from analytics.demo.generate import generate
from analytics.replay.load import DayFile, make_schema
from analytics.replay.replayer import replay
from logs.columns import COLUMNS, SqlType
from logs.layout import DAY_MS, day_start_ms

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from analytics.demo.profile import Profile
    from analytics.replay.load import Job

Row = dict[str, Any]
FIRST = date(2026, 3, 1)
START = day_start_ms(FIRST)
DAYS = tuple(FIRST + timedelta(offset) for offset in range(3))
TABLES = ("sales.orders", '"Sales"."Items"', "hr.people")
STATEMENTS = (
    "SELECT * FROM sales.orders WHERE id = ?",
    "SELECT * FROM sales.orders WHERE id = ? AND day = $1",
    "SELECT count(*) FROM hr.people WHERE name = 'x'",
    "SELECT * FROM Sales.Items",
    "UPDATE sales.orders SET a = ? WHERE id = ?",
    'INSERT INTO "sales"."items" SELECT * FROM hr.people',
    "CALL refresh(:day)",
)
VARY_COLUMNS = (
    "userName",
    "userTokenHash",
    "sessionId",
    "serverHostname",
    "host",
    "clientIp",
    "operationType",
)
STATUSES = ("HIT", "MISS", "BYPASS", "PASSTHROUGH", "BLOCKED", "HOLD", "ERROR", "INVALIDATION_ERROR")
_TYPES: dict[SqlType, pa.DataType] = {
    SqlType.VARCHAR: pa.string(),
    SqlType.BIGINT: pa.int64(),
    SqlType.INTEGER: pa.int32(),
    SqlType.BOOLEAN: pa.bool_(),
}
SCHEMA = make_schema(**{column.name: _TYPES[column.type] for column in COLUMNS})


def make_row(**fields: Any) -> Row:
    """Return a row of the first day. ``at`` is its time in ms from midnight."""
    at = fields.pop("at", 0)
    row = dict.fromkeys(column.name for column in COLUMNS)
    row |= {
        "timestamp": START + at,
        "standardizedSql": "SELECT 1",
        "cacheStatus": "MISS",
        "responseSize": 0,
        "responseTimeMs": 0,
    }
    row |= fields
    if "day" not in fields:
        row["day"] = (FIRST + timedelta((row["timestamp"] or START) // DAY_MS - START // DAY_MS)).isoformat()
    return row


def write_days(rows: Sequence[Row], directory: Path) -> list[DayFile]:
    """Write the rows of each day as they are stored: by time and logId."""
    files = []
    for day in sorted({row["day"] for row in rows}):
        of_day = sorted(
            (row for row in rows if row["day"] == day),
            key=lambda row: (row["timestamp"] or 0, row["logId"] or ""),
        )
        place = directory / f"day={day}"
        place.mkdir(parents=True, exist_ok=True)
        path = place / "rows.parquet"
        pq.write_table(pa.Table.from_pylist(of_day, SCHEMA), path)
        files.append(DayFile(date.fromisoformat(day), str(path)))
    return files


def demo_rows(profile: Profile, *, tenant_id: str, days: int, entries: int) -> list[Row]:
    """Return the rows of some days of a tenant of the demo."""
    hours = generate(profile, tenant_id=tenant_id, first_day=FIRST, days=days, entries=entries)
    return [
        {**entry, "day": (FIRST + timedelta(number // 24)).isoformat()}
        for number, hour in enumerate(hours)
        for entry in hour.entries
    ]


def random_rules(chance: random.Random) -> list[dict[str, Any]]:
    """Return up to six rules that decide different parts of the stream."""
    rules: list[dict[str, Any]] = []
    count = chance.randint(0, 6)
    for number in range(count):
        rule: dict[str, Any] = {"id": f"r{number}", "conditions": _conditions(chance)}
        rule["action"] = chance.choice(["cache"] * 5 + ["bypass", "deny", "invalidate"])
        rule["ttlSeconds"] = chance.choice([1, 1, 2, 5, 20, 3600])
        if rule["action"] == "cache" and chance.random() < 0.6:
            rule["staleWhileRevalidate"] = chance.choice([0, 3, 30, 300, 300])
        if rule["action"] == "cache" and chance.random() < 0.7:
            rule["varyBy"] = chance.sample(VARY_COLUMNS, chance.choice([0, 1, 1, 1, 2, 3]))
        if rule["action"] == "invalidate" or chance.random() < 0.3:
            targets = [f"r{chance.randrange(count)}" for _ in range(chance.randint(1, 3))]
            rule["invalidateRules"] = targets
            rule["requireInvalidation"] = chance.random() < 0.4
        if chance.random() < 0.1:
            rule["enabled"] = False
        rules.append(rule)
    return rules


def random_draft(chance: random.Random, rules: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rules with one of them disabled, moved to the front, or with another TTL."""
    number = chance.randrange(max(len(rules), 1))
    before, changed, after = rules[:number], rules[number : number + 1], rules[number + 1 :]
    return chance.choice(
        [
            [*changed, *before, *after],
            [*before, *({**rule, "enabled": False} for rule in changed), *after],
            [*before, *({**rule, "ttlSeconds": 7} for rule in changed), *after],
        ]
    )


def _conditions(chance: random.Random) -> dict[str, Any]:
    return chance.choice(
        [
            *[{}, {"isReadOnly": True}] * 3,
            {"isDataChange": True},
            {"isDataChange": {"ne": True}},
            {"userName": {"in": ["ann", "bob"]}},
            {"userName": {"ne": "ann"}},
            {"tables": {"containsAny": ["sales.*"]}},
            {"tables": {"containsAny": ["SALES.*"], "ignoreCase": True}},
            {"standardizedSql": {"regex": "^SELECT"}},
            {"not": {"clientIp": {"cidr": "10.0.0.0/8"}}},
            {"any": [{"cacheOverride": "nocache"}, {"userName": {"exists": False}}]},
            {"hasNonDeterministicFunctions": True, "isReadOnly": True},
        ]
    )


def random_rows(chance: random.Random, count: int) -> list[Row]:
    """Return rows of two days that collide in every way: equal times, equal keys, nulls, odd texts."""
    span = chance.choice([10_000, 60_000, 600_000])
    is_keyed = chance.random()
    # The share of requests under which the log's Gateway keeps users apart.
    is_per_user = chance.choice([0, 0, 0.9, 1, 1])
    # Few statements and values, so that requests are often for the same result.
    statements = [*chance.sample(STATEMENTS, chance.randint(1, 3)), chance.choice(STATEMENTS[4:6])]
    parameters = chance.sample([None, "[]", "[1]", "[1, 2]", '["x"]', '{"day": 1}', "[", "3"], 2)
    table_lists = [json.dumps(chance.sample(TABLES, size)) for size in (0, 1, 2, 2)] + [None, "{"]
    rows = []
    versions = sorted(chance.choice([None, 1, 2, 3]) or 0 for _ in range(count))
    for number in range(count):
        day = chance.choice([0, 1, 1])
        statement = chance.choice(statements)
        is_change = statement.startswith(("UPDATE", "INSERT"))
        values = chance.choice(parameters)
        status = chance.choice([*STATUSES, *["HIT", "MISS"] * 6, None, "SPOOFED"])
        has_key = chance.random() < is_keyed
        user = chance.choice([None, "ann", "bob", "eve"])
        key = f"k{user}" if is_per_user and chance.random() < is_per_user else "k"
        hidden = chance.choice("abc")
        at = day * DAY_MS + chance.randrange(span) // chance.choice([1, 1000]) * chance.choice([1, 1000])
        rows.append(
            make_row(
                at=at % (2 * DAY_MS),
                logId=chance.choice([None, f"id{chance.randrange(count)}", f"x{number}"]),
                standardizedSql=chance.choice([statement] * 12 + [None]),
                parameterValues=values,
                cacheStatus=status,
                cacheKey=key if has_key else None,
                queryHash=chance.choice([f"{statement}{hidden}"] * 6 + [None, "shared"]) if has_key else None,
                cacheKeyVersion=(versions[number] or None) if chance.random() < 0.1 else None,
                matchedRule=chance.choice([None, "r0", "r1", "r2"]),
                warehouseExecutionTimeMs=chance.choice([None, -5, 0, 0, 3, 200, 700, 5000]),
                responseSize=chance.choice([-1, 0, 10, 1000]),
                isReadOnly=chance.choice([not is_change, None]),
                isDataChange=chance.choice([is_change, is_change, None]),
                isDDL=chance.choice([False, None, False, True]) if chance.random() < 0.1 else None,
                cacheOverride=chance.choice([*[None] * 9, "nocache", "cache"]),
                hasNonDeterministicFunctions=chance.choice([*[None, False] * 4, True]),
                userName=user,
                # Users share some of these, so that the order of columns matters.
                userTokenHash=chance.choice([None, "ann", "bob", user, user, user]),
                sessionId=chance.choice([user, user, "s", "s", "t", None]),
                serverHostname=chance.choice(["w", "w", "ann"]),
                host=chance.choice(["w", "w", "w", "\u00e9", "e\u0301", None]),
                operationType=chance.choice(["QUERY", "QUERY", "", None]),
                clientIp=chance.choice([None, "10.1.2.3", "192.168.0.1", "?"]),
                tables=chance.choice(table_lists),
            )
        )
        if status is None and chance.random() < 0.2:
            rows[-1]["timestamp"] = None
    return sorted(rows, key=lambda row: (row["timestamp"] or 0, row["logId"] or ""))


def run_replay(connection: DuckDBPyConnection, job: Job) -> dict[str, Any]:
    """Replay a job, and return the result as it is stored."""
    result: dict[str, Any] = msgspec.to_builtins(replay(connection, job))
    return result
