"""``vary-not-cacheable``: only cache rules have results that can vary."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import cache_rule, find_places

CODE = "vary-not-cacheable"


@pytest.mark.parametrize("action", ["bypass", "deny", "invalidate"])
@pytest.mark.parametrize("columns", [[], ["userName"]])
def test_other_actions_are_reported(action: str, columns: list[str]) -> None:
    assert find_places(CODE, cache_rule(action=action, varyBy=columns)) == ["/rules/0/varyBy"]


def test_the_default_action_is_used() -> None:
    rules = (cache_rule("a", varyBy=["host"]), cache_rule("b", invalidateRules=["a"], varyBy=[]))
    assert find_places(CODE, *rules) == ["/rules/1/varyBy"]
