"""Lint as a whole: the order of findings, the stored form, and hostile input."""

from __future__ import annotations

import json
from time import thread_time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.json_text import join_pointer
from rules.lint import (
    Finding,
    GrosslyMalformed,
    Severity,
    limits,
    lint_ruleset,
    registry,
    report_finding,
    report_lint,
)
from rules.lint.limits import MAX_FINDINGS
from rules.lint.registry import Context
from tenantadmin.lib.core.serving import CallerGone, TooCostly, Work, working
from tests.rules.conditions.strategies import conditions
from tests.rules.lint.helpers import cache_rule, find_codes, nest, rule_with

SPLIT = (
    "Checking the ruleset takes too long from here on. Use lists of values instead of many conditions, "
    "and fewer rules."
)


@pytest.mark.parametrize(
    ("document", "path", "message"),
    [
        ([], "", "A ruleset must be an object, not an array."),
        (None, "", "A ruleset must be an object, not null."),
        ("rules", "", "A ruleset must be an object, not a string."),
        ({}, "/rules", "The rules of a ruleset must be an array; they are absent."),
        ({"rules": {}}, "/rules", "The rules of a ruleset must be an array; they are an object."),
        ({"rules": None}, "/rules", "The rules of a ruleset must be an array; they are null."),
    ],
)
def test_a_document_that_is_not_a_ruleset_is_refused(document: object, path: str, message: str) -> None:
    with pytest.raises(GrosslyMalformed) as raised:
        lint_ruleset(document)
    assert (raised.value.path, str(raised.value)) == (path, message)


def test_an_empty_ruleset_is_valid() -> None:
    result = lint_ruleset({"rules": []})
    assert msgspec.to_builtins(report_lint(result)) == {"valid": True, "errors": [], "warnings": []}
    assert result.normalized == ()


def test_all_findings_are_reported_in_document_order() -> None:
    document = {
        "unknown": 1,
        "rules": [
            {
                "ttlSeconds": 0,
                "id": "a b",
                "varyBy": [],
                "conditions": {"host": {"zzz": 1, "regex": "("}, "usrName": "x"},
            },
            7,
            {"id": "w", "invalidateRules": ["t", "u"], "nmae": "x"},
            {"conditions": {}, "action": "deny"},
            {"id": "w", "varyBy": []},
        ],
        "Seq": 1,
    }
    result = lint_ruleset(document)
    assert [(finding.code, join_pointer(finding.path)) for finding in result.errors] == [
        ("unknown-property", "/unknown"),
        ("out-of-range", "/rules/0/ttlSeconds"),
        ("invalid-rule-id", "/rules/0/id"),
        ("unknown-operator", "/rules/0/conditions/host/zzz"),
        ("invalid-regex", "/rules/0/conditions/host/regex"),
        ("unknown-condition-key", "/rules/0/conditions/usrName"),
        ("wrong-type", "/rules/1"),
        ("dangling-invalidate-reference", "/rules/2/invalidateRules/0"),
        ("dangling-invalidate-reference", "/rules/2/invalidateRules/1"),
        ("unknown-property", "/rules/2/nmae"),
        ("missing-property", "/rules/3/id"),
        ("unconditional-deny", "/rules/3/conditions"),
        ("duplicate-rule-id", "/rules/4/id"),
        ("unknown-property", "/Seq"),
    ]
    assert [(finding.code, join_pointer(finding.path)) for finding in result.warnings] == [
        ("matches-everything", "/rules/2"),
        ("unreachable-rule", "/rules/3"),
        ("duplicate-conditions", "/rules/3/conditions"),
        ("shares-everything", "/rules/4"),
        ("matches-everything", "/rules/4"),
        ("caches-non-deterministic", "/rules/4"),
        ("caches-writes", "/rules/4"),
        ("unreachable-rule", "/rules/4"),
        ("duplicate-conditions", "/rules/4"),
    ]
    assert result.normalized is None


def test_a_valid_ruleset_is_returned_with_its_defaults() -> None:
    document = {
        "rules": [
            {"requireInvalidation": True, "invalidateRules": ["c"], "conditions": {"isDDL": True}, "id": "i"},
            {"id": "c", "ttlSeconds": 60.0, "staleWhileRevalidate": 5, "description": "d", "name": "n"},
        ]
    }
    result = lint_ruleset(document)
    assert result.normalized is not None
    assert json.dumps(result.normalized) == json.dumps(
        [
            {
                "id": "i",
                "name": "i",
                "enabled": True,
                "action": "invalidate",
                "conditions": {"isDDL": True},
                "ttlSeconds": 86400,
                "invalidateRules": ["c"],
                "requireInvalidation": True,
            },
            {
                "id": "c",
                "name": "n",
                "description": "d",
                "enabled": True,
                "action": "cache",
                "conditions": {},
                "ttlSeconds": 60,
                "staleWhileRevalidate": 5,
                "requireInvalidation": False,
            },
        ]
    )
    assert lint_ruleset({"rules": list(result.normalized)}).normalized == result.normalized


