"""Rulesets through the API. Contract: Tenants and configuration, Cache rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from accounts.models import Revision, Tenant
from tests import factories
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from django.test.utils import CaptureQueriesContext

pytestmark = pytest.mark.django_db

RULES = {
    "rules": [{"id": "orders", "varyBy": [], "conditions": {"tables": {"containsAny": ["sales.orders"]}}}]
}


@pytest.fixture
def client(world: factories.World) -> ApiClient:
    return ApiClient(factories.sign_in(world.tenant_admin))


@pytest.fixture
def address(world: factories.World) -> str:
    return f"/config/tenants/{world.tenant.pk}/rules"


def test_a_write_answers_the_complete_ruleset_and_moves_everything_forward(
    client: ApiClient, address: str, world: factories.World
) -> None:
    before = client.get(address).json()
    assert (before["seq"], before["rules"]) == (0, [])
    answer = client.put(address, RULES)
    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert {**body, "cacheBust": "…", "modifiedAt": "…"} == {
        "tenantId": str(world.tenant.pk),
        "cacheBust": "…",
        "seq": 1,
        "modifiedAt": "…",
        "rules": [
            {
                "id": "orders",
                "name": "orders",
                "enabled": True,
                "action": "cache",
                "conditions": {"tables": {"containsAny": ["sales.orders"]}},
                "ttlSeconds": 86400,
                "varyBy": [],
                "requireInvalidation": False,
            }
        ],
    }
    assert body["cacheBust"] > before["cacheBust"]
    assert client.get(address).json() == body
    revision = Revision.objects.get(tenant_id=world.tenant.pk, kind="rules", seq=1)
    assert (revision.action, revision.user) == ("update", "tenant-admin@example.org")
    assert revision.document == {"rules": body["rules"]}
    assert revision.summary == {
        "rules": 1,
        "added": 1,
        "removed": 0,
        "changed": 0,
        "reordered": False,
        "names": {"added": ["orders"]},
        "labels": {},
    }
    assert revision.changed_at == Tenant.objects.get(pk=world.tenant.pk).modified_at


def test_an_equal_ruleset_is_a_write_too(client: ApiClient, address: str) -> None:
    first = client.put(address, RULES).json()
    second = client.put(address, first).json()
    assert second["seq"] == first["seq"] + 1
    assert second["cacheBust"] > first["cacheBust"]
    assert second["rules"] == first["rules"]


def test_an_equal_ruleset_writes_nothing_if_changed(client: ApiClient, address: str) -> None:
    conditions: dict[str, Any] = {"tables": {"containsAny": ["sales.orders"]}, "isReadOnly": True}
    rule = {"id": "orders", "conditions": conditions}
    written = client.put(address, {"rules": [rule]})
    again = client.put(f"{address}?ifChanged=true", {"rules": [rule]})
    assert (again.status_code, again.json(), again["ETag"]) == (200, written.json(), written["ETag"])
    assert client.get(f"{address}/history").json()["changes"][0]["seq"] == written.json()["seq"]
    other = {**rule, "conditions": {**conditions, "isReadOnly": {"eq": True}}}
    changed = client.put(f"{address}?ifChanged=TRUE", {"rules": [other]})
    assert (changed.status_code, changed.json()["seq"]) == (200, written.json()["seq"] + 1)
    assert client.put(f"{address}?ifChanged=1", {"rules": [{"id": "a b"}]}).status_code == 400
    stale = client.request("PUT", f"{address}?ifChanged=1", {"rules": [other]}, headers={"If-Match": '"x"'})
    assert stale.status_code == 409
    assert client.put(f"{address}?ifChanged=maybe", {"rules": [other]}).status_code == 400


def test_a_stale_copy_is_a_409(client: ApiClient, address: str) -> None:
    old = client.get(address)
    assert client.put(address, RULES).status_code == 200
    for stale in ({"seq": 0}, {"cacheBust": old.json()["cacheBust"]}):
        answer = client.put(address, {**RULES, **stale})
        assert (answer.status_code, answer.json()["error"]) == (409, "concurrent_change")
    assert client.put(address, RULES, **{"If-Match": old["ETag"]}).status_code == 409
    now = client.get(address)
    assert now.json()["seq"] == 1
    assert client.put(address, RULES, **{"If-Match": now["ETag"]}).status_code == 200


@pytest.mark.parametrize(("name", "value"), [("seq", "0"), ("seq", None), ("cacheBust", 1), ("tenantId", [])])
def test_a_version_of_another_type_is_refused_where_it_stands(
    client: ApiClient, address: str, name: str, value: object
) -> None:
    for answer in (
        client.put(address, {**RULES, name: value}),
        client.post("/config/rules/validate", {**RULES, name: value}),
    ):
        assert answer.status_code == 400
        assert [(error["code"], error["path"]) for error in answer.json()["errors"]] == [
            ("wrong-type", f"/{name}")
        ]
    assert client.get(address).json()["seq"] == 0


def test_a_reader_that_has_the_present_ruleset_gets_a_304_at_the_cost_of_one_query(
    client: ApiClient,
    address: str,
    django_assert_num_queries: Callable[[int], CaptureQueriesContext],
) -> None:
    held = client.get(address)["ETag"]
    with django_assert_num_queries(2) as captured:  # the caller's rights and the tag
        answer = client.get(address, **{"If-None-Match": held})
    assert (answer.status_code, answer.content) == (304, b"")
    assert '"rules_ruleset"."rules"' not in captured.captured_queries[-1]["sql"]
    client.put(address, RULES)
    assert client.get(address, **{"If-None-Match": held}).status_code == 200


def test_a_poll_is_answered_as_any_other_request(
    client: ApiClient, address: str, world: factories.World
) -> None:
    polled, headed = client.get(address), client.request("HEAD", address)
    assert polled.status_code == headed.status_code == 200
    own = {"X-Request-Id"}
    assert {k: v for k, v in polled.items() if k not in own} == {
        k: v for k, v in headed.items() if k not in own
    }
    unchanged = client.get(address, **{"If-None-Match": f'"other", {polled["ETag"]}'})
    assert (unchanged.status_code, unchanged.content, "Content-Type" in unchanged) == (304, b"", False)
    assert (unchanged["ETag"], unchanged["Allow"]) == (polled["ETag"], polled["Allow"])
    held = {"If-None-Match": polled["ETag"]}
    assert client.get(f"{address}?since=1", **held).status_code == 400
    assert ApiClient().get(address, **held).status_code == 401
    assert ApiClient(factories.sign_in(world.stranger)).get(address, **held).status_code == 403
    gone = address.replace(str(world.tenant.pk), str(uuid4()))
    admin = ApiClient(factories.sign_in(world.platform_admin))
    assert (admin.get(gone, **held).status_code, client.get(gone, **held).status_code) == (404, 403)


def test_a_poll_that_fails_is_a_500_that_tells_nothing(
    client: ApiClient, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr("rules.api.rules.render_ruleset", fail)
    answer = client.get(address, **{"X-Request-Id": "poll-1"})
    assert (answer.status_code, answer["X-Request-Id"]) == (500, "poll-1")
    assert (answer.json()["error"], answer.json()["requestId"]) == ("internal_error", "poll-1")
    assert "secret" not in answer.content.decode()


def test_lint_errors_refuse_the_write_with_error_and_lint_result_in_one(
    client: ApiClient, address: str
) -> None:
    answer = client.put(address, {"rules": [{"id": "a", "varyBy": [], "conditions": {"tabels": ["x"]}}]})
    assert answer.status_code == 400
    body = answer.json()
    assert (body["error"], body["valid"]) == ("validation_failed", False)
    assert [finding["code"] for finding in body["errors"]] == ["unknown-condition-key"]
    assert body["warnings"] == []
    assert client.get(address).json()["seq"] == 0


@pytest.mark.parametrize(("body", "path"), [([], ""), ({"rules": {}}, "/rules"), ({}, "/rules")])
def test_a_body_without_rules_is_a_plain_error(
    client: ApiClient, address: str, body: object, path: str
) -> None:
    for method, where in (("PUT", address), ("POST", "/config/rules/validate")):
        answer = client.request(method, where, body)
        assert answer.status_code == 400
        assert answer.json()["error"] == "validation_failed"
        assert [detail["path"] for detail in answer.json()["details"]] == [path]
        assert "valid" not in answer.json()


def test_validate_answers_the_lint_result_alone_to_any_caller(world: factories.World) -> None:
    client = ApiClient(factories.sign_in(world.stranger))
    good = client.post("/config/rules/validate", RULES)
    assert (good.status_code, good.json()) == (200, {"valid": True, "errors": [], "warnings": []})
    bad = client.post("/config/rules/validate", {"rules": [{"id": "a"}, {"id": "a"}]})
    assert bad.status_code == 400
    assert set(bad.json()) == {"valid", "errors", "warnings"}
    assert bad.json()["valid"] is False


def test_validate_tells_what_changes(world: factories.World) -> None:
    client = ApiClient(factories.sign_in(world.stranger))
    before = [{"id": "a", "name": "Orders", "ttlSeconds": 60}, {"id": "b"}]
    after = [{"id": "a", "name": "Orders", "enabled": False}, {"id": "b", "enabled": True}]
    found = client.post("/config/rules/validate", {"rules": after, "compareWith": before})
    (changed,) = found.json()["changed"]
    assert (found.status_code, changed["id"], changed["name"]) == (200, "a", "Orders")
    assert changed["inWords"] == [
        {"field": "A result is fresh for", "from": "1 min", "to": "1 d"},
        {"field": "Switched on", "from": "yes", "to": "no"},
    ]
    wrong = client.post("/config/rules/validate", {"rules": [], "compareWith": {}})
    assert [detail["path"] for detail in wrong.json()["details"]] == ["/compareWith"]


def test_rules_over_the_plans_limit_are_refused(world: factories.World) -> None:
    account = factories.make_account("Free", plan="free", owners=[world.owner])
    tenant = factories.make_tenant(account, owner=world.owner)
    client = ApiClient(factories.sign_in(world.owner))
    rules = [{"id": f"r{number}", "conditions": {"userName": f"u{number}"}} for number in range(26)]
    answer = client.put(f"/config/tenants/{tenant.pk}/rules", {"rules": rules})
    assert (answer.status_code, answer.json()["error"]) == (400, "plan_limit_exceeded")
    assert answer.json()["details"][0]["path"] == "/rules"
    assert client.put(f"/config/tenants/{tenant.pk}/rules", {"rules": rules[:25]}).status_code == 200


def test_another_tenants_ruleset_is_refused(client: ApiClient, address: str, world: factories.World) -> None:
    answer = client.put(address, {**RULES, "tenantId": str(world.stranger_tenant.pk)})
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "/tenantId")


def test_the_tenants_defaults_are_written_into_rules_and_explain_says_that_caching_is_off(
    client: ApiClient, address: str
) -> None:
    config_address = address.replace("/rules", "/config")
    config = {"tenantName": "Warehouse", "defaults": {"cacheEnabled": False, "ttlSeconds": 60}}
    assert client.put(config_address, config).status_code == 200
    written = client.put(address, {"rules": [*RULES["rules"], {"id": "own", "ttlSeconds": 5}]}).json()
    assert [rule["ttlSeconds"] for rule in written["rules"]] == [60, 5]
    draft = client.post(f"{address}/drafts", {"name": "d"}).json()
    assert "cache-disabled" in {finding["code"] for finding in draft["lint"]["warnings"]}
    asked = {"request": {"tables": ["sales.orders"]}}
    decision = client.post(f"{address}/explain", asked).json()["decision"]
    assert (decision["ruleId"], decision["action"], decision["statuses"]) == ("orders", "cache", ["BYPASS"])
    assert "defaults.cacheEnabled false" in decision["note"]

    # Stored rules do not follow a later change.
    config["defaults"] = {"ttlSeconds": 7}
    assert client.put(config_address, config).status_code == 200
    assert [rule["ttlSeconds"] for rule in client.get(address).json()["rules"]] == [60, 5]
    assert client.put(address, RULES).json()["rules"][0]["ttlSeconds"] == 7
    decision = client.post(f"{address}/explain", asked).json()["decision"]
    assert (decision["statuses"], "note" in decision) == (["HIT", "MISS"], False)


def test_a_stale_window_is_compared_with_the_tenants_default(client: ApiClient, address: str) -> None:
    config = {"tenantName": "Warehouse", "defaults": {"ttlSeconds": 60}}
    assert client.put(address.replace("/rules", "/config"), config).status_code == 200
    refused = client.put(address, {"rules": [{"id": "a", "staleWhileRevalidate": 61}]})
    assert [error["code"] for error in refused.json()["errors"]] == ["swr-exceeds-ttl"]
