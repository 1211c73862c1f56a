"""``invalid-rule-id``: the characters and length of ids."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import cache_rule, find_one, find_places

CODE = "invalid-rule-id"


@pytest.mark.parametrize("rule_id", ["a", "A1", "0", "a.b_c-d", "a" * 128])
def test_valid_ids_are_not_reported(rule_id: str) -> None:
    assert find_places(CODE, cache_rule(rule_id)) == []


@pytest.mark.parametrize(
    "rule_id", ["", ".a", "-a", "a b", "a/b", "a\n", "\na", "a\0", "\x1b[31m", "é", "a١", "\ud800", "a" * 129]
)
def test_invalid_ids_are_reported(rule_id: str) -> None:
    finding = find_one(CODE, cache_rule("x", id=rule_id))
    assert finding.path == ("rules", 0, "id")
    assert finding.rule_id is None
    assert finding.message.encode().decode().isprintable()


def test_the_message_shortens_a_long_id() -> None:
    assert len(find_one(CODE, cache_rule("x", id="é" * 10_000)).message) < 200
