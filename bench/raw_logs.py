"""Generate raw log objects for the benchmarks: as many columns and as much repetition as on a real day."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from uuid import UUID

import msgspec

from analytics.demo.generate import generate
from analytics.demo.profile import Consumer, Driver, OneOf, Persona, Profile, Statement
from logs.layout import day_prefix

#: Distinct statements, a few of which are frequent.
_STATEMENTS = 3_000
_SCHEMAS = 13
_USERS = 60
#: Per 1,000 entries: delivered an hour late, delivered twice, of a wrong type, with unknown fields.
_LATE, _REPEATED, _WRONG, _LONGER = 3, 2, 0.1, 50

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


def make_lines(*, day: date, entries: int, seed: int) -> Iterator[tuple[int, str, bytes]]:
    """Yield at least so many entries as (hour of the prefix, file name, JSON), in the order of time."""
    chance = random.Random(f"{seed}:{day}")
    log = generate(_PROFILE, tenant_id="bench", first_day=day, days=1, entries=entries, seed=seed)
    for number, entry in ((number, entry) for number, hour in enumerate(log) for entry in hour.entries):
        draw = chance.random() * 1000
        hour = number
        if draw < _WRONG:
            entry["statusCode"] = "200"
        elif draw < _WRONG + _LATE:
            hour = min(23, number + 1)
        elif draw < _WRONG + _LATE + _LONGER:
            entry |= {"statement": entry["standardizedSql"], "responseHeaders": {"x": "1"}}
        line = _encode(entry)
        name = f"{entry['timestamp']}-{entry['logId']}"
        yield hour, name, line
        if draw > 1000 - _REPEATED:
            yield hour, f"{name}-r1", line


def _write(path: Path, body: bytes) -> None:
    # The store would sync each file to the disk.
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)


def _make_profile() -> Profile:
    statements = [
        Statement(
            text=_statement(number),
            personas=(Persona.APPLICATION,),
            slots=(OneOf(tuple(range(50))),),
            bound=True,
            ms=50 + 7 * (number % 1_000),
            size=1_000 * (number % 5_000),
            weight=(number + 1) ** -1.4,
        )
        for number in range(_STATEMENTS)
    ]
    consumers = [
        Consumer(
            name=f"user-{number}@example.net",
            persona=Persona.APPLICATION,
            client_ip=f"203.0.113.{number}",
            driver="python",
        )
        for number in range(_USERS)
    ]
    rules = [
        {
            "id": f"rule-{number}",
            "name": f"Rule {number} – daily",
            "action": "cache" if number else "bypass",
            "conditions": {"tables": {"containsAny": [f"schema_{number}.*"]}},
            "ttlSeconds": 21_600,
        }
        for number in range(_SCHEMAS - 1)
    ]
    return Profile(
        speaks_http=True,
        entries=0,
        config={
            "tenantName": "Bench",
            "fqdns": ["product-1.gw.example.net"],
            "warehouse": {
                "adapterType": "databricks",
                "serverHostname": "dbc-7f00.cloud.databricks.example",
            },
        },
        rules=tuple(rules),
        drivers={"python": Driver(user_agent="PyDatabricksSqlConnector/4.9.0")},
        probes=("SELECT 1",),
        statements=tuple(statements),
        consumers=tuple(consumers),
    )


def _statement(number: int) -> str:
    chance = random.Random(number)
    columns = ", ".join(f"t{chance.randrange(9)}.column_{chance.randrange(400)}" for _ in range(number % 40))
    table = f"schema_{(number + 1) % _SCHEMAS}.table_{number}"
    return f"SELECT {columns or '*'} FROM {table} AS t0 WHERE t0.id = ? ORDER BY 1"


_PROFILE = _make_profile()
