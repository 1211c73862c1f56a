"""Expensive requests are counted per caller. Contract: Errors (429)."""

from __future__ import annotations

import gc
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import URLPattern
from hypothesis import given
from hypothesis import strategies as st

from accounts import budgets as counted
from accounts.budgets import MeteredPieces, on_budget, require_budget, use_budget
from accounts.limits import storage
from accounts.routes import declared_routes
from rules.api.markers import MarkerViewSet
from rules.api.rules import RulesetViewSet
from tenantadmin.lib.core.errors import RateLimited
from tenantadmin.lib.http.budgets import LINT, QUERY, REQUEST, Budget
from tenantadmin.lib.http.viewsets import ApiViewSet, Operation
from tenantadmin.urls import urlpatterns
from tests import factories
from tests.conftest import ApiClient
from tests.streams import body_of

pytestmark = pytest.mark.django_db

VALIDATE = "/config/rules/validate"
RULES = {"rules": [{"id": "orders", "conditions": {"isReadOnly": True}}]}


@pytest.fixture(autouse=True)
def budgets(settings: Any) -> None:
    settings.CALLER_BUDGETS = {"lint": "2 per hour", "query": "3 per hour", "request": "1 per hour"}


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


def test_short_requests_add_up() -> None:
    """251 requests of 24 ms each were free: their time was rounded down to tenths of a second."""
    for number in range(251):
        use_budget(LINT, caller="ada@example.org", seconds=0.024)
        assert is_refused("ada@example.org") == (number >= 84)


def test_a_request_costs_at_least_two_milliseconds() -> None:
    for number in range(1_050):
        use_budget(LINT, caller="ada@example.org", seconds=0)
        assert is_refused("ada@example.org") == (number >= 999)


@given(costs=st.lists(st.integers(2, 250), max_size=40))
def test_a_process_keeps_less_than_a_tenth_of_a_second_to_itself(costs: list[int]) -> None:
    caller = f"{uuid.uuid4()}@example.org"
    for cost in costs:
        use_budget(LINT, caller=caller, seconds=cost / 1000)
    told = storage().get(f"LIMITER/lint/ms {caller}/2000/1/hour") if sum(costs) >= 100 else 0
    assert sum(costs) - 100 < told <= sum(costs)


def test_the_callers_of_one_network_have_a_budget_together(settings: Any) -> None:
    settings.NETWORK_BUDGET_FACTOR = 2
    for name in ("ada", "bob", "eve"):
        use_budget(LINT, caller=f"{name}@example.org", network="192.0.2.1", seconds=1.4)
    require_budget(LINT, caller="zoe@example.org", network="192.0.2.2")
    with pytest.raises(RateLimited):
        require_budget(LINT, caller="zoe@example.org", network="192.0.2.1")


