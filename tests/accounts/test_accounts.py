"""Billing accounts through the API. Contract: accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from accounts.billing.accounts import create_account, remove_deleted_accounts
from accounts.models import Account, PermissionGrant, Revision, User
from accounts.readers.rule import Author
from accounts.tenants.lifecycle import delete_tenant
from tests import factories
from tests.conftest import ApiClient
from tests.streams import body_of

if TYPE_CHECKING:
    from accounts.billing.accounts import AccountState

pytestmark = pytest.mark.django_db

ADMIN = "admin@example.org"


@pytest.fixture
def account(world: factories.World) -> AccountState:
    return create_account(name="Acme", owners=[world.owner.email], plan="team", author=Author(ADMIN))


@pytest.fixture
def address(account: AccountState) -> str:
    return f"/config/accounts/{account.account_id}"


@pytest.fixture
def admin(world: factories.World) -> ApiClient:
    return ApiClient(factories.sign_in(world.platform_admin))


@pytest.fixture
def owner(world: factories.World, account: AccountState) -> ApiClient:
    return ApiClient(factories.sign_in(world.owner))


def test_a_platform_admin_creates_an_account(admin: ApiClient, world: factories.World) -> None:
    answer = admin.post(
        "/config/accounts",
        {"name": " New ", "plan": "team", "owners": ["Stranger@example.org", "owner@example.org"]},
    )
    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert body == {
        "accountId": body["accountId"],
        "name": "New",
        "plan": "team",
        "owners": ["owner@example.org", "stranger@example.org"],
        "billingEmail": "",
        "createdAt": body["createdAt"],
        "modifiedAt": body["createdAt"],
        "seq": 0,
    }
    assert answer["Location"] == f"/config/accounts/{body['accountId']}"
    assert admin.get(answer["Location"]).json() == body
    revision = Revision.objects.get(account_id=body["accountId"])
    assert (revision.kind, revision.seq, revision.action, revision.user) == ("account", 0, "create", ADMIN)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"name": ""}, "/name"),
        ({"name": "x" * 101}, "/name"),
        ({"owners": []}, "/owners"),
        ({"owners": None}, "/owners"),
        ({"owners": ["owner@example.org", "unknown@example.org"]}, "/owners/1"),
        ({"owners": ["not an email"]}, "/owners/0"),
        ({"plan": "gold"}, "/plan"),
        ({"billingEmail": "x"}, "/billingEmail"),
        ({"owner": "x"}, "/owner"),
    ],
)
def test_an_invalid_body_is_a_400_that_names_the_place(
    admin: ApiClient, address: str, change: dict[str, Any], path: str
) -> None:
    body = {"name": "New", "owners": ["owner@example.org"], **change}
    for answer in (admin.post("/config/accounts", body), admin.put(address, body)):
        assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed")
        assert [detail["path"] for detail in answer.json()["details"]] == [path]


def test_an_owner_writes_everything_but_the_plan(
    owner: ApiClient, address: str, world: factories.World
) -> None:
    stored = owner.get(address).json()
    answer = owner.put(
        address,
        {**stored, "name": "Renamed", "owners": ["owner@example.org", "member@example.org"]},
    )
    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert (body["name"], body["owners"], body["plan"], body["seq"]) == (
        "Renamed",
        ["member@example.org", "owner@example.org"],
        "team",
        1,
    )
    assert body["modifiedAt"] > stored["modifiedAt"]
    refused = owner.put(address, {**body, "plan": "enterprise"})
    assert refused.status_code == 403
    assert owner.get(address).json() == body
    change = owner.get(f"{address}/history").json()["changes"][0]
    assert change["summary"] == {"changedFields": 2, "fields": ["/name", "/owners"]}


def test_a_grant_writes_everything_but_the_owners(
    world: factories.World, owner: ApiClient, address: str, account: AccountState
) -> None:
    PermissionGrant.objects.create(
        grantee=world.stranger,
        resource="account",
        resource_id=account.account_id,
        permissions=["config:read", "config:write"],
    )
    grantee = ApiClient(factories.sign_in(world.stranger))
    for owners in (["stranger@example.org"], ["owner@example.org", "stranger@example.org"]):
        refused = grantee.put(address, {"name": "Acme", "owners": owners})
        assert (refused.status_code, refused.json()["message"]) == (
            403,
            "Only an owner of the account or a platform admin changes its owners.",
        )
    assert owner.get(address).json()["owners"] == ["owner@example.org"]
    renamed = grantee.put(address, {"name": "Renamed", "owners": ["Owner@example.org"]})
    assert (renamed.status_code, renamed.json()["name"]) == (200, "Renamed")


def test_a_guest_owner_cannot_change_owners_by_a_grant(
    world: factories.World, owner: ApiClient, address: str, account: AccountState
) -> None:
    User.objects.filter(pk=world.owner.pk).update(role="guest")
    PermissionGrant.objects.create(
        grantee=world.owner, resource="account", resource_id=account.account_id, permissions=["config:write"]
    )
    world.owner.refresh_from_db()
    guest = ApiClient(factories.sign_in(world.owner))
    owners = ["owner@example.org", "stranger@example.org"]
    assert guest.put(address, {"name": "Acme", "owners": owners}).status_code == 403
    assert guest.put(address, {"name": "Acme", "owners": owners[:1]}).status_code == 200


def test_a_token_of_the_owner_changes_owners_where_it_reaches_the_account(
    world: factories.World, account: AccountState, address: str
) -> None:
    token = factories.pat_token(world.owner, "config:write", accounts=[str(account.account_id)])
    owners = ["member@example.org", "owner@example.org"]
    answer = ApiClient(token).put(address, {"name": "Acme", "owners": owners})
    assert (answer.status_code, answer.json()["owners"]) == (200, owners)


def test_an_owner_does_not_learn_who_is_a_user(owner: ApiClient, address: str) -> None:
    answers = [
        owner.put(address, {"name": "Acme", "owners": ["owner@example.org", email]})
        for email in ("stranger@example.org", "unknown@example.org")
    ]
    message = (
        "New owners must be members of your tenants. To add someone, invite the address first: "
        "POST /config/tenants/{tenant}/invitations."
    )
    assert [(answer.status_code, answer.json()["message"]) for answer in answers] == [(403, message)] * 2
    assert owner.get(address).json()["owners"] == ["owner@example.org"]


def test_an_owner_that_is_no_member_may_stay(owner: ApiClient, admin: ApiClient, address: str) -> None:
    owners = ["owner@example.org", "stranger@example.org"]
    admin.put(address, {"name": "Acme", "owners": owners})
    assert owner.put(address, {"name": "Renamed", "owners": owners}).status_code == 200


def test_a_platform_admin_changes_the_plan(admin: ApiClient, address: str) -> None:
    stored = admin.get(address).json()
    assert admin.put(address, {**stored, "plan": "enterprise"}).json()["plan"] == "enterprise"


def test_a_stale_copy_is_a_409(owner: ApiClient, address: str) -> None:
    first = owner.get(address)
    del (body := first.json())["plan"]
    assert owner.put(address, body).status_code == 200
    assert owner.put(address, body).json()["error"] == "concurrent_change"
    del body["seq"]
    assert owner.put(address, body, **{"If-Match": first["ETag"]}).status_code == 409
    assert owner.get(address, **{"If-None-Match": first["ETag"]}).status_code == 200
    second = owner.get(address)
    assert owner.get(address, **{"If-None-Match": second["ETag"]}).status_code == 304


def test_read_only_fields_cannot_be_changed(owner: ApiClient, address: str) -> None:
    stored = owner.get(address).json()
    for change in (
        {"accountId": "00000000-0000-4000-8000-000000000000"},
        {"createdAt": "2020-01-01T00:00:00.000Z"},
    ):
        answer = owner.put(address, {**stored, **change})
        assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, f"/{next(iter(change))}")


def test_the_list_has_readable_accounts_only(
    world: factories.World, admin: ApiClient, owner: ApiClient, account: AccountState
) -> None:
    def listed(client: ApiClient) -> set[str]:
        return {item["name"] for item in body_of(client.get("/config/accounts"))["_links"]["items"]}

    assert listed(owner) == {str(account.account_id), str(world.account.pk)}
    assert listed(admin) == {str(pk) for pk in Account.objects.values_list("pk", flat=True)}
    assert listed(ApiClient(factories.sign_in(world.member))) == set()


def test_a_token_from_before_one_owned_the_account_is_good_for_it(world: factories.World) -> None:
    before = ApiClient(factories.sign_in(world.stranger))
    address = f"/config/accounts/{world.account.pk}"
    generic = "This needs 'config:read' on the account. Its owners have it."
    assert before.get(address).json()["message"] == generic

    world.account.owners.add(world.stranger)
    assert before.get(address).status_code == 200


def test_an_unknown_account_is_a_404_for_a_platform_admin(admin: ApiClient, owner: ApiClient) -> None:
    unknown = "/config/accounts/00000000-0000-4000-8000-000000000000"
    for more in ("", "/history", "/domains"):
        assert admin.get(unknown + more).status_code == 404
        assert owner.get(unknown + more).status_code == 403
    assert admin.delete(unknown).status_code == 404


def test_an_account_with_live_tenants_cannot_be_deleted(admin: ApiClient, world: factories.World) -> None:
    address = f"/config/accounts/{world.account.pk}"
    answer = admin.delete(address)
    assert answer.status_code == 409
    assert "live tenants (1)" in answer.json()["message"]
    delete_tenant(tenant_id=world.tenant.pk, actor=ADMIN)
    answer = admin.delete(address)
    assert (answer.status_code, answer.json()["success"]) == (200, True)
    assert admin.get(address).status_code == 404
    assert (
        admin.post("/config/tenants", {"accountId": str(world.account.pk), "tenantName": "x"}).status_code
        == 404
    )
    assert remove_deleted_accounts() == 0
    world.tenant.delete()
    assert remove_deleted_accounts() == 1


def test_a_deleted_account_keeps_its_history(admin: ApiClient, address: str) -> None:
    assert admin.delete(address).status_code == 200
    changes = admin.get(f"{address}/history").json()["changes"]
    assert [(change["seq"], change["action"]) for change in changes] == [(1, "delete"), (0, "create")]
    assert admin.get(f"{address}/history/1").json()["document"] is None
    assert admin.get(f"{address}/history/0").json()["document"] == {
        "name": "Acme",
        "plan": "team",
        "owners": ["owner@example.org"],
        "billingEmail": "",
    }
    diff = admin.get(f"{address}/history/diff?from=0&to=1").json()
    assert {"path": "/name", "from": "Acme", "to": None} in diff["fields"]
