"""``unknown-condition-key``: condition keys that do not exist."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.lint.helpers import find_one, find_places, rule_with

CODE = "unknown-condition-key"


@pytest.mark.parametrize(
    ("written", "nearest"),
    [
        ("statmentType", "statementType"),
        ("USERNAME", "userName"),
        ("table", "tables"),
        ("client_ip", "clientIp"),
        ("responseSize", None),
        ("matchedRule", None),
        ("", None),
    ],
)
def test_the_most_similar_key_is_suggested(written: str, nearest: str | None) -> None:
    finding = find_one(CODE, rule_with({written: "x"}))
    assert finding.path == ("rules", 0, "conditions", written)
    assert finding.suggestion == nearest


def test_keys_are_checked_in_all_conditions() -> None:
    conditions = {"all": [{"usrName": "a"}], "not": {"any": [{}, {"or": []}]}}
    assert find_places(CODE, rule_with(conditions)) == [
        "/rules/0/conditions/all/0/usrName",
        "/rules/0/conditions/not/any/1/or",
    ]


def test_the_value_of_an_unknown_key_is_not_checked() -> None:
    assert find_places(CODE, rule_with({"xyzzy": {"plugh": {"plover": 1}}})) == ["/rules/0/conditions/xyzzy"]


def test_keys_are_checked_at_the_deepest_level_that_is_allowed() -> None:
    conditions: dict[str, Any] = {"usrName": "a"}
    for _ in range(8):
        conditions = {"not": conditions}
    place = "/rules/0/conditions" + "/not" * 8
    assert find_places(CODE, rule_with(conditions)) == [f"{place}/usrName"]
    assert find_places(CODE, rule_with({"not": conditions})) == []


def test_the_message_names_the_suggestion_or_the_list() -> None:
    assert find_one(CODE, rule_with({"usrName": "a"})).message == (
        'There is no condition key "usrName"; did you mean userName?'
    )
    assert find_one(CODE, rule_with({"xyzzy": "a"})).message == (
        'There is no condition key "xyzzy"; docs/rules.md lists them.'
    )
