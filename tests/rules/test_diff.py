"""The difference between two revisions of a ruleset."""

from __future__ import annotations

import json

from rules.diff import diff_rules
from tenantadmin.lib.core.rendering import dump_json

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
        }
    ]


def test_another_order_is_not_a_change() -> None:
    diff = diff_rules(before=[A, B, C], after=[C, A, B])
    assert (diff.added, diff.removed, diff.changed) == ((), (), ())
