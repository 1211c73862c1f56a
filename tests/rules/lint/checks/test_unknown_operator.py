"""``unknown-operator``: operators that do not exist."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import find_one, find_places, rule_with

CODE = "unknown-operator"


@pytest.mark.parametrize(
    ("written", "nearest"),
    [
        ("equals", "eq"),
        ("==", "eq"),
        ("!=", "ne"),
        (">=", "gte"),
        ("startswith", "startsWith"),
        ("contain", "contains"),
        ("not_in", "notIn"),
        ("LIKE", "contains"),
        ("matches", "regex"),
        ("ignorecase", "ignoreCase"),
        ("zzz", None),
    ],
)
def test_the_most_similar_operator_is_suggested(written: str, nearest: str | None) -> None:
    finding = find_one(CODE, rule_with({"userName": {written: "x"}}))
    assert finding.path == ("rules", 0, "conditions", "userName", written)
    assert finding.suggestion == nearest


def test_every_unknown_operator_is_reported() -> None:
    assert find_places(CODE, rule_with({"host": {"a": 1, "eq": "x", "b": 2}})) == [
        "/rules/0/conditions/host/a",
        "/rules/0/conditions/host/b",
    ]


def test_the_message_names_the_suggestion_or_all_operators() -> None:
    assert find_one(CODE, rule_with({"host": {"equals": "x"}})).message == (
        'There is no operator "equals"; did you mean eq?'
    )
    assert find_one(CODE, rule_with({"host": {"zzz": "x"}})).message == (
        'There is no operator "zzz"; the operators are eq, ne, in, notIn, exists, contains, startsWith, '
        "endsWith, regex, gt, gte, lt, lte, containsAny, containsAll, cidr, ignoreCase."
    )
