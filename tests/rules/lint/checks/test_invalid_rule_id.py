"""``invalid-rule-id``: what an id may look like."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import cache_rule, find_one, find_places

CODE = "invalid-rule-id"


@pytest.mark.parametrize("rule_id", ["a", "A1", "0", "a.b_c-d", "a" * 128])
def test_valid_ids(rule_id: str) -> None:
    assert find_places(CODE, cache_rule(rule_id)) == []


@pytest.mark.parametrize(
    "rule_id", ["", ".a", "-a", "a b", "a/b", "a\n", "\na", "a\0", "\x1b[31m", "é", "a١", "\ud800", "a" * 129]
)
def test_invalid_ids(rule_id: str) -> None:
    finding = find_one(CODE, cache_rule("x", id=rule_id))
    assert finding.path == ("rules", 0, "id")
    assert finding.rule_id is None
    assert finding.message.encode().decode().isprintable()


def test_a_long_id_is_not_repeated_whole() -> None:
    assert len(find_one(CODE, cache_rule("x", id="é" * 10_000)).message) < 200
