"""Generate raw log objects for the benchmarks: as many columns and as much repetition as on a real day."""

from __future__ import annotations

import hashlib
import os
import random
import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from logs.layout import DAY_MS, HOUR_MS, day_prefix, day_start_ms

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date
    from pathlib import Path
    from uuid import UUID


#: Distinct statements, a few of which are frequent.
_STATEMENTS = 3_000
_USERS = 60
#: Per 1,000 entries: delivered an hour late, delivered twice, of a wrong type.
_LATE, _REPEATED, _WRONG = 3, 2, 0.1

_encode = msgspec.json.Encoder().encode


def write_ndjson(root: Path, *, tenant: UUID, day: date, entries: int, seed: int = 7) -> int:
    """Write a day as one NDJSON object per hour. Return the number of bytes."""
    hours: list[list[bytes]] = [[] for _ in range(24)]
    for hour, _, line in make_lines(day=day, entries=entries, seed=seed):
        hours[hour].append(line)
    bodies = [b"\n".join(lines) for lines in hours]
    for hour, body in enumerate(bodies):
        _write(root / f"{day_prefix(tenant, day)}{hour:02}/all.json", body)
    return sum(map(len, bodies))


def write_objects(root: Path, *, tenant: UUID, day: date, entries: int, seed: int = 7) -> int:
    """Write the same day as one object per entry. Return the number of bytes."""
    size = 0
    for hour, name, line in make_lines(day=day, entries=entries, seed=seed):
        _write(root / f"{day_prefix(tenant, day)}{hour:02}/{name}.json", line)
        size += len(line)
    return size


def concatenate(folder: Path, target: Path) -> None:
    """Write the files of a folder into one, a line each: the least work that reads all of them."""
    descriptor = os.open(folder, os.O_RDONLY)
    bodies = []
    with os.scandir(descriptor) as items:
        names = sorted(item.name for item in items)
    for name in names:
        file = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        bodies.append(os.read(file, 1 << 20))
        os.close(file)
    os.close(descriptor)
    target.write_bytes(b"\n".join(bodies))


def make_lines(*, day: date, entries: int, seed: int) -> Iterator[tuple[int, str, bytes]]:
    """Yield entries as (hour of the prefix, file name, JSON), in the order of their timestamps."""
    chance = random.Random(f"{seed}:{day}")
    statements = [_statement(number) for number in range(_STATEMENTS)]
    start = day_start_ms(day)
    for number in range(entries):
        timestamp = start + number * DAY_MS // entries
        entry = _entry(chance, timestamp, statements)
        draw = chance.random() * 1000
        hour = (timestamp - start) // HOUR_MS
        if draw < _WRONG:
            entry["statusCode"] = "200"
        elif draw < _WRONG + _LATE:
            hour = min(23, hour + 1)
        line = _encode(entry)
        name = f"{timestamp}-{entry['logId']}"
        yield hour, name, line
        if draw > 1000 - _REPEATED:
            yield hour, f"{name}-r1", line


def _write(path: Path, body: bytes) -> None:
    # The store would sync each file to the disk.
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)


def _statement(number: int) -> str:
    chance = random.Random(number)
    columns = ", ".join(f"t{chance.randrange(9)}.column_{chance.randrange(400)}" for _ in range(number % 40))
    return f"SELECT {columns or '*'} FROM schema_{number % 7}.table_{number} AS t0 WHERE t0.id = ? ORDER BY 1"


def _entry(chance: random.Random, timestamp: int, statements: list[str]) -> dict[str, Any]:
    number = min(int(chance.paretovariate(0.5)) - 1, chance.randrange(1, len(statements)))
    statement = statements[number]
    user = chance.randrange(_USERS)
    status = chance.choices(["HIT", "MISS", "BYPASS", "PASSTHROUGH", "ERROR"], [55, 20, 10, 12, 3])[0]
    is_cached = status in {"HIT", "MISS"}
    parameter = chance.randrange(50)
    key = hashlib.sha256(f"{number} {parameter}".encode()).hexdigest()
    token = hashlib.sha256(str(user).encode()).hexdigest()
    return {
        "timestamp": timestamp,
        "userName": f"user-{user}@example.net",
        "statusCode": 200 if status != "ERROR" else 500,
        "responseSize": chance.randrange(-1, 5_000_000),
        "requestSize": 180 + len(statement),
        "responseTimeMs": chance.randrange(9_000),
        "warehouseExecutionTimeMs": None if status == "HIT" else chance.randrange(8_000),
        "cacheStatus": status,
        "missReason": "no-cache-entry" if status == "MISS" else None,
        "cacheKey": key if is_cached else None,
        "cacheKeyVersion": 3 if is_cached else None,
        "matchedRule": f"rule-{number % 12}",
        "matchedRuleName": f"Rule {number % 12} – daily",
        "ruleVersion": "v8",
        "cacheTtlSeconds": 3600 if is_cached else None,
        "cacheAgeSeconds": chance.randrange(3600) if status == "HIT" else None,
        "cacheExpiresAt": timestamp + 3_600_000 if is_cached else None,
        "standardizedSql": statement,
        "queryHash": key,
        "parameterValues": f"[{parameter}]",
        "statementType": "SELECT",
        "isReadOnly": True,
        "isDataChange": False,
        "isDDL": False,
        "cacheOverride": None,
        "hasParameters": True,
        "hasNonDeterministicFunctions": False,
        "tableCount": 1,
        "tables": [f"schema_{number % 7}.table_{number}"],
        "logId": str(uuid.UUID(int=chance.getrandbits(128), version=4)),
        "queryId": str(uuid.UUID(int=chance.getrandbits(128), version=4)),
        "sessionId": str(uuid.UUID(int=user, version=4)),
        "operationId": str(uuid.UUID(int=chance.getrandbits(128), version=4)),
        "operationType": "EXECUTE_STATEMENT",
        "adapterType": "databricks",
        "serverHostname": "dbc-7f00.cloud.databricks.example",
        "clientIp": f"203.0.113.{user}",
        "userTokenHash": token,
        "userAgent": "databricks-sql-connector/3.3.0 (Python 3.11)",
        "host": "product-1.gw.example.net",
        "origin": "https://bi.example.net",
        "referer": f"https://bi.example.net/d/{token[:6]}",
        "connection": "keep-alive",
        "contentType": "application/json",
        "contentLength": str(180 + len(statement)),
        "contentEncoding": None,
        "acceptEncoding": "gzip, deflate",
        "xForwardedFor": f"203.0.113.{user}, 10.21.4.9",
        "xForwardedProto": "https",
        "xForwardedHost": "product-1.gw.example.net",
        "xRealIp": f"203.0.113.{user}",
        **({"statement": statement, "responseHeaders": {"x": "1"}} if timestamp % 20 == 0 else {}),
    }
