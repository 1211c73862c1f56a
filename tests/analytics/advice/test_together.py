"""Rulesets that are replayed together have the counts of a replay of each alone."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from analytics.advice.together import Together
from analytics.replay.gateway import learn_gateway
from analytics.replay.job import Gateway, Job, Marker, Ruleset
from analytics.replay.replay import Player, render_counts
from analytics.replay.shapes import find_columns
from analytics.replay.window import load_requests
from rules.language import complete_rule, read_rules
from tests.analytics.replay.streams import START, random_rows, random_rules, write_days

if TYPE_CHECKING:
    from pathlib import Path

    from rules.language import Rule

Rules = list[dict[str, Any]]


def change(chance: random.Random, rules: Rules) -> Rules:
    """Return the rules with a few changes of every sort."""
    changed = [dict(rule) for rule in rules]
    for number in range(chance.randint(1, 3)):
        kind = chance.choice(["insert", "append", "remove", "move", "lifetime", "replace"])
        new = chance.choice(random_rules(chance) or [{"id": "r0", "conditions": {}, "ttlSeconds": 5}])
        if kind in {"insert", "append"}:
            new["id"] = f"new{number}"
            changed.insert(0 if kind == "insert" else len(changed), new)
        elif changed:
            rule = changed.pop(chance.randrange(len(changed)))
            if kind == "move":
                changed.insert(chance.randrange(len(changed) + 1), rule)
            elif kind == "lifetime":
                changed.append({**rule, "ttlSeconds": 2 * rule.get("ttlSeconds", 60)})
            elif kind == "replace":
                changed.append({**new, "id": rule["id"]})
    ids = {rule["id"] for rule in changed}
    for rule in changed:
        if "invalidateRules" in rule:
            rule["invalidateRules"] = [one for one in rule["invalidateRules"] if one in ids] or [rule["id"]]
    return changed


def read(rules: Rules) -> tuple[Rule, ...]:
    return read_rules([complete_rule(rule) for rule in rules])


@pytest.mark.parametrize("seed", range(5))
def test_they_have_the_counts_of_a_replay_of_each(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    given = random_rules(chance)
    current, *rulesets = (read(rules) for rules in [given, *(change(chance, given) for _ in range(5))])
    files = write_days(random_rows(chance, 150), tmp_path)
    markers = [Marker("r0", START + chance.randrange(60_000)), Marker("new1", START + 30_000)]
    job = Job(files, files[-1].day, files[-1].day, current, current, markers=markers, gateway=Gateway())
    with duckdb.connect(config={"threads": 1}) as connection:
        loaded = load_requests(
            connection,
            files,
            first_day=job.first_day,
            columns=set().union(*map(find_columns, [current, *rulesets])),
            changes=[START + 20_000],
        )
        gateway = learn_gateway(connection, current, given=chance.choice([Gateway(), Gateway(False, None)]))
        player = Player(connection, job, loaded, gateway)
        outcome, runs = player.play("current", [Ruleset(0, current)])
        together = Together(connection, outcome, runs, gateway=gateway, markers=markers).count(rulesets)
        alone = [player.play("subject", [Ruleset(0, rules)])[1] for rules in rulesets]
        found = [
            None if counts is None else render_counts(counts, rules)
            for counts, rules in zip(together, rulesets, strict=True)
        ]
    expected = [render_counts(counts, rules) for counts, rules in zip(alone, rulesets, strict=True)]
    assert [row for row in found if row] == [row for row, mine in zip(expected, found, strict=True) if mine]
    assert any(found)
