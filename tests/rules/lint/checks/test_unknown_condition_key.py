"""``unknown-condition-key``: condition keys that do not exist."""

from __future__ import annotations

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
