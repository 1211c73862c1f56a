"""Logs whose best caching is known, and the log of a Gateway with some rulesets."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analytics.demo.profile import Markers, TenantGateway, hash_query
from logs.layout import DAY_MS
from rules.language import read_rules
from tests.analytics.replay.streams import Row, make_row


@dataclass(frozen=True)
class Arrival:
    """A request that arrives: its time in ms from the first midnight, what it asks, and what that takes."""

    at: int
    statement: str
    tables: tuple[str, ...]
    values: str = "[]"
    ms: int = 1000
    is_change: bool = False
    flags: tuple[tuple[str, Any], ...] = ()


def read(statement: str, table: str, *, at: int, value: int = 0, ms: int = 1000, **flags: Any) -> Arrival:
    return Arrival(at, statement, (table,), json.dumps([value]), ms, flags=tuple(flags.items()))


def change(table: str, *, at: int, ms: int = 100) -> Arrival:
    return Arrival(at, f"UPDATE {table} SET a = 1", (table,), "[]", ms, is_change=True)


def make_log(arrivals: Iterable[Arrival], *rulesets: tuple[int, Sequence[Mapping[str, Any]]]) -> list[Row]:
    """Return the log of a Gateway with these rulesets, each from its time on."""
    waiting = [(starts_at, read_rules(documents)) for starts_at, documents in rulesets]
    markers = Markers()
    gateway: TenantGateway[None] = TenantGateway("t", cutoff=markers.cutoff)
    log = []
    for number, arrival in enumerate(sorted(arrivals, key=lambda found: found.at)):
        while waiting and waiting[0][0] <= arrival.at:
            starts_at, rules = waiting.pop(0)
            gateway.publish(rules, cache_bust=str(starts_at))
        columns = {
            "standardizedSql": arrival.statement,
            "parameterValues": arrival.values,
            "tables": json.dumps(arrival.tables),
            "isReadOnly": not arrival.is_change,
            "isDataChange": arrival.is_change,
            "isDDL": False,
            "hasNonDeterministicFunctions": False,
            "userName": "ann",
            **dict(arrival.flags),
        }
        decision = gateway.decide(columns)
        query_hash = hash_query(arrival.statement, arrival.values)
        answer = gateway.answer(decision, columns, query_hash, at=arrival.at)
        done = arrival.at + arrival.ms
        if answer.status == "MISS" or answer.refreshes:
            gateway.store(answer, None, as_of=done, ready_at=done)
        for target in (target for firing in decision.fired for target in firing.targets):
            markers.add(target, at=done)
        is_executed = answer.status in {"MISS", "BYPASS", "PASSTHROUGH"}
        log.append(
            make_row(
                at=arrival.at,
                logId=f"id{number:06}",
                cacheStatus=answer.status,
                missReason=answer.miss_reason,
                matchedRule=decision.rule_id,
                cacheKey=answer.key or None,
                queryHash=query_hash if answer.key else hash_query(arrival.statement),
                warehouseExecutionTimeMs=arrival.ms if is_executed else None,
                responseSize=100,
                **columns,
            )
        )
    return log


#: Statements, their table, how many values they are asked for with (0: none), and their time.
#: The first is the most frequent.
_OFFICE = (
    ("SELECT sum(x) FROM m.ads WHERE c = ?", "m.ads", 4, 9000),
    ("SELECT * FROM m.visits WHERE day = ?", "m.visits", 9, 4000),
    ("SELECT * FROM s.orders WHERE id = ?", "s.orders", 30, 700),
    ("SELECT count(*) FROM s.orders", "s.orders", 0, 2500),
    ("SELECT current_user, * FROM h.staff", "h.staff", 0, 3000),
    ("SELECT now(), * FROM h.clock", "h.clock", 0, 3000),
    ("SELECT * FROM k.stock WHERE id = ?", "k.stock", 3, 5000),
)


def office_traffic(
    chance: random.Random, *, days: int, growth: float = 0.0, per_day: int = 120
) -> list[Arrival]:
    """Return the traffic of a few tables that are read, changed and joined in different ways.

    Args:
        growth: how much more traffic each day has than the first one.
    """
    arrivals = []
    for day in range(days):
        for _ in range(int(per_day * (1 + growth * day))):
            at = day * DAY_MS + chance.randrange(DAY_MS)
            first, *rest = (
                read(
                    statement,
                    table,
                    at=at,
                    value=chance.randrange(values) if values else 0,
                    ms=ms,
                    **{"hasNonDeterministicFunctions": True} if "now()" in statement else {},
                )
                for statement, table, values, ms in _OFFICE
            )
            arrivals.append(chance.choice([first, first, first, *rest]))
        arrivals += [change("s.orders", at=day * DAY_MS + chance.randrange(DAY_MS)) for _ in range(6)]
        arrivals += [change("k.stock", at=day * DAY_MS + minute * 60_000) for minute in range(0, 1440, 3)]
    return arrivals
