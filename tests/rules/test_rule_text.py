from __future__ import annotations

from typing import Any

import pytest

from rules.rule_text import describe_conditions, describe_rule_changes
from tests.format_cases import CONDITIONS


@pytest.mark.parametrize(("conditions", "text"), CONDITIONS)
def test_conditions_are_said_in_words(conditions: dict[str, Any], text: str) -> None:
    assert describe_conditions(conditions) == text


def test_fields_have_the_labels_of_the_form() -> None:
    before = {"id": "a", "name": "A", "action": "cache", "conditions": {}, "varyBy": []}
    after = {
        **before,
        "action": "deny",
        "conditions": {"isReadOnly": True},
        "varyBy": ["userName"],
        "invalidateRules": ["b", "c"],
        "requireInvalidation": True,
        "staleWhileRevalidate": 120,
    }
    assert [
        (change.field, change.before, change.after) for change in describe_rule_changes(before, after)
    ] == [
        ("Applies to", "every request", "only reads"),
        ("Then", "cache the result", "refuse the statement"),
        ("A result serves", "every user", "only the user who asked"),
        ("Then served stale for", "–", "2 min"),
        ("Makes results of these rules stale", "–", "b, c"),
        ("Refused if results cannot be marked as stale", "–", "yes"),
    ]


def test_what_a_draft_says_wrongly_is_shown_as_it_is() -> None:
    wrong: list[dict[str, Any]] = [
        {"conditions": [1]},
        {"conditions": {"any": {"a": 1}}},
        {"ttlSeconds": "1 h", "colour": {"a": 1}},
        {"varyBy": "userName", "action": 7},
    ]
    said = [[(change.field, change.after) for change in describe_rule_changes({}, rule)] for rule in wrong]
    assert said == [
        [("Applies to", "[1]")],
        [("Applies to", "any a 1")],
        [("A result is fresh for", "1 h"), ("Colour", '{"a": 1}')],
        [("Then", "7"), ("A result serves", "userName")],
    ]
