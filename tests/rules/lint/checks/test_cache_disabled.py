"""``cache-disabled``: cache rules of a tenant whose configuration switches caching off."""

from __future__ import annotations

from typing import Any

import pytest

from rules.language import CachingDefaults
from rules.lint import lint_ruleset

CODE = "cache-disabled"


@pytest.mark.parametrize(
    ("rule", "enabled", "count"),
    [
        ({}, False, 1),
        ({}, True, 0),
        ({"enabled": False}, False, 0),
        ({"action": "bypass"}, False, 0),
    ],
)
def test_enabled_cache_rules_are_reported(rule: dict[str, Any], enabled: bool, count: int) -> None:
    document = {"rules": [{"id": "a", "conditions": {"isDDL": False}, **rule}]}
    result = lint_ruleset(document, caching=CachingDefaults(enabled=enabled))
    assert [finding.code for finding in result.warnings].count(CODE) == count
    assert not result.errors
