"""``unknown-property``: properties that do not exist."""

from __future__ import annotations

import msgspec

from rules.lint import report_finding
from tests.rules.lint.helpers import cache_rule, find_one, find_places

CODE = "unknown-property"


def test_an_unknown_property_of_a_rule_is_reported() -> None:
    finding = find_one(CODE, cache_rule(tllSeconds=60))
    assert msgspec.to_builtins(report_finding(finding)) == {
        "code": CODE,
        "severity": "error",
        "ruleId": "r",
        "path": "/rules/0/tllSeconds",
        "message": 'A rule has no property "tllSeconds"; did you mean ttlSeconds?',
        "suggestion": "ttlSeconds",
    }


def test_an_unknown_property_of_the_ruleset_is_reported() -> None:
    finding = find_one(CODE, cacheBusts="x")
    assert finding.path == ("cacheBusts",)
    assert finding.rule_id is None
    assert finding.suggestion == "cacheBust"


def test_read_only_properties_may_be_sent_back() -> None:
    members = {"tenantId": 1, "cacheBust": [], "seq": None, "modifiedAt": {}}
    assert find_places(CODE, cache_rule(), **members) == []


def test_no_property_is_suggested_if_none_is_similar() -> None:
    assert find_one(CODE, cache_rule(**{"~x/y": 1})).suggestion is None
    assert find_places(CODE, cache_rule(**{"~x/y": 1})) == ["/rules/0/~0x~1y"]
