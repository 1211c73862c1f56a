"""Rate limits in Redis. Contract: Errors (429), Limits."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from accounts.limits import count_use
from tenantadmin.core.errors import InternalError, RateLimited
from tests.accounts.support import at_once

LIMIT = "5 per 15 minutes"


def outcome(limit: str, key: str, kind: str = "test") -> str:
    try:
        count_use(limit=limit, kind=kind, key=key)
    except RateLimited:
        return "limited"
    return "ok"


def test_so_many_and_no_more() -> None:
    assert [outcome(LIMIT, "ada") for _ in range(7)] == ["ok"] * 5 + ["limited"] * 2
    assert outcome(LIMIT, "bob") == "ok"
    assert outcome(LIMIT, "ada", kind="another") == "ok"


def test_it_is_exact_under_concurrency(db: None) -> None:
    outcomes = at_once([partial(outcome, LIMIT, "ada")] * 24)
    assert sorted(outcomes) == ["limited"] * 19 + ["ok"] * 5


def test_it_says_when_a_use_is_free_again() -> None:
    for _ in range(5):
        count_use(limit=LIMIT, kind="test", key="ada")
    with pytest.raises(RateLimited) as raised:
        count_use(limit=LIMIT, kind="test", key="ada")
    assert 898 <= int(raised.value.headers["Retry-After"]) <= 900


@pytest.mark.parametrize("limit", ["", "five", "5", "5 per fortnight"])
def test_a_misconfigured_limit_lets_nothing_through(limit: str) -> None:
    with pytest.raises(InternalError):
        count_use(limit=limit, kind="test", key="ada")


def test_without_redis_nothing_is_let_through(settings: Any, tmp_path: Any) -> None:
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    with pytest.raises(InternalError):
        count_use(limit=LIMIT, kind="test", key="ada")
