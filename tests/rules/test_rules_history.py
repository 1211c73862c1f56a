"""The history of rules: diff at rule level, restore under today's lint. Contract: Change history."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from accounts.models import Revision
from tests import factories
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from django.test.utils import CaptureQueriesContext

pytestmark = pytest.mark.django_db


def rule(rule_id: str, **fields: Any) -> dict[str, Any]:
    return {"id": rule_id, "conditions": {"userName": rule_id}, **fields}


@pytest.fixture
def client(world: factories.World) -> ApiClient:
    return ApiClient(factories.sign_in(world.owner))


@pytest.fixture
def address(world: factories.World) -> str:
    return f"/config/tenants/{world.tenant.pk}/rules"


def write(client: ApiClient, address: str, *rules: dict[str, Any]) -> dict[str, Any]:
    answer = client.put(address, {"rules": list(rules)})
    assert answer.status_code == 200, answer.content
    body: dict[str, Any] = answer.json()
    return body


def test_a_diff_matches_rules_by_id(client: ApiClient, address: str) -> None:
    write(client, address, rule("a"), rule("b"), rule("c"))
    last = write(client, address, rule("c"), rule("a", ttlSeconds=60), rule("d"))
    body = client.get(f"{address}/history/diff?from=1&to=2").json()
    assert (body["from"], body["to"], body["kind"]) == (1, 2, "rules")
    assert [rule["id"] for rule in body["removed"]] == ["b"]
    assert body["added"] == [last["rules"][2]]
    assert body["changed"] == [
        {
            "id": "a",
            "name": "a",
            "fields": [{"path": "/ttlSeconds", "from": 86400, "to": 60}],
            "inWords": [{"field": "A result is fresh for", "from": "1 d", "to": "1 min"}],
        }
    ]
    assert body["_links"]["parent"] == {"href": f"{address}/history"}


def test_reordering_alone_is_no_difference(client: ApiClient, address: str) -> None:
    write(client, address, rule("a"), rule("b"))
    write(client, address, rule("b"), rule("a"))
    body = client.get(f"{address}/history/diff?from=1&to=2").json()
    assert (body["added"], body["removed"], body["changed"], body["reordered"]) == ([], [], [], True)
    change = client.get(f"{address}/history").json()["changes"][0]
    assert change["summary"] == {
        "rules": 2,
        "added": 0,
        "removed": 0,
        "changed": 0,
        "reordered": True,
        "names": {},
        "labels": {},
    }


def test_a_restore_moves_the_cache_bust_token_forward(client: ApiClient, address: str) -> None:
    first = write(client, address, rule("a"))
    second = write(client, address, rule("b"))
    answer = client.post(f"{address}/history/1/restore")
    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert (body["rules"], body["seq"]) == (first["rules"], 3)
    assert first["cacheBust"] < second["cacheBust"] < body["cacheBust"]
    assert client.get(address)["ETag"] == answer["ETag"]
    change = client.get(f"{address}/history?limit=1").json()["changes"][0]
    assert (change["action"], change["restoredFrom"]) == ("restore", 1)


def test_a_comment_is_kept_in_the_revision(client: ApiClient, address: str) -> None:
    write(client, address, rule("a"))
    body = {"rules": [rule("b")]}
    assert client.put(f"{address}?comment=Orders%20change%20hourly%20%E2%9C%93", body).status_code == 200
    assert client.post(f"{address}/history/1/restore?comment=Too%20early").status_code == 200
    assert client.put(f"{address}?comment=", body).status_code == 200
    assert client.put(f"{address}?comment={'x' * 501}", body).status_code == 400
    changes = client.get(f"{address}/history").json()["changes"]
    assert [change["summary"].get("comment") for change in changes] == [
        *(None, "Too early", "Orders change hourly ✓"),
        *(None, None),
    ]


def test_a_revision_that_fails_todays_lint_is_not_restored(
    client: ApiClient, address: str, world: factories.World
) -> None:
    write(client, address, rule("a"))
    old = {"rules": [{"id": "a", "conditions": {"tabels": ["x"]}}]}
    # As an earlier release of the service may have stored it.
    row = Revision.objects.get(tenant_id=world.tenant.pk, kind="rules", seq=1)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE accounts_revision DISABLE TRIGGER revision_append_only")
    Revision.objects.filter(pk=row.pk).update(document=old)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE accounts_revision ENABLE TRIGGER revision_append_only")
    answer = client.post(f"{address}/history/1/restore")
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed")
    assert [finding["code"] for finding in answer.json()["errors"]] == ["unknown-condition-key"]
    assert client.get(address).json()["seq"] == 1


def test_bad_addresses_and_parameters(client: ApiClient, address: str) -> None:
    assert client.get(f"{address}/history/7").status_code == 404
    assert client.get(f"{address}/history/diff?from=0&to=7").status_code == 404
    assert client.get(f"{address}/history/diff?from=0").status_code == 400
    assert client.post(f"{address}/history/7/restore").status_code == 404
    assert client.post(f"{address}/history/0/restore?confirm=a").status_code == 400
    assert client.post(f"{address}/history/0/restore", {"seq": 1}).status_code == 400


def test_the_queries_of_each_operation(
    client: ApiClient,
    address: str,
    django_assert_num_queries: Callable[[int], CaptureQueriesContext],
) -> None:
    write(client, address, *(rule(f"r{number}") for number in range(5)))
    with django_assert_num_queries(3):  # the caller's rights, the tag, the rules; from then on the first two
        assert client.get(address).status_code == 200
    # The caller's rights and the rows, and the end of a revision.
    for path, expected in (("", 2), ("/history", 2), ("/history/1", 3), ("/history/diff?from=0&to=1", 2)):
        with django_assert_num_queries(expected):
            assert client.get(address + path).status_code == 200
    with django_assert_num_queries(12):
        # Rights, the ruleset, active markers, the log's tables; in one transaction: announce, stamp,
        # update, the tables that differ per user, append.
        assert client.put(address, {"rules": [rule("x"), rule("r1")]}).status_code == 200


def test_the_history_names_rules_as_they_were_called(client: ApiClient, address: str) -> None:
    write(client, address, {**rule("a"), "name": "First"}, {**rule("b"), "name": "Second"}, rule("c"))
    write(client, address, {**rule("a"), "name": "Renamed"})
    changes = client.get(f"{address}/history").json()["changes"]
    assert [change["text"] for change in changes] == [
        "removed “Second”, c, changed “Renamed”",
        "added “First”, “Second”, c",
        "created it",
    ]
    assert changes[0]["summary"]["names"] == {"removed": ["b", "c"], "changed": ["a"]}
    assert changes[0]["summary"]["labels"] == {"a": "Renamed", "b": "Second"}
