"""The difference between two revisions of a ruleset."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from rules.blame import blame
from rules.diff import diff_rules
from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.core.serving import CallerGone, TooCostly, Work, working

A = {"id": "a", "ttlSeconds": 60, "conditions": {"userName": "ann", "tables": {"containsAny": ["x", "y"]}}}
B = {"id": "b", "ttlSeconds": 60, "conditions": {}}
C = {"id": "c", "ttlSeconds": 60, "conditions": {}}


def test_rules_are_compared_by_id() -> None:
    changed = A | {"ttlSeconds": 90, "conditions": {"userName": "ann", "tables": {"containsAny": ["y"]}}}
    diff = diff_rules(before=[A, B], after=[C, changed])
    assert (diff.added, diff.removed) == ((C,), (B,))
    assert json.loads(dump_json(diff.changed)) == [
        {
            "id": "a",
            "fields": [
                {"path": "/ttlSeconds", "from": 60, "to": 90},
                {"path": "/conditions/tables/containsAny", "from": ["x", "y"], "to": ["y"]},
            ],
            "inWords": [
                {
                    "field": "Applies to",
                    "from": "userName is ann and uses x, y",
                    "to": "userName is ann and uses y",
                },
                {"field": "A result is fresh for", "from": "1 min", "to": "90 s"},
            ],
        }
    ]


def test_another_order_is_no_change_of_a_rule() -> None:
    diff = diff_rules(before=[A, B, C], after=[C, A, B])
    assert (diff.added, diff.removed, diff.changed, diff.reordered) == ((), (), (), True)


@pytest.mark.parametrize(
    "compute",
    [
        lambda before, after: diff_rules(before=before, after=after),
        lambda before, after: blame(iter([(1, after), (0, before)]), limit=10_000),
    ],
    ids=["diff", "blame"],
)
def test_it_ends_with_its_time_and_when_the_caller_hangs_up(
    compute: Callable[[list[dict[str, Any]], list[dict[str, Any]]], object],
) -> None:
    """Comparing large rulesets went on after the caller had left."""
    before, after = ([{**A, "id": str(number), "ttlSeconds": ttl} for number in range(300)] for ttl in (1, 2))
    with working(Work(seconds=1e-9)), pytest.raises(TooCostly):
        compute(before, after)
    with working(Work(is_abandoned=lambda: True)), pytest.raises(CallerGone):
        compute(before, after)
    compute(before, after)
