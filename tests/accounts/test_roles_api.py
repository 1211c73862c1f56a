"""``/users/{email}/roles``. Contract: Users, roles, memberships."""

from __future__ import annotations

import pytest

from accounts.models import User
from tests import factories
from tests.accounts.support import signed_in

pytestmark = pytest.mark.django_db
ROLES = "/users/member@example.org/roles"


def test_put_replaces_and_patch_merges_key_by_key(world: factories.World) -> None:
    admin = signed_in(world.platform_admin)
    assert admin.get(ROLES).json() == {"primary": "user", "scopes": []}
    both = {"primary": "guest", "scopes": ["users:read"]}
    assert admin.put(ROLES, both).json() == both
    assert admin.patch(ROLES, {"primary": "user"}).json() == {"primary": "user", "scopes": ["users:read"]}
    assert admin.patch(ROLES, {"scopes": ["config:write", "config:read"]}).json() == {
        "primary": "user",
        "scopes": ["config:read", "config:write"],
    }
    assert admin.patch(ROLES, {}).json()["scopes"] == ["config:read", "config:write"]
    assert admin.put(ROLES, {"primary": "user"}).json() == {"primary": "user", "scopes": []}
    assert admin.get(ROLES).json() == {"primary": "user", "scopes": []}


@pytest.mark.parametrize(
    ("method", "body", "path"),
    [
        ("PUT", {}, "/primary"),
        ("PUT", {"scopes": []}, "/primary"),
        ("PUT", {"primary": "owner"}, "/primary"),
        ("PATCH", {"primary": None}, "/primary"),
        ("PATCH", {"scopes": None}, "/scopes"),
        ("PATCH", {"scopes": "users:read"}, "/scopes"),
        ("PATCH", {"scopes": ["*"]}, "/scopes/0"),
        ("PATCH", {"role": "user"}, "/role"),
        ("PATCH", ["user"], ""),
    ],
)
def test_errors_are_named(world: factories.World, method: str, body: object, path: str) -> None:
    answer = signed_in(world.platform_admin).request(method, ROLES, body)
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, path)


def test_a_user_reads_its_own_and_writes_none(world: factories.World) -> None:
    member = signed_in(world.member)
    assert member.get(ROLES).json() == {"primary": "user", "scopes": []}
    assert member.get("/users/owner@example.org/roles").status_code == 403
    for user in (world.member, world.tenant_admin, world.owner):
        for method in ("PUT", "PATCH"):
            answer = signed_in(user).request(method, ROLES, {"primary": "admin"})
            assert answer.status_code == 403
    assert User.objects.filter(role="admin").count() == 1


def test_an_unknown_user_is_a_404_for_a_platform_admin(world: factories.World) -> None:
    admin = signed_in(world.platform_admin)
    for method in ("GET", "PUT", "PATCH"):
        answer = admin.request(method, "/users/unknown@example.org/roles", {"primary": "user"})
        assert answer.status_code == 404


def test_the_last_admin_stays(world: factories.World) -> None:
    admin = signed_in(world.platform_admin)
    for method in ("PUT", "PATCH"):
        answer = admin.request(method, "/users/admin@example.org/roles", {"primary": "user"})
        (detail,) = answer.json()["details"]
        assert (answer.status_code, detail["code"], detail["path"]) == (400, "last-admin", "/primary")
    assert admin.patch("/users/admin@example.org/roles", {"scopes": ["logs:read"]}).status_code == 200


def test_a_demotion_acts_on_tokens_already_minted(world: factories.World) -> None:
    second = signed_in(factories.make_user("second@example.org", role="admin"))
    assert second.get(ROLES).status_code == 200
    signed_in(world.platform_admin).patch("/users/second@example.org/roles", {"primary": "user"})
    assert second.get(ROLES).status_code == 403


def test_a_promotion_needs_a_new_token(world: factories.World) -> None:
    member = signed_in(world.member)
    signed_in(world.platform_admin).patch(ROLES, {"primary": "admin"})
    assert member.get("/users/owner@example.org").status_code == 403
    world.member.refresh_from_db()
    assert signed_in(world.member).get("/users/owner@example.org").status_code == 200


def test_a_pat_needs_the_scope_and_a_wildcard(world: factories.World) -> None:
    from tests.conftest import ApiClient

    admin, tenant = world.platform_admin, str(world.tenant.pk)
    for scopes, tenants, status in (
        (["users:write"], ["*"], 200),
        (["users:read"], ["*"], 403),
        (["users:write"], [tenant], 403),
    ):
        client = ApiClient(factories.pat_token(admin, *scopes, tenants=tenants))
        assert client.patch(ROLES, {"scopes": []}).status_code == status
