"""Tests of how the simulated Gateway answers: the judge of the replay says the same of each request."""

from __future__ import annotations

import random
from collections import Counter

from rules.language import read_rules
from tests.analytics.advice.logs import Arrival, make_log
from tests.analytics.replay.judge import judge
from tests.analytics.replay.streams import DAYS, START, random_rules

STATEMENTS = {"SELECT a FROM s.t WHERE b = ?": 3_000, "SELECT ? FROM s.t": 1_000, "UPDATE s.t SET a = ?": 400}
USERS = ("ann", "bob", "eve", None)


def arrivals(chance: random.Random) -> list[Arrival]:
    span, step = chance.choice([5_000, 60_000, 600_000]), chance.choice([1, 1_000])
    found = []
    for _ in range(60):
        statement = chance.choice([*list(STATEMENTS)[:2] * 3, *STATEMENTS])
        found.append(
            Arrival(
                at=chance.randrange(span) // step * step,
                statement=statement,
                tables=("sales.orders",),
                values=chance.choice(["[1]", "[2]"]),
                ms=STATEMENTS[statement],
                is_change=statement.startswith("UPDATE"),
                flags=(("userName", chance.choice(USERS)),),
            )
        )
    return found


def test_the_judge_of_the_replay_agrees_with_each_answer() -> None:
    seen: Counter[str] = Counter()
    for seed in range(120):
        chance = random.Random(seed)  # noqa: S311
        rulesets = [(0, random_rules(chance)), (START + chance.randrange(60_000), random_rules(chance))]
        log = make_log(arrivals(chance), *[(at - START, rules) for at, rules in rulesets])
        judgement = judge(
            log,
            rules=(),
            rulesets=[(at, read_rules(rules)) for at, rules in rulesets],
            changes=[rulesets[1][0]],
            counted={DAYS[0].isoformat()},
            nocache=False,
            non_deterministic=False,
        )
        expected = [(row["cacheStatus"], row["missReason"]) for row in log]
        assert [(request.status, request.reason) for request in judgement.requests] == expected, seed
        seen.update(status for status, _ in expected)
        seen["stale"] += judgement.total()["staleHits"]
        seen["invalidated"] += judgement.total()["invalidation-marker"]
        seen["expired"] += judgement.total()["ttl-expired"]
    assert all(count > 100 for count in seen.values()), seen
    assert seen.keys() >= {"HIT", "MISS", "HOLD", "BYPASS", "PASSTHROUGH", "BLOCKED"}