def test_it_ends_with_the_time_of_its_request_and_when_the_caller_hangs_up() -> None:
    document = {"rules": [cache_rule(str(number)) for number in range(100)]}
    with working(Work(seconds=1e-9)), pytest.raises(TooCostly):
        lint_ruleset(document)
    with working(Work(is_abandoned=lambda: True)), pytest.raises(CallerGone):
        lint_ruleset(document)
    assert lint_ruleset(document).normalized is not None


_names = st.sampled_from(
    [
        "id",
        "conditions",
        "action",
        "ttlSeconds",
        "invalidateRules",
        "all",
        "any",
        "not",
        "userName",
        "tables",
        "tableCount",
        "clientIp",
        "isDDL",
        "eq",
        "in",
        "regex",
        "cidr",
        "containsAny",
        "gt",
        "ignoreCase",
        "x",
    ]
)
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["a", "deny", "\ud800", "(", "\0"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(_names | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=25,
)


@settings(max_examples=100, deadline=None)
@given(rules=st.lists(_json, max_size=4))
def test_any_json_can_be_linted(rules: list[Any]) -> None:
    result = lint_ruleset({"rules": rules})
    assert result.valid is (result.normalized is not None)
    msgspec.json.encode(report_lint(result))


@settings(max_examples=100, deadline=None)
@given(documents=st.lists(conditions, max_size=4))
def test_random_valid_conditions_have_no_errors(documents: list[dict[str, Any]]) -> None:
    rules = [{"id": f"r{n}", "conditions": document} for n, document in enumerate(documents)]
    assert lint_ruleset({"rules": rules}).errors == ()


def test_deeply_nested_values_do_not_fail() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    document = {
        "rules": [
            deep,
            cache_rule(name=deep, ttlSeconds=deep, invalidateRules=deep, extra=deep),
            cache_rule("c", conditions=nest(100_000)),
            cache_rule("d", conditions={"userName": {"in": deep}}),
        ],
        "seq": deep,
    }
    codes = {finding.code for finding in lint_ruleset(document).errors}
    assert codes == {"wrong-type", "unknown-property", "conditions-too-deep"}


def test_a_ruleset_with_many_misspellings_gets_all_findings() -> None:
    rules = [{"id": f"r{n}", "conditions": {f"userNam{n}": "x"}} for n in range(1_000)]
    result = lint_ruleset({"rules": rules})
    assert len(result.errors) == 1_000
    assert result.errors[0].suggestion == "userName"


def test_messages_shorten_long_names() -> None:
    (finding,) = lint_ruleset({"rules": [cache_rule(**{"x" * 500_000: 1})]}).errors
    assert len(finding.message) < 200


def test_a_published_finding_has_no_unpaired_surrogate() -> None:
    rule = cache_rule(**{"é\ud800": 1}, invalidateRules=["\ud800"], action="invalidate")
    errors = lint_ruleset({"rules": [rule]}).errors
    assert [report_finding(finding).path for finding in errors] == [
        "/rules/0/é?",
        "/rules/0/invalidateRules/0",
    ]
    finding = Finding("c", Severity.ERROR, None, (), "m", suggestion="é\ud800")
    assert report_finding(finding).suggestion == "é?"


def test_the_number_of_findings_is_limited() -> None:
    rules = [{"id": "a", "action": "bypass"}] * (MAX_FINDINGS + 6)
    result = lint_ruleset({"rules": rules})
    *errors, more_errors = result.errors
    assert len(errors) == MAX_FINDINGS
    assert join_pointer(errors[-1].path) == f"/rules/{MAX_FINDINGS}/id"
    assert msgspec.to_builtins(report_finding(more_errors)) == {
        "code": "more-errors",
        "severity": "error",
        "ruleId": None,
        "path": "",
        "message": "Only the first 1,000 of 1,005 errors are listed.",
    }
    # Each rule matches everything; all but the first are unreachable and duplicates.
    *warnings, more_warnings = result.warnings
    assert len(warnings) == MAX_FINDINGS
    assert join_pointer(warnings[-1].path) == "/rules/333"
    assert (more_warnings.code, more_warnings.severity) == ("more-warnings", Severity.WARNING)
    assert more_warnings.message == f"Only the first 1,000 of {3 * 1_006 - 2:,} warnings are listed."


def test_one_finding_more_than_allowed_is_counted() -> None:
    *_, more = lint_ruleset({"rules": [7] * (MAX_FINDINGS + 1)}).errors
    assert more.message == "Only the first 1,000 of 1,001 errors are listed."


def test_a_rule_with_conditions_of_a_wrong_type_has_no_meaning_checks() -> None:
    assert find_codes(rule_with([], varyBy=[])) == ["wrong-type"]


def test_as_many_findings_as_allowed_are_not_followed_by_another() -> None:
    result = lint_ruleset({"rules": [7] * MAX_FINDINGS})
    assert {finding.code for finding in result.errors} == {"wrong-type"}
    assert len(result.errors) == MAX_FINDINGS


def test_errors_are_reported_besides_many_warnings() -> None:
    rules: list[object] = [{"id": f"r{n}"} for n in range(3_000)]
    result = lint_ruleset({"rules": [*rules, 7]})
    assert [join_pointer(finding.path) for finding in result.errors] == ["/rules/3000"]


def test_a_ruleset_that_takes_too_long_is_refused_at_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ERRORS_SECONDS", -1)
    result = lint_ruleset({"rules": [cache_rule(id="a"), cache_rule(id="b")]})
    (finding,) = result.errors
    assert (finding.code, finding.path, finding.message) == ("too-complex", ("rules", 0), SPLIT)
    assert result.normalized is None


@pytest.mark.parametrize(("used", "codes"), [(0.7, []), (0.9, ["too-complex"])])
def test_errors_are_looked_for_during_most_of_a_second(
    monkeypatch: pytest.MonkeyPatch, used: float, codes: list[str]
) -> None:
    monkeypatch.setattr(registry, "thread_time", lambda: thread_time() + used)
    assert [finding.code for finding in lint_ruleset({"rules": [cache_rule()]}).errors] == codes


@pytest.mark.parametrize(("used", "codes"), [(0.85, []), (1.0, ["warnings-incomplete"])])
def test_warnings_are_looked_for_during_a_second(
    monkeypatch: pytest.MonkeyPatch, used: float, codes: list[str]
) -> None:
    monkeypatch.setattr(registry, "thread_time", lambda: thread_time() + used)
    monkeypatch.setattr(limits, "ERRORS_SECONDS", used + 1)
    assert [finding.code for finding in lint_ruleset({"rules": [cache_rule()]}).warnings] == codes


def test_conditions_that_take_too_long_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([False] * 42)
    monkeypatch.setattr(Context, "has_used", lambda *_: next(looks, True))
    wrong = {"any": [{"userName": 1}] * 100}
    (finding, *others) = lint_ruleset({"rules": [cache_rule(conditions=wrong)]}).errors
    assert finding.code == "too-complex"
    # Two nodes around the list, then two for each element, of which one is wrong.
    assert len(others) == 20


def test_warnings_that_take_too_long_are_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WARNINGS_SECONDS", -1)
    rules = [cache_rule(id="a", conditions={}), cache_rule(id="b", conditions={})]
    result = lint_ruleset({"rules": rules})
    assert result.errors == ()
    (finding,) = result.warnings
    assert (finding.code, finding.rule_id, finding.message) == ("warnings-incomplete", "a", SPLIT)
    assert result.normalized is not None


def test_a_late_comparison_is_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    # For the form of each rule and its nodes, then for their meaning.
    looks = iter([False] * 9)
    monkeypatch.setattr(Context, "has_used", lambda *_: next(looks, True))
    rules = [
        cache_rule(id="a", conditions={"host": "x"}),
        cache_rule(id="b", conditions={"host": "x", "origin": "y"}),
    ]
    result = lint_ruleset({"rules": rules})
    assert [(finding.code, finding.rule_id) for finding in result.warnings] == [("warnings-incomplete", "a")]


def test_a_deny_rule_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # It could match everything, which is an error.
    monkeypatch.setattr(limits, "WARNINGS_SECONDS", -1)
    rules = [cache_rule(id="a"), {"id": "b", "action": "deny", "conditions": {"userName": "x"}}]
    result = lint_ruleset({"rules": rules})
    (finding,) = result.errors
    assert (finding.code, finding.rule_id, finding.message) == ("too-complex", "b", SPLIT)


def test_the_meaning_of_a_huge_rule_is_not_looked_at() -> None:
    conditions = {"any": [{"userName": f"u{n}"} for n in range(5_000)]}
    result = lint_ruleset({"rules": [cache_rule(id="a", conditions=conditions)]})
    assert [(finding.code, finding.rule_id) for finding in result.warnings] == [("warnings-incomplete", "a")]
    del conditions["any"][1:]
    assert lint_ruleset({"rules": [cache_rule(id="a", conditions=conditions)]}).warnings == ()


def test_a_rule_of_as_many_nodes_as_allowed_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_PARTS", 6)
    # Two nodes around the list, then two for each element.
    conditions = {"any": [{"userName": "a"}, {"userName": "b"}]}
    assert lint_ruleset({"rules": [cache_rule(conditions=conditions)]}).warnings == ()
    conditions["any"].append({"userName": "c"})
    (finding,) = lint_ruleset({"rules": [cache_rule(conditions=conditions)]}).warnings
    assert finding.code == "warnings-incomplete"
