"""``caches-non-deterministic``: cache rules for non-deterministic statements."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.lint.helpers import find_one, find_places, rule_with

CODE = "caches-non-deterministic"


KEY = "hasNonDeterministicFunctions"


@pytest.mark.parametrize(
    ("conditions", "place"),
    [
        ({KEY: True}, f"/{KEY}"),
        ({KEY: {"ne": False}}, f"/{KEY}"),
        ({"any": [{"isDDL": False}, {KEY: True}]}, f"/any/1/{KEY}"),
        ({"not": {KEY: False}}, f"/not/{KEY}"),
    ],
)
def test_conditions_that_select_such_statements_are_reported(conditions: dict[str, Any], place: str) -> None:
    assert find_places(CODE, rule_with(conditions)) == [f"/rules/0/conditions{place}"]


@pytest.mark.parametrize(
    "conditions", [{KEY: False}, {KEY: {"exists": True}}, {"not": {KEY: True}}, {"statementType": "SELECT"}]
)
def test_other_conditions_are_not_reported(conditions: dict[str, Any]) -> None:
    assert find_places(CODE, rule_with(conditions)) == []


@pytest.mark.parametrize(
    ("conditions", "word"),
    [
        ({"standardizedSql": "SELECT count(*) FROM t WHERE day = CURRENT_DATE"}, "CURRENT_DATE"),
        ({"standardizedSql": {"in": ["SELECT 1", "SELECT now()"]}}, "now()"),
        ({"standardizedSql": {"contains": "getdate()"}}, "getdate()"),
    ],
)
def test_conditions_that_select_a_word_of_the_time_name_it(conditions: dict[str, Any], word: str) -> None:
    finding = find_one(CODE, rule_with(conditions))
    assert finding.path == ("rules", 0, "conditions", "standardizedSql")
    assert f"The result of {word} depends on the time" in finding.message
    assert find_places(CODE, rule_with(conditions, action="bypass")) == []
    assert find_places(CODE, rule_with({"not": conditions})) == []


def test_a_rule_that_matches_everything_matches_such_statements() -> None:
    assert find_places(CODE, rule_with({})) == ["/rules/0/conditions"]
    assert find_one(CODE, rule_with({})).hurts


def test_a_bypass_rule_is_not_reported() -> None:
    assert find_places(CODE, rule_with({KEY: True}, action="bypass")) == []
