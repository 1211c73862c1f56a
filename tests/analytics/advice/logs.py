"""Logs whose best caching is known, and a Gateway in plain Python that makes the log of a ruleset."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from logs.layout import DAY_MS
from rules.conditions import read_request
from rules.language import Action, read_rules
from rules.match import decide
from tests.analytics.replay.streams import START, Row, make_row

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Mapping, Sequence


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
    """Return the log of a Gateway with these rulesets, each from its time on. A new one clears the cache."""
    rules_by_time = [(starts_at, read_rules(documents)) for starts_at, documents in rulesets]
    cache: dict[Any, tuple[int, int]] = {}
    markers: dict[str, int] = {}
    epoch = -1
    log = []
    for number, arrival in enumerate(sorted(arrivals, key=lambda found: found.at)):
        now = max(index for index, (starts_at, _) in enumerate(rules_by_time) if starts_at <= arrival.at)
        if now != epoch:
            cache, markers, epoch = {}, {}, now
        rules = rules_by_time[now][1]
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
        decision = decide(rules, read_request(columns))
        rule = next((rule for rule in rules if rule.id == decision.rule_id), None)
        done = arrival.at + arrival.ms
        if rule is None:
            status = "PASSTHROUGH"
        elif decision.action is Action.CACHE:
            key = (rule.id, arrival.statement, arrival.values)
            born, ttl = cache.get(key, (-DAY_MS, 0))
            marker = markers.get(rule.id, -DAY_MS)
            is_marked = born < marker <= arrival.at
            if born <= arrival.at < born + ttl and not is_marked:
                status = "HIT"
            elif born > arrival.at:
                status = "HOLD"
            else:
                status = "MISS"
                cache[key] = (done, 1000 * rule.ttl_seconds)
        else:
            status = "BLOCKED" if decision.action is Action.DENY else "BYPASS"
        for firing in decision.fired:
            for target in firing.targets:
                markers[target] = done
        is_keyed = status in {"HIT", "MISS", "HOLD"}
        log.append(
            make_row(
                at=arrival.at,
                logId=f"id{number:06}",
                cacheStatus=status,
                matchedRule=decision.rule_id,
                cacheKey=f"{decision.rule_id} {arrival.statement} {arrival.values}" if is_keyed else None,
                queryHash=f"{arrival.statement} {arrival.values}" if is_keyed else arrival.statement,
                warehouseExecutionTimeMs=arrival.ms if status in {"MISS", "BYPASS", "PASSTHROUGH"} else None,
                responseSize=100,
                **columns,
            )
        )
    return log


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
            arrivals.append(
                chance.choice(
                    [
                        *[
                            read(
                                "SELECT sum(x) FROM m.ads WHERE c = ?",
                                "m.ads",
                                at=at,
                                value=chance.randrange(4),
                                ms=9000,
                            )
                        ]
                        * 3,
                        read(
                            "SELECT * FROM m.visits WHERE day = ?",
                            "m.visits",
                            at=at,
                            value=chance.randrange(9),
                            ms=4000,
                        ),
                        read(
                            "SELECT * FROM s.orders WHERE id = ?",
                            "s.orders",
                            at=at,
                            value=chance.randrange(30),
                            ms=700,
                        ),
                        read("SELECT count(*) FROM s.orders", "s.orders", at=at, ms=2500),
                        read("SELECT current_user, * FROM h.staff", "h.staff", at=at, ms=3000),
                        read(
                            "SELECT now(), * FROM h.clock",
                            "h.clock",
                            at=at,
                            ms=3000,
                            hasNonDeterministicFunctions=True,
                        ),
                        read(
                            "SELECT * FROM k.stock WHERE id = ?",
                            "k.stock",
                            at=at,
                            value=chance.randrange(3),
                            ms=5000,
                        ),
                    ]
                )
            )
        arrivals += [change("s.orders", at=day * DAY_MS + chance.randrange(DAY_MS)) for _ in range(6)]
        arrivals += [change("k.stock", at=day * DAY_MS + minute * 60_000) for minute in range(0, 1440, 3)]
    return arrivals


__all__ = ["DAY_MS", "START", "Arrival", "change", "make_log", "office_traffic", "read"]
