"""``table-spelled-otherwise``: the log has spellings that a rule misses."""

from __future__ import annotations

from time import thread_time
from typing import Any

import pytest

from rules.json_text import join_pointer
from rules.lint import lint_ruleset
from rules.tables.warehouse import WarehouseTables

CODE = "table-spelled-otherwise"
QUOTED = '"hr"."people"'
READS: dict[str, Any] = {"id": "reads", "conditions": {"isReadOnly": True}, "varyBy": ["userName"]}


def tables(*names: str, operator: str = "containsAny", **more: Any) -> dict[str, Any]:
    return {"tables": {operator: list(names), **more}}


def bypass(conditions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": "first", "action": "bypass", "conditions": conditions} | fields


def cache(conditions: dict[str, Any]) -> dict[str, Any]:
    return READS | {"conditions": conditions}


def find(*rules: dict[str, Any], log: tuple[str, ...] = (QUOTED,)) -> list[tuple[str, str]]:
    result = lint_ruleset({"rules": list(rules)}, tables=WarehouseTables(logged=log))
    assert result.valid
    return [
        (join_pointer(warning.path), warning.message) for warning in result.warnings if warning.code == CODE
    ]


def places(*rules: dict[str, Any], log: tuple[str, ...] = (QUOTED,)) -> list[str]:
    return [place for place, _ in find(*rules, log=log)]


@pytest.mark.parametrize("action", ["bypass", "deny"])
@pytest.mark.parametrize(
    "log", [QUOTED, "`hr`.`people`", "prod.hr.people", "people", "[HR].people", "hr . people", "hr.People"]
)
def test_a_rule_that_keeps_a_table_out_misses_a_spelling(action: str, log: str) -> None:
    first = bypass(tables("hr.people"), action=action)
    assert places(first, READS, log=("hr.people", log)) == ["/rules/0/conditions/tables"]
    assert places(first, READS, log=("hr.people", "sales.people", "hr.people2")) == []


@pytest.mark.parametrize(
    "conditions",
    [
        {"not": tables("hr.people")},
        {"not": tables("hr.*")},
        {"not": tables("hr.people", operator="containsAll")},
        {"not": {"tables": "hr.people"}},
        {"not": {"not": {"tables": {"ne": "hr.people"}}}},
        {"tables": {"ne": "hr.people"}},
        tables("hr.people", "x", operator="notIn", ignoreCase=True),
        {"any": [{"not": tables("hr.people")}, {"isDDL": True}]},
    ],
)
def test_a_negative_condition_misses_a_spelling(conditions: dict[str, Any]) -> None:
    assert len(places(cache(conditions))) == 1
    assert places(cache(conditions), log=("hr.people",)) == []
    assert places(cache(conditions) | {"enabled": False}) == []
    # A rule with a negative condition that keeps tables out, misses one too.
    assert len(places(bypass(conditions))) == 1


@pytest.mark.parametrize(
    "rules",
    [
        # Conditions of cache rules that say what the rule is for.
        [cache(tables("hr.people"))],
        [cache({"not": {"tables": {"ne": "hr.people"}}})],
        # No later rule caches the spelling.
        [bypass(tables("hr.people"))],
        [READS, bypass(tables("hr.people"))],
        [bypass(tables("hr.people")), READS | {"enabled": False}],
        [bypass(tables("hr.people"), enabled=False), READS],
        [bypass(tables("hr.people")), cache(tables("sales.orders", operator="in"))],
        [bypass(tables("hr.people")), cache({"not": tables("*people*", ignoreCase=True)})],
        # Another condition or rule matches it.
        [bypass(tables("hr.people", QUOTED, ignoreCase=True)), READS],
        [bypass({"any": [tables("hr.people"), tables(QUOTED, ignoreCase=True)]}), READS],
        [bypass(tables("hr.people")), bypass(tables(QUOTED, ignoreCase=True), id="second"), READS],
        [cache({"all": [{"not": tables("hr.people")}, {"not": tables(QUOTED, ignoreCase=True)}]})],
        [bypass({"tables": {"exists": True}}), READS],
    ],
)
def test_where_nothing_is_missed_there_is_no_warning(rules: list[dict[str, Any]]) -> None:
    assert places(*rules) == []


def test_a_doubt_about_a_doubt_is_none() -> None:
    """``hr.*`` may be ``orders``, and ``orders`` may be ``sales.orders``. Conditions compare text."""
    assert places(bypass(tables("hr.*")), cache({"tables": "sales.orders"}), log=("orders",)) == []
    assert places(bypass(tables("hr.*")), READS, log=("orders",)) == ["/rules/0/conditions/tables"]


def test_the_message_names_the_table_the_spelling_and_the_cure() -> None:
    [(_, message)] = find(bypass(tables("hr.people")), READS, log=(QUOTED, "people"))
    assert message == (
        'The log of the last 28 days names "\\"hr\\".\\"people\\"", which is "hr.people"; names "people", '
        'which may be "hr.people". Conditions compare text, so this one does not match. '
        'Add "\\"hr\\".\\"people\\"", "people" to its names.'
    )
    [(_, message)] = find(cache({"tables": {"ne": "hr.people"}}), log=("HR.people",))
    assert message.endswith('Write "ignoreCase": true beside the operator.')
    [(_, message)] = find(cache({"tables": {"ne": "hr.people"}}))
    assert message.endswith('Add "\\"hr\\".\\"people\\"" to its names, with the operator notIn.')
    [(_, message)] = find(bypass(tables("hr.people")), READS, log=tuple(f"p{n}.hr.people" for n in range(9)))
    assert message.count("which may be") == 3
    assert "; and more such names. " in message


def test_without_a_log_there_is_no_warning() -> None:
    assert places(bypass(tables("hr.people")), READS, log=()) == []


@pytest.mark.slow
def test_many_names_and_rules_take_a_limited_time() -> None:
    log = tuple(f"{'x' * 20}{number}" for number in range(1_000))
    rules = [bypass(tables(f"hr{number}.*"), id=f"b{number}") for number in range(3_000)]
    started = thread_time()
    result = lint_ruleset({"rules": [*rules, READS]}, tables=WarehouseTables(logged=log))
    assert thread_time() - started < 2
    assert "warnings-incomplete" in {warning.code for warning in result.warnings}
