"""The change history: timelines, filters, paging, diff, restore. Contract: Change history."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from django.db import IntegrityError, connection, transaction

from accounts.billing.accounts import create_account
from accounts.models import Fqdn, Revision
from accounts.readers.rule import Author
from accounts.tenants.lifecycle import create_tenant, delete_tenant
from tenantadmin.lib.core.timestamps import format_timestamp
from tests import factories
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from django.test.utils import CaptureQueriesContext

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(world: factories.World) -> ApiClient:
    return ApiClient(factories.sign_in(world.owner))


@pytest.fixture
def address(world: factories.World) -> str:
    return f"/config/tenants/{world.tenant.pk}/config"


def rename(client: ApiClient, address: str, *names: str) -> None:
    for name in names:
        assert client.put(address, {"tenantName": name}).status_code == 200


def test_a_timeline_starts_at_the_creation_and_lists_the_newest_first(
    client: ApiClient, address: str, world: factories.World
) -> None:
    rename(client, address, "One", "Two")
    answer = client.get(f"{address}/history")
    assert answer.status_code == 200
    body = answer.json()
    assert body["_links"] == {
        "self": {"href": f"{address}/history"},
        "parent": {"href": address},
        "items": [{"name": str(seq), "href": f"{address}/history/{seq}"} for seq in (2, 1, 0)],
    }
    first = body["changes"][0]
    assert first == {
        "seq": 2,
        "kind": "config",
        "tenantId": str(world.tenant.pk),
        "accountId": str(world.account.pk),
        "userId": "owner@example.org",
        "changedAt": first["changedAt"],
        "action": "update",
        "summary": {"changedFields": 1, "fields": ["/tenantName"]},
        "text": "changed “Name”",
    }
    assert [change["action"] for change in body["changes"]] == ["update", "update", "create"]


def test_pages_follow_each_other_without_gap_or_repetition(client: ApiClient, address: str) -> None:
    rename(client, address, "One", "Two", "Three", "Four")
    for history in (f"{address}/history", "/config/history"):
        whole = [item["href"] for item in client.get(f"{history}?limit=200").json()["_links"]["items"]]
        seen: list[str] = []
        page = client.get(f"{history}?limit=2").json()
        while True:
            assert len(page["changes"]) <= 2
            seen += [item["href"] for item in page["_links"]["items"]]
            if "next" not in page["_links"]:
                break
            page = client.get(page["_links"]["next"]["href"]).json()
        assert seen == whole
        assert len(set(seen)) == len(seen)


def test_a_page_costs_the_same_however_long_it_is(
    client: ApiClient,
    address: str,
    django_assert_num_queries: Callable[[int], CaptureQueriesContext],
) -> None:
    rename(client, address, "One", "Two", "Three")
    for path, expected in (
        (f"{address}/history", 2),  # the caller's rights and the rows
        ("/config/history", 2),
        (f"{address}/history/1", 3),
    ):
        with django_assert_num_queries(expected) as captured:
            assert client.get(path).status_code == 200
        if not path.endswith("/1"):
            assert not any('"accounts_revision"."document"' in query["sql"] for query in captured)


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("limit=0", "/limit"),
        ("limit=201", "/limit"),
        ("limit=-1", "/limit"),
        ("limit=abc", "/limit"),
        ("limit=1.0", "/limit"),
        ("limit=", "/limit"),
        ("limit=99999999999999999999", "/limit"),
        ("cursor=%25", "/cursor"),
        ("cursor=bnVsbA", "/cursor"),
        ("cursor=WyIyMDI2IiwgImEiXQ", "/cursor"),
        ("page=2", "/page"),
    ],
)
def test_a_bad_parameter_is_a_400_that_names_it(
    client: ApiClient, address: str, query: str, path: str
) -> None:
    for history in (f"{address}/history", "/config/history"):
        answer = client.get(f"{history}?{query}")
        assert (answer.status_code, answer.json()["error"]) == (400, "bad_request")
        assert [detail["path"] for detail in answer.json()["details"]] == [path]


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("from=2026", "/from"),
        ("from=2026-11-21T00:00:00", "/from"),
        ("to=2026-02-30T00:00:00Z", "/to"),
        ("from=2026-11-22T00:00:00Z&to=2026-11-21T00:00:00Z", "/from"),
        ("kind=tenant", "/kind"),
        ("kind=rules&kind=config", "/kind"),
    ],
)
def test_a_bad_filter_is_a_400_that_names_it(client: ApiClient, query: str, path: str) -> None:
    answer = client.get(f"/config/history?{query}")
    assert (answer.status_code, answer.json()["error"]) == (400, "bad_request")
    assert [detail["path"] for detail in answer.json()["details"]] == [path]


def test_filters_narrow_the_whole_history(client: ApiClient, address: str, world: factories.World) -> None:
    other = ApiClient(factories.sign_in(world.tenant_admin))
    rename(client, address, "One")
    rename(other, address, "Two")

    def found(query: str) -> list[tuple[str, int]]:
        changes = client.get(f"/config/history?{query}").json()["changes"]
        return [(change["kind"], change["seq"]) for change in changes]

    assert found("kind=rules") == [("rules", 0)]
    assert found("userId=Tenant-Admin@example.org") == [("config", 2)]
    moment = Revision.objects.get(tenant_id=world.tenant.pk, kind="config", seq=1).changed_at
    exact = format_timestamp(moment)
    assert found(f"from={exact}&to={exact}") == [("config", 1)]
    later = format_timestamp(moment + dt.timedelta(milliseconds=1))
    assert ("config", 1) not in found(f"from={later}")
    assert found(f"to={exact}&kind=config") == [("config", 1), ("config", 0)]


def test_callers_see_only_readable_documents(world: factories.World) -> None:
    account = create_account(name="Third", owners=[world.stranger.email], author=Author("admin@example.org"))
    mine, other = str(world.tenant.pk), str(world.stranger_tenant.pk)

    def seen(token: str) -> set[str]:
        changes = ApiClient(token).get("/config/history?limit=200").json()["changes"]
        return {change.get("tenantId") or change["accountId"] for change in changes}

    everything = {mine, other, str(account.account_id)}
    assert seen(factories.sign_in(world.member)) == {mine}
    assert seen(factories.sign_in(world.stranger)) == {other, str(account.account_id)}
    assert seen(factories.sign_in(world.platform_admin)) == everything
    named = factories.pat_token(world.platform_admin, "config:read", tenants=[mine])
    assert seen(named) == {mine}
    wildcard = factories.pat_token(world.platform_admin, "config:read", tenants=["*"])
    assert seen(wildcard) == everything
    assert seen(factories.sign_in(factories.make_user("new@example.org"))) == set()


def test_an_unknown_tenant_or_revision_is_a_404(
    client: ApiClient, address: str, world: factories.World
) -> None:
    admin = ApiClient(factories.sign_in(world.platform_admin))
    unknown = "/config/tenants/00000000-0000-4000-8000-000000000000/config/history"
    assert admin.get(unknown).status_code == 404
    assert client.get(unknown).status_code == 403
    beyond = 2**63
    for more in ("/9", "/-1", "/01", "/x", f"/{beyond}", "/diff?from=0&to=9", f"/diff?from={beyond}&to=0"):
        assert client.get(f"{address}/history{more}").status_code == 404, more
    assert client.post(f"{address}/history/9/restore").status_code == 404


def test_a_revision_holds_the_document_as_it_was(client: ApiClient, address: str) -> None:
    rename(client, address, "One")
    body = client.get(f"{address}/history/1").json()
    assert (body["seq"], body["action"], body["document"]["tenantName"]) == (1, "update", "One")


def test_a_revision_says_on_which_days_it_was_in_force(
    client: ApiClient, address: str, world: factories.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.revisions.now", lambda: dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC))
    times = [
        "2025-12-30T12:00",
        "2026-11-03T09:00",
        "2026-11-09T10:00",
        "2026-11-09T12:00",
        "2026-11-08T00:00",
    ]
    for seq, time in enumerate(times, start=1):
        Revision.objects.create(
            kind="config",
            tenant_id=world.tenant.pk,
            account_id=world.account.pk,
            seq=seq,
            user="owner@example.org",
            changed_at=dt.datetime.fromisoformat(f"{time}Z"),
            action="update",
            document={},
        )
    assert [client.get(f"{address}/history/{seq}").json()["inForce"] for seq in range(1, 6)] == [
        "in force 30 December 2025 to 3 November 2026",
        "in force 3 to 9 November",
        "in force on Monday, 9 November, for 2 hours",
        # Dated back.
        "in force on Monday, 9 November, for a moment",
        "in force since Sunday, 8 November",
    ]


def test_a_diff_lists_the_fields_that_differ(client: ApiClient, address: str) -> None:
    rename(client, address, "One")
    client.put(address, {"tenantName": "Two", "defaults": {"ttlSeconds": 60}})
    body = client.get(f"{address}/history/diff?from=0&to=2").json()
    history = f"{address}/history"
    assert sorted(body.pop("fields"), key=lambda change: str(change["path"])) == [
        {"path": "/defaults/ttlSeconds", "from": 86400, "to": 60},
        {"path": "/tenantName", "from": "Warehouse", "to": "Two"},
    ]
    assert body == {
        "from": 0,
        "to": 2,
        "kind": "config",
        "inWords": [
            {"field": "Results live for", "from": "1 d", "to": "1 min"},
            {"field": "Name", "from": "Warehouse", "to": "Two"},
        ],
        "_links": {
            "self": {"href": f"{history}/diff?from=0&to=2"},
            "parent": {"href": history},
            "from": {"href": f"{history}/0"},
            "to": {"href": f"{history}/2"},
        },
    }
    assert client.get(f"{history}/diff?from=2&to=2").json()["fields"] == []


@pytest.mark.parametrize("query", ["", "from=0", "to=0", "from=-1&to=0", "from=a&to=0", "from=0&to=1.5"])
def test_a_diff_needs_two_revision_numbers(client: ApiClient, address: str, query: str) -> None:
    assert client.get(f"{address}/history/diff?{query}").status_code == 400


def test_a_restore_is_a_new_change_that_points_back(client: ApiClient, address: str) -> None:
    rename(client, address, "One", "Two")
    answer = client.post(f"{address}/history/1/restore")
    assert answer.status_code == 200, answer.content
    assert (answer.json()["tenantName"], answer.json()["seq"]) == ("One", 3)
    change = client.get(f"{address}/history").json()["changes"][0]
    assert (change["seq"], change["action"], change["restoredFrom"]) == (3, "restore", 1)


def test_a_comment_is_kept_in_the_revision(client: ApiClient, address: str) -> None:
    rename(client, address, "One")
    assert client.put(f"{address}?comment=New%20name%20%E2%9C%93", {"tenantName": "Two"}).status_code == 200
    assert client.post(f"{address}/history/1/restore?comment=Too%20early").status_code == 200
    assert client.put(f"{address}?comment={'x' * 501}", {"tenantName": "Three"}).status_code == 400
    changes = client.get(f"{address}/history").json()["changes"]
    assert [change["summary"].get("comment") for change in changes] == [
        "Too early",
        "New name ✓",
        None,
        None,
    ]


def test_a_restore_is_checked_against_todays_state(
    client: ApiClient, address: str, world: factories.World
) -> None:
    name = "old.gateway.localhost"
    client.put(address, {"tenantName": "Old", "fqdns": [name]})
    client.put(address, {"tenantName": "New"})
    Fqdn.objects.filter(name=name).update(tenant_id=world.stranger_tenant.pk)
    answer = client.post(f"{address}/history/1/restore")
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed")
    assert answer.json()["details"][0]["path"] == "/fqdns/0"
    Fqdn.objects.filter(name=name).delete()
    create_tenant(account_id=world.account.pk, document={"tenantName": "old"}, actor="x@example.org")
    answer = client.post(f"{address}/history/1/restore")
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "/tenantName")
    assert client.get(address).json()["tenantName"] == "New"


def test_a_restore_takes_no_body_and_honours_if_match(client: ApiClient, address: str) -> None:
    old = client.get(address)["ETag"]
    rename(client, address, "One")
    assert client.post(f"{address}/history/0/restore", {"seq": 0}).status_code == 400
    stale = client.request("POST", f"{address}/history/0/restore", headers={"If-Match": old})
    assert stale.status_code == 409


def test_the_history_of_a_deleted_tenant_stays_readable(
    client: ApiClient, address: str, world: factories.World
) -> None:
    delete_tenant(tenant_id=world.tenant.pk, actor="owner@example.org")
    changes = client.get(f"{address}/history").json()["changes"]
    assert [(change["seq"], change["action"]) for change in changes] == [(1, "delete"), (0, "create")]
    deletion = client.get(f"{address}/history/1").json()
    assert (deletion["document"], "inForce" in deletion) == (None, False)
    assert client.post(f"{address}/history/0/restore").status_code == 404
    assert client.post(f"{address}/history/1/restore").status_code == 404
    diff = client.get(f"{address}/history/diff?from=0&to=1").json()["fields"]
    assert {change["to"] for change in diff} == {None}
    world.tenant.delete()
    assert client.get(f"{address}/history").status_code == 403
    admin = ApiClient(factories.sign_in(world.platform_admin))
    assert len(admin.get(f"{address}/history").json()["changes"]) == 2


def test_the_database_refuses_to_change_or_delete_history(world: factories.World) -> None:
    rows = Revision.objects.filter(tenant_id=world.tenant.pk)
    for change in (lambda: rows.update(user="x"), rows.delete):
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            change()
    assert rows.count() == 2


def test_the_database_refuses_to_truncate_history(world: factories.World) -> None:
    with connection.cursor() as cursor:
        # PostgreSQL truncates no table whose foreign keys are still to be checked.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        with pytest.raises(IntegrityError, match="history is append-only: TRUNCATE"), transaction.atomic():
            cursor.execute("TRUNCATE accounts_revision CASCADE")
    assert Revision.objects.filter(tenant_id=world.tenant.pk).count() == 2


def test_the_same_revision_number_cannot_stand_twice(world: factories.World) -> None:
    row = Revision.objects.get(tenant_id=world.tenant.pk, kind="rules")
    with pytest.raises(IntegrityError, match="revision_seq_once"), transaction.atomic():
        Revision.objects.create(
            kind=row.kind,
            tenant_id=row.tenant_id,
            account_id=row.account_id,
            seq=0,
            action="create",
            user="x",
        )
