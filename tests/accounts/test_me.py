"""``me`` in place of the caller's address. Contract: Users, roles, memberships."""

from __future__ import annotations

import re
from typing import Any

import pytest

from accounts.models import Membership, RefreshToken, User
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