def test_an_ipv6_client_is_one_network_for_all_its_callers(
    world: factories.World, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.NETWORK_BUDGET_FACTOR = 1
    ticks = iter(range(100))
    action: Any = RulesetViewSet.validate_rules
    budget = replace(LINT, clock=lambda: next(ticks))
    monkeypatch.setattr(action, "operation", replace(action.operation, budget=budget))
    statuses = [
        Client()
        .post(
            VALIDATE,
            RULES,
            content_type="application/json",
            headers={"Authorization": f"Bearer {factories.sign_in(user)}"},
            REMOTE_ADDR=f"2001:db8::{number}",
        )
        .status_code
        for number, user in enumerate((world.owner, world.member, world.stranger))
    ]
    assert statuses == [200, 200, 429]


def test_requests_that_are_refused_before_they_run_count_for_their_network(world: factories.World) -> None:
    use_budget(REQUEST, caller="127.0.0.1", seconds=0.95)
    forged = ApiClient("no.such.token")
    statuses = [forged.get("/users").status_code for _ in range(51)]
    assert (statuses[0], statuses[-1], {*statuses}) == (401, 429, {401, 429})
    assert ApiClient(factories.sign_in(world.owner)).get("/users").status_code == 200


def test_without_redis_nothing_is_refused(
    settings: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    use_budget(LINT, caller="ada@example.org", seconds=100)
    assert is_refused("ada@example.org")
    settings.REDIS_URL = f"unix://{tmp_path}/missing.sock"
    use_budget(LINT, caller="ada@example.org", seconds=100)
    assert not is_refused("ada@example.org")
    assert [record.message.partition(":")[0] for record in caplog.records] == [
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


def operations() -> dict[str, Operation]:
    """Return the declaration of each operation by its id, as the routes find them."""
    found: dict[str, Operation] = {}
    for route in iterate_routes(urlpatterns):
        view: Any = route.callback
        viewset: Any = getattr(view, "cls", None)
        if viewset is not None and issubclass(viewset, ApiViewSet):
            for action in view.actions.values():
                found[viewset.operation_id(action)] = getattr(viewset, action).operation
    return found


def iterate_routes(patterns: Any) -> Iterator[URLPattern]:
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            yield pattern
        else:
            yield from iterate_routes(pattern.url_patterns)


def test_every_operation_has_a_budget() -> None:
    declared = operations()
    assert declared.keys() == set(declared_routes())
    assert {one.budget for one in declared.values()} == {REQUEST, LINT, QUERY}
    # All of a caller's requests at once leave threads to the others, and files that the disk holds.
    assert [(budget.name, budget.places, budget.unread_bytes) for budget in (REQUEST, LINT, QUERY)] == [
        ("request", 12, 64 << 20),
        ("lint", 4, 64 << 20),
        ("query", 10, 64 << 20),
    ]


def test_what_a_worker_does_for_an_operation_has_a_limit() -> None:
    """The limits are settings: how many may wait, or how many in a period."""
    found = {name: one.queue for name, one in operations().items() if one.queue is not None}
    assert found == {
        "notifyLogs": "BUILD_QUEUE",
        "requestReplay": "REPLAY_QUEUE",
        "requestRecommendations": "REPLAY_LIMIT",
        "testAlert": "ALERT_TEST_LIMIT",
        "testAlertChannels": "ALERT_TEST_LIMIT",
        "verifyDomain": "DOMAIN_CHECK_LIMIT",
    }
    assert {name: getattr(settings, name) for name in sorted(found.values())} == {
        "ALERT_TEST_LIMIT": "20 per hour",
        "BUILD_QUEUE": 1_000,
        "DOMAIN_CHECK_LIMIT": "10 per minute",
        "REPLAY_LIMIT": "10 per hour",
        "REPLAY_QUEUE": 3,
    }


def test_what_computes_with_rules_counts_as_lint() -> None:
    assert {name for name, one in operations().items() if one.budget is LINT} == {
        "blameRules",
        "createDraft",
        "diffDraft",
        "diffRules",
        "explainRequest",
        "invalidateTables",
        "publishDraft",
        "rebaseDraft",
        "replaceDraft",
        "replaceTenantRules",
        "requestReplay",
        "restoreRules",
        "validateRules",
    }


@pytest.mark.parametrize("budget", [REQUEST, LINT, QUERY], ids=lambda budget: budget.name)
def test_redis_is_not_asked_about_callers_who_have_something_left(
    monkeypatch: pytest.MonkeyPatch, budget: Budget
) -> None:
    monkeypatch.setattr("accounts.budgets.storage", None)
    require_budget(budget, caller="not-seen-before@example.org")


def test_a_process_learns_what_others_know_when_it_tells_what_a_caller_cost() -> None:
    use_budget(LINT, caller="ada@example.org", seconds=100)
    # As in another process, which has told Redis nothing of this caller.
    counted._spenders.clear()
    use_budget(LINT, caller="ada@example.org", seconds=0.09)
    assert not is_refused("ada@example.org")
    use_budget(LINT, caller="ada@example.org", seconds=0.01)
    assert is_refused("ada@example.org")


def test_a_caller_without_a_budget_is_refused_by_name(world: factories.World) -> None:
    client, address = ApiClient(factories.sign_in(world.owner)), f"/config/tenants/{world.tenant.pk}"
    use_budget(REQUEST, caller=world.owner.email, seconds=1.0)
    answer = client.get(address)
    assert (answer.status_code, answer.json()["error"]) == (429, "rate_limited")
    assert 0 < int(answer.headers["Retry-After"]) <= 3600
    assert ApiClient(factories.sign_in(world.member)).get(address).status_code == 200


def test_without_a_token_the_network_of_the_address_is_the_caller(anonymous: ApiClient) -> None:
    use_budget(REQUEST, caller="127.0.0.1", seconds=1.0)
    assert anonymous.get("/auth/providers").status_code == 429
    answer = anonymous.get("/auth/providers", **{"X-Unrelated": "1"})
    assert answer.json()["error"] == "rate_limited"


def test_a_caller_who_does_not_read_is_refused() -> None:
    with on_budget(QUERY, caller="ada@example.org", unread=(64 << 20) - 1):
        pass
    with (
        pytest.raises(RateLimited, match="Read the answers to your earlier requests first") as refusal,
        on_budget(QUERY, caller="ada@example.org", unread=64 << 20),
    ):
        pass
    assert refusal.value.headers == {"Retry-After": "1"}


def test_fifty_mebibytes_of_an_answer_cost_a_second() -> None:
    with on_budget(LINT, caller="ada@example.org") as cost:
        pieces = MeteredPieces([b"x" * (50 << 20)] * 2, cost, ended=ExitStack())
        assert sum(map(len, pieces)) == 100 << 20
    assert is_refused("ada@example.org")


@pytest.mark.parametrize("ends", ["sent", "dropped"])
def test_a_streamed_answer_has_its_place_until_it_is_made(
    world: factories.World, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    action: Any = MarkerViewSet.list_markers
    one_place = replace(action.operation.budget, places=1)
    monkeypatch.setattr(action, "operation", replace(action.operation, budget=one_place))
    client = ApiClient(factories.pat_token(world.owner, "cache-admin", tenants=[str(world.tenant.pk)]))
    address = f"/tenants/{world.tenant.pk}/invalidation-markers"
    first = client.get(address)
    assert client.get(address).status_code == 429
    if ends == "sent":
        body_of(first)
    del first
    gc.collect()
    assert client.get(address).status_code == 200


def test_a_caller_has_four_places_in_a_process() -> None:
    with ExitStack() as running:
        for _ in range(4):
            running.enter_context(on_budget(LINT, caller="ada@example.org"))
        with pytest.raises(RateLimited) as refusal, on_budget(LINT, caller="ada@example.org"):
            pass
        assert refusal.value.headers == {"Retry-After": "1"}
        with on_budget(LINT, caller="bob@example.org"), on_budget(QUERY, caller="ada@example.org"):
            pass
    with on_budget(LINT, caller="ada@example.org"):
        pass
