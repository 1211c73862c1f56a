"""Completing and reading rules."""

from __future__ import annotations

from typing import Any

import pytest

from rules.language import RULE_FIELDS, Action, complete_rule, read_rule, rule_ids


def test_defaults_are_written_out() -> None:
    assert complete_rule({"id": "a"}) == {
        "id": "a",
        "name": "a",
        "enabled": True,
        "action": "cache",
        "conditions": {},
        "ttlSeconds": 86_400,
        "requireInvalidation": False,
    }


def test_given_values_are_kept_and_fields_are_in_the_stored_order() -> None:
    sent = {
        "requireInvalidation": True,
        "invalidateRules": ["b"],
        "varyBy": ["host"],
        "staleWhileRevalidate": 0,
        "ttlSeconds": 5,
        "conditions": {"isDDL": True},
        "action": "deny",
        "enabled": False,
        "description": "",
        "name": "n",
        "id": "a",
    }
    completed = complete_rule(sent)
    assert completed == sent
    assert list(completed) == list(RULE_FIELDS)


def test_whole_numbers_are_stored_as_integers() -> None:
    completed = complete_rule({"id": "a", "ttlSeconds": 60.0, "staleWhileRevalidate": 5.0})
    assert repr((completed["ttlSeconds"], completed["staleWhileRevalidate"])) == "(60, 5)"


@pytest.mark.parametrize(
    ("rule", "action"),
    [
        ({}, Action.CACHE),
        ({"invalidateRules": ["b"]}, Action.INVALIDATE),
        ({"invalidateRules": ["b"], "action": "cache"}, Action.CACHE),
    ],
)
def test_the_default_action_depends_on_invalidate_rules(rule: dict[str, Any], action: Action) -> None:
    assert read_rule({"id": "a"} | rule).action is action


def test_a_rule_is_read_with_its_defaults() -> None:
    rule = read_rule({"id": "a", "staleWhileRevalidate": 5, "invalidateRules": ["c", "b", "c"]})
    assert (rule.id, rule.name, rule.enabled, rule.ttl_seconds) == ("a", "a", True, 86_400)
    assert (rule.stale_while_revalidate, rule.invalidate_rules) == (5, ("c", "b"))
    assert rule.require_invalidation is False
    assert rule.condition.parts == ()


@pytest.mark.parametrize(
    ("rules", "ids"),
    [(None, []), ({}, []), ([{"id": "a"}, {"id": 1}, 2, {}, {"id": "b c"}], ["a", "b c"])],
)
def test_ids_of_invalid_rules_are_found(rules: object, ids: list[str]) -> None:
    assert rule_ids(rules) == ids


def test_an_absent_vary_by_stays_absent_and_an_empty_one_empty() -> None:
    assert "varyBy" not in complete_rule({"id": "a"})
    assert complete_rule({"id": "a", "varyBy": []})["varyBy"] == []
    assert read_rule({"id": "a"}).vary_by is None
    assert read_rule({"id": "a", "varyBy": []}).vary_by == ()
    assert read_rule({"id": "a", "varyBy": ["host", "userName"]}).vary_by == ("host", "userName")
