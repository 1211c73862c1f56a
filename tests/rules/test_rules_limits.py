"""Rulesets as large and as odd as a body can be. Contract: Limits, Cache rules."""

from __future__ import annotations

import json
from typing import Any

import pytest

from accounts.models import Account
from rules.lint import limits
from tests import factories
from tests.conftest import ApiClient

pytestmark = pytest.mark.django_db

LIMIT = 1_048_576
VALIDATE = "/config/rules/validate"


@pytest.fixture
def client(world: factories.World) -> ApiClient:
    return ApiClient(factories.sign_in(world.tenant_admin))


@pytest.fixture
def address(world: factories.World) -> str:
    return f"/config/tenants/{world.tenant.pk}/rules"


def body_of(size: int) -> bytes:
    """A valid ruleset of this many bytes."""
    rule = {"id": "r", "conditions": {"userName": "ann"}, "description": ""}
    rule["description"] = "x" * (size - len(json.dumps({"rules": [rule]})))
    return json.dumps({"rules": [rule]}).encode()


def rules_of(count: int) -> dict[str, Any]:
    return {
        "rules": [
            {"id": f"r{n}", "varyBy": [], "conditions": {"userName": f"user {n}"}} for n in range(count)
        ]
    }


def test_a_body_of_one_mebibyte_is_stored_and_one_byte_more_is_not_read(
    client: ApiClient, address: str
) -> None:
    body = body_of(LIMIT)
    assert len(body) == LIMIT
    answer = client.put(address, body)
    assert answer.status_code == 200, answer.content[:500]
    stored = client.get(address).json()
    assert stored["rules"][0]["description"] == json.loads(body)["rules"][0]["description"]

    answer = client.put(address, body_of(LIMIT + 1))
    assert (answer.status_code, answer.json()["error"]) == (413, "payload_too_large")
    assert client.get(address).json() == stored


@pytest.mark.slow
def test_ten_thousand_rules(
    client: ApiClient, address: str, world: factories.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A slow machine has no time to look for all errors.
    monkeypatch.setattr(limits, "ERRORS_SECONDS", 60.0)
    document = rules_of(10_000)
    answer = client.post(VALIDATE, document)
    assert (answer.status_code, answer.json()["valid"], answer.json()["errors"]) == (200, True, [])
    # On a slow machine there is no time to compare all rules.
    assert {finding["code"] for finding in answer.json()["warnings"]} <= {"warnings-incomplete"}

    answer = client.put(address, document)
    assert (answer.status_code, answer.json()["error"]) == (400, "plan_limit_exceeded")
    assert [detail["path"] for detail in answer.json()["details"]] == ["/rules"]

    Account.objects.filter(pk=world.account.pk).update(plan="enterprise")
    assert client.put(address, document).status_code == 200
    stored = client.get(address).json()
    assert (stored["seq"], len(stored["rules"])) == (1, 10_000)
    assert client.get(f"{address}/history/1").json()["document"] == {"rules": stored["rules"]}
    last = client.get(f"{address}/history").json()["changes"][0]
    assert (last["summary"]["added"], len(last["summary"]["names"]["added"])) == (10_000, 20)


@pytest.mark.parametrize(
    "rule_id", ["a\n", "\x7f", "a\u202eb", "оrders", "a b", "", "a" * 129]
)  # one of them a look-alike
def test_an_id_of_other_characters_is_refused_at_its_place(
    client: ApiClient, address: str, rule_id: str
) -> None:
    for answer in (
        client.put(address, {"rules": [{"id": rule_id}]}),
        client.post(VALIDATE, {"rules": [{"id": rule_id}]}),
    ):
        assert answer.status_code == 400
        errors = answer.json()["errors"]
        assert [(error["code"], error["path"]) for error in errors] == [("invalid-rule-id", "/rules/0/id")]


@pytest.mark.parametrize(
    ("conditions", "code", "path"),
    [
        ({"standardizedSql": {"regex": "((a{100}){100}){100}"}}, "invalid-regex", "/standardizedSql/regex"),
        ({"standardizedSql": {"regex": "(" * 2_000}}, "invalid-regex", "/standardizedSql/regex"),
        ({"standardizedSql": {"regex": "a" * 2_001}}, "out-of-range", "/standardizedSql/regex"),
        ({"tableCount": {"gt": 10**400}}, "out-of-range", "/tableCount/gt"),
    ],
)
def test_a_bomb_is_refused_at_its_place(
    client: ApiClient, conditions: dict[str, Any], code: str, path: str
) -> None:
    answer = client.post(VALIDATE, {"rules": [{"id": "r", "conditions": conditions}]})
    assert answer.status_code == 400
    assert [(error["code"], error["path"]) for error in answer.json()["errors"]] == [
        (code, f"/rules/0/conditions{path}")
    ]


def test_conditions_as_deep_as_a_body_may_be(client: ApiClient) -> None:
    deep: dict[str, Any] = {"userName": "ann"}
    for _ in range(59):
        deep = {"not": deep}
    answer = client.post(VALIDATE, {"rules": [{"id": "r", "conditions": deep}]})
    assert answer.status_code == 400
    assert [error["code"] for error in answer.json()["errors"]] == ["conditions-too-deep"]

    body = b'{"rules": [{"id": "r", "conditions": ' + b'{"not": ' * 100_000 + b"{}" + b"}" * 100_000 + b"}]}"
    answer = client.post(VALIDATE, body)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_json")


def test_an_equal_ruleset_is_no_write_where_the_plan_has_become_smaller(
    client: ApiClient, address: str, world: factories.World
) -> None:
    document = rules_of(30)
    written = client.put(address, document).json()
    Account.objects.filter(pk=world.account.pk).update(plan="free")

    again = client.put(f"{address}?ifChanged=true", document)

    assert (again.status_code, again.json()["seq"]) == (200, written["seq"])
    assert client.put(address, document).json()["error"] == "plan_limit_exceeded"
    assert client.put(f"{address}?ifChanged=true", rules_of(29)).json()["error"] == "plan_limit_exceeded"
