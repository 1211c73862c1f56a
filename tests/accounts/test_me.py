"""``me`` in place of the caller's address. Contract: Users, roles, memberships."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps

from accounts.access.assurance import Assurance
from accounts.access.credentials import create_refresh_token
from accounts.models import Account, Event, MagicLink, Membership, RefreshToken, User
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.accounts.support import signed_in
from tests.authz.sending import operations
from tests.conftest import ApiClient

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("me", ["me", "ME", "%6De", "%20me"])
def test_it_is_the_caller(world: factories.World, me: str) -> None:
    for user in (world.member, world.owner, world.platform_admin):
        client = signed_in(user)
        assert client.get(f"/users/{me}").json() == client.get(f"/users/{user.email}").json()
        assert client.get(f"/users/{me}").json()["email"] == user.email


def test_every_path_of_a_user_takes_it(world: factories.World) -> None:
    """Reads are answered as under the address, and links name the address."""
    client = signed_in(world.member)
    reads = {
        operation.route.replace("<email:email>", "{}")
        for operation in operations()
        if operation.method == "GET" and "<email:email>" in operation.route
    }
    assert reads == {
        "users/{}",
        "users/{}/roles",
        "users/{}/tenants",
        "users/{}/tokens",
        "users/{}/tokens/<int:pat_id>",
        "users/{}/sessions",
        "users/{}/sessions/<int:session_id>",
        "users/{}/tos",
        "users/{}/digests",
        "users/{}/invitations",
    }
    token = {"name": "x", "scopes": ["config:read"], "tenants": [str(world.tenant.pk)]}
    made = client.post("/users/me/tokens", token).json()["id"]
    session = RefreshToken.objects.get(user=world.member).pk
    for route in reads:
        path = route.replace("<int:pat_id>", str(made)).replace("<int:session_id>", str(session))
        mine, named = (client.get(f"/{path.format(name)}") for name in ("me", "member@example.org"))
        assert (mine.status_code, mine.json()) == (200, named.json()), path
        assert not re.search(r"/users/me\b", mine.content.decode()), path


def test_it_writes_the_caller(world: factories.World) -> None:
    client = signed_in(world.member)
    assert client.put("/users/me", {"displayName": "Me"}).json()["email"] == "member@example.org"
    world.member.refresh_from_db()
    assert world.member.display_name == "Me"
    made = client.post(
        "/users/me/tokens", {"name": "x", "scopes": ["config:read"], "tenants": [str(world.tenant.pk)]}
    )
    assert made.json()["owner"] == "member@example.org"
    assert client.delete(f"/users/me/tokens/{made.json()['id']}").status_code == 200
    assert (
        client.delete("/users/me/sessions").json()["message"].startswith("member@example.org is signed out")
    )
    assert client.get("/users/me").status_code == 401


def test_no_user_is_created_as_me(world: factories.World) -> None:
    admin = signed_in(world.platform_admin)
    before = User.objects.count()
    answer = admin.put("/users/me", {"email": "me"})
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "/email")
    assert admin.put("/users/me", {}).json()["email"] == "admin@example.org"
    assert User.objects.count() == before


def test_rights_are_the_rights_on_the_caller(world: factories.World) -> None:
    client = signed_in(world.member)
    assert client.put("/users/me/roles", {"primary": "admin"}).status_code == 403
    assert client.delete("/users/me").status_code == 403
    assert (
        client.patch("/users/me/tenants", [{"tenantId": str(world.tenant.pk), "role": "owner"}]).status_code
        == 403
    )
    assert Membership.objects.get(user=world.member).role == "member"
    assert ApiClient().get("/users/me").status_code == 401


@pytest.mark.parametrize(
    ("glob", "allowed"),
    [
        ("/users/admin@example.org", True),
        ("/users/*", True),
        ("/users/m*", False),
        ("/users/??", False),
        ("/users/member@example.org", False),
    ],
)
def test_the_endpoints_of_a_token_see_the_address(world: factories.World, glob: str, allowed: bool) -> None:
    endpoints: list[dict[str, Any]] = [{"methods": ["GET"], "path": glob}]
    token = factories.pat_token(world.platform_admin, "users:read", tenants=["*"], endpoints=endpoints)
    for name in ("me", "ME", "admin@example.org"):
        assert ApiClient(token).get(f"/users/{name}").status_code == (200 if allowed else 403), name


def test_endpoints_see_an_address_with_special_letters(db: None) -> None:
    ada = factories.make_user("a+b%2f@xn--bcher-kva.example", role="admin")
    endpoints = [{"path": "/users/a+b%2f@xn--bcher-kva.example"}]
    token = factories.pat_token(ada, "users:read", tenants=["*"], endpoints=endpoints)
    assert ApiClient(token).get("/users/me").json()["email"] == ada.email


@pytest.mark.parametrize("path", ["/users/me", "/users/me/tokens", "/users/ME/*"])
def test_a_new_token_names_the_address_and_not_me(world: factories.World, path: str) -> None:
    body = {"name": "x", "scopes": ["config:read"], "endpoints": [{"path": path}]}
    answer = signed_in(world.platform_admin).post("/users/me/tokens", body)
    (detail,) = answer.json()["details"]
    assert (answer.status_code, detail["path"], detail["code"]) == (400, "/endpoints/0/path", "names-me")


BUECHER = "zoe@xn--bcher-kva.example"


def migrate() -> None:
    module: Any = import_module("accounts.migrations.0023_canonical_addresses")
    module.normalize_addresses(apps, None)


def stored(email: str) -> User:
    return User.objects.get(email=email)


def test_an_address_gets_its_form_and_keeps_rights_and_sessions(world: factories.World) -> None:
    zoe = factories.make_user("zoe@bücher.example")
    Membership.objects.create(user=zoe, tenant=world.tenant, role="admin")
    session, _ = create_refresh_token(user=zoe, assurance=Assurance(amr={"link": 1.0}))
    account = factories.make_account("Books", owners=[zoe])
    Account.objects.filter(pk=account.pk).update(billing_email="zoe@bücher.example")
    MagicLink.objects.create(digest=b"1" * 32, email="zoe@bücher.example", expires_at=now())
    MagicLink.objects.create(digest=b"2" * 32, email="ada@example.org", expires_at=now())
    for _ in range(2):
        migrate()
    moved = stored(BUECHER)
    assert (moved.pk, moved.is_active, moved.epoch) == (zoe.pk, True, zoe.epoch)
    assert [(membership.tenant, membership.role) for membership in moved.memberships.all()] == [
        (world.tenant, "admin")
    ]
    session.refresh_from_db()
    assert session.revoked_at is None
    assert Account.objects.get(pk=account.pk).billing_email == BUECHER
    assert [link.email for link in MagicLink.objects.all()] == ["ada@example.org"]
    event = Event.objects.get(kind="user.changed")
    assert (event.actor, event.subject, event.before) == (
        "migration of addresses",
        BUECHER,
        {"email": "zoe@bücher.example"},
    )


def test_two_users_of_one_mailbox_become_one(world: factories.World) -> None:
    double, zoe = factories.make_user("zoe@bücher.example"), factories.make_user(BUECHER)
    other = factories.make_tenant(world.account, "Second", owner=double)
    Membership.objects.create(user=double, tenant=world.tenant, role="owner")
    Membership.objects.create(user=zoe, tenant=world.tenant, role="member")
    account = factories.make_account("Books", owners=[double])
    session, _ = create_refresh_token(user=double, assurance=Assurance(amr={"link": 1.0}))
    migrate()
    assert {(membership.tenant, membership.role) for membership in stored(BUECHER).memberships.all()} == {
        (world.tenant, "member"),
        (other, "owner"),
    }
    assert list(account.owners.all()) == [zoe]
    left = User.objects.get(pk=double.pk)
    assert (left.email, left.is_active) == (f"zoe.duplicate-{double.pk}@xn--bcher-kva.example", False)
    assert not left.memberships.exists()
    session.refresh_from_db()
    assert session.revoked_at is not None


@pytest.mark.parametrize(
    "fields", [{"role": "admin"}, {"is_support": True}, {"is_active": False}, {"identity_subject": "7"}]
)
@pytest.mark.parametrize("which", ["old", "new"])
def test_rights_do_not_move_where_that_could_give_too_much(
    world: factories.World, fields: dict[str, Any], which: str
) -> None:
    double = factories.make_user("zoe@bücher.example", **(fields if which == "old" else {}))
    zoe = factories.make_user(BUECHER, **(fields if which == "new" else {}))
    Membership.objects.create(user=double, tenant=world.tenant, role="owner")
    migrate()
    assert not zoe.memberships.exists()
    left = User.objects.get(pk=double.pk)
    assert (left.is_active, left.memberships.count()) == (False, 1)


def test_a_user_whose_links_went_to_another_domain_is_deactivated(world: factories.World) -> None:
    zoe = factories.make_user("zoe@straße.example")
    other = factories.make_user("zoe@strasse.example")
    Membership.objects.create(user=zoe, tenant=world.tenant, role="member")
    migrate()
    moved = stored("zoe@xn--strae-oqa.example")
    assert (moved.pk, moved.is_active) == (zoe.pk, False)
    assert moved.epoch != zoe.epoch
    other.refresh_from_db()
    assert (other.email, other.is_active, other.memberships.count()) == ("zoe@strasse.example", True, 0)


def test_what_has_no_form_stays() -> None:
    factories.make_user("root@[127.0.0.1]")
    migrate()
    assert stored("root@[127.0.0.1]").is_active
    assert not Event.objects.exists()
