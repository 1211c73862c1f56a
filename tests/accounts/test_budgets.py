"""Expensive requests are counted per caller. Contract: Errors (429)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from accounts.budgets import require_budget, use_budget
from rules.api.rules import RulesetViewSet
from tenantadmin.lib.core.errors import RateLimited
from tenantadmin.lib.http.budgets import LINT, QUERY
from tests import factories
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.django_db

VALIDATE = "/config/rules/validate"
RULES = {"rules": [{"id": "orders", "conditions": {"isReadOnly": True}}]}


@pytest.fixture(autouse=True)
def budgets(settings: Any) -> None:
    settings.CALLER_BUDGETS = {"lint": "2 per hour", "query": "3 per hour"}


@pytest.fixture
def one_second_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each request for lint take a second."""
    ticks = iter(range(100))
    action: Any = RulesetViewSet.validate_rules
    budget = replace(LINT, clock=lambda: next(ticks))
    monkeypatch.setattr(action, "operation", replace(action.operation, budget=budget))


def is_refused(caller: str) -> bool:
    try:
        require_budget(LINT, caller=caller)
    except RateLimited:
        return True
    return False


def test_a_caller_is_refused_once_the_time_is_used_up() -> None:
    use_budget(LINT, caller="ada@example.org", seconds=1.94)
    assert not is_refused("ada@example.org")
    use_budget(LINT, caller="ada@example.org", seconds=0.1)
    assert is_refused("ada@example.org")


def test_other_callers_and_other_work_have_budgets_of_their_own() -> None:
    use_budget(LINT, caller="ada@example.org", seconds=100)
    assert is_refused("ada@example.org")
    assert not is_refused("bob@example.org")
    require_budget(QUERY, caller="ada@example.org")


def test_short_requests_are_free() -> None:
    for _ in range(100):
        use_budget(LINT, caller="ada@example.org", seconds=0.099)
    assert not is_refused("ada@example.org")


def test_without_redis_nothing_is_refused(
    settings: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings.REDIS_URL = f"unix://{tmp_path}/missing.sock"
    use_budget(LINT, caller="ada@example.org", seconds=100)
    assert not is_refused("ada@example.org")
    assert [record.message for record in caplog.records] == [
        "The budget 'lint' cannot be counted",
        "The budget 'lint' cannot be read",
    ]


@pytest.mark.usefixtures("one_second_each")
def test_the_time_of_an_operation_is_counted_and_the_next_is_refused(world: factories.World) -> None:
    client = ApiClient(factories.sign_in(world.tenant_admin))
    for _ in range(2):  # of one second each
        assert client.post(VALIDATE, RULES).status_code == 200
    answer = client.post(VALIDATE, RULES)
    assert answer.status_code == 429
    assert answer.json()["error"] == "rate_limited"
    assert 0 < int(answer.headers["Retry-After"]) <= 3600
    # Others are not affected, nor is what is not expensive.
    assert ApiClient(factories.sign_in(world.owner)).post(VALIDATE, RULES).status_code == 200
    assert client.get(f"/config/tenants/{world.tenant.pk}/rules").status_code == 200


@pytest.mark.usefixtures("one_second_each")
def test_a_refused_body_is_counted_too(world: factories.World) -> None:
    client = ApiClient(factories.sign_in(world.tenant_admin))
    assert [client.post(VALIDATE, {"rules": 7}).status_code for _ in range(3)] == [400, 400, 429]
