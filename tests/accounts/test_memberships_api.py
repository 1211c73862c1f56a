"""``/users/{email}/tenants``. Contract: Users, roles, memberships."""

from __future__ import annotations

from functools import partial

import pytest

from accounts.access.scopes import GRANTABLE
from accounts.models import Membership, PermissionGrant, Tenant, User
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.accounts.support import at_once, signed_in
from tests.conftest import ApiClient

pytestmark = pytest.mark.django_db
MEMBER = "/users/member@example.org/tenants"
INVITATION_NEEDED = (
    "You may change only members of your tenants. To add someone, invite the address: "
    "POST /config/tenants/{tenant}/invitations."
)
UNKNOWN = "3f2b8f0c-6d2f-4f0e-9a55-0d6f6d1d9f11"


def entry(tenant: Tenant, role: str) -> dict[str, str]:
    return {"tenantId": str(tenant.pk), "role": role}


def stored(user: User) -> dict[str, str]:
    return {str(row.tenant_id): row.role for row in Membership.objects.filter(user=user)}


class TestPlatformAdmin:
    def test_put_replaces_everything(self, world: factories.World) -> None:
        admin = signed_in(world.platform_admin)
        body = [entry(world.stranger_tenant, "owner")]
        answer = admin.put(MEMBER, body)
        assert (answer.status_code, answer.json()) == (200, body)
        assert stored(world.member) == {str(world.stranger_tenant.pk): "owner"}
        assert admin.put(MEMBER, []).json() == []
        assert admin.get(MEMBER).json() == []

    def test_patch_appends_and_keeps_the_others(self, world: factories.World) -> None:
        body = [entry(world.tenant, "owner"), entry(world.stranger_tenant, "admin")]
        answer = signed_in(world.platform_admin).patch(MEMBER, body)
        assert answer.json() == [entry(world.tenant, "member"), entry(world.stranger_tenant, "admin")]

    def test_may_remove_the_last_owner(self, world: factories.World) -> None:
        admin = signed_in(world.platform_admin)
        assert admin.put("/users/owner@example.org/tenants", []).status_code == 200

    @pytest.mark.parametrize(
        ("body", "path", "code"),
        [
            ({}, "", "not-a-list"),
            ([{"tenantId": UNKNOWN, "role": "member"}], "/0/tenantId", "unknown-tenant"),
            (
                [{"tenantId": UNKNOWN, "role": "member"}, {"tenantId": UNKNOWN.upper(), "role": "owner"}],
                "/1/tenantId",
                "duplicate-tenant",
            ),
            ([{"tenantId": UNKNOWN, "role": "guest"}], "/0/role", "invalid-choice"),
            ([{"tenantId": UNKNOWN, "role": "member", "since": 1}], "/0/since", "unknown-property"),
            ([7], "/0", "invalid"),
        ],
    )
    def test_errors_are_named(self, world: factories.World, body: object, path: str, code: str) -> None:
        for method in ("PUT", "PATCH"):
            answer = signed_in(world.platform_admin).request(method, MEMBER, body)
            assert answer.status_code == 400
            assert [(row["path"], row["code"]) for row in answer.json()["details"]] == [(path, code)]
        assert stored(world.member) == {str(world.tenant.pk): "member"}

    def test_a_deleted_tenant_is_unknown(self, world: factories.World) -> None:
        Tenant.objects.filter(pk=world.stranger_tenant.pk).update(deleted_at=now())
        answer = signed_in(world.platform_admin).put(MEMBER, [entry(world.stranger_tenant, "member")])
        assert answer.json()["details"][0]["code"] == "unknown-tenant"

    def test_an_unknown_user_is_a_404(self, world: factories.World) -> None:
        admin = signed_in(world.platform_admin)
        for method in ("GET", "PUT", "PATCH"):
            assert admin.request(method, "/users/unknown@example.org/tenants", []).status_code == 404


class TestOwner:
    def test_put_replaces_only_entries_of_its_own_tenants(self, world: factories.World) -> None:
        Membership.objects.create(user=world.member, tenant=world.stranger_tenant, role="admin")
        answer = signed_in(world.owner).put(MEMBER, [entry(world.tenant, "admin")])
        assert (answer.status_code, answer.json()) == (200, [entry(world.tenant, "admin")])
        assert signed_in(world.owner).put(MEMBER, []).json() == []
        assert stored(world.member) == {str(world.stranger_tenant.pk): "admin"}

    @pytest.mark.parametrize("method", ["PUT", "PATCH"])
    def test_an_entry_of_another_tenant_is_refused_and_nothing_is_written(
        self, world: factories.World, method: str
    ) -> None:
        body = [entry(world.tenant, "owner"), entry(world.stranger_tenant, "member")]
        answer = signed_in(world.owner).request(method, MEMBER, body)
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
        assert stored(world.member) == {str(world.tenant.pk): "member"}

    def test_whether_a_tenant_of_others_exists_is_not_told(self, world: factories.World) -> None:
        Membership.objects.create(user=world.member, tenant=world.stranger_tenant, role="admin")
        owner = signed_in(world.owner)
        answers = [
            owner.put(MEMBER, [{"tenantId": tenant, "role": "admin"}]).json()
            for tenant in (str(world.stranger_tenant.pk), UNKNOWN)
        ]
        assert answers[0]["message"] == answers[1]["message"] == "You do not own a tenant with this id."

    @pytest.mark.parametrize("email", ["stranger@example.org", "admin@example.org", "unknown@example.org"])
    def test_adds_no_member_and_does_not_learn_who_exists(self, world: factories.World, email: str) -> None:
        owner, before = signed_in(world.owner), Membership.objects.count()
        entries = [entry(world.tenant, "member")]
        answers = [
            owner.request(method, f"/users/{email}/tenants", body)
            for method in ("PUT", "PATCH")
            for body in (entries, [])
        ]
        answers.append(owner.put(f"/users/{email}", {"tenants": entries}))
        answers.append(owner.put(f"/users/{email}", {"createdAt": "2026-01-01T00:00:00.000Z"}))
        for answer in answers:
            assert (answer.status_code, answer.json()["message"]) == (
                403,
                INVITATION_NEEDED,
            )
        assert Membership.objects.count() == before

    def test_adds_no_member_of_one_tenant_to_another(self, world: factories.World) -> None:
        other = factories.make_tenant(world.account, "Second", owner=world.owner)
        body = [entry(world.tenant, "member"), entry(other, "member")]
        for method in ("PUT", "PATCH"):
            answer = signed_in(world.owner).request(method, MEMBER, body)
            assert answer.status_code == 403
            assert "/invitations" in answer.json()["message"]
        assert stored(world.member) == {str(world.tenant.pk): "member"}

    def test_sees_who_left_no_longer(self, world: factories.World) -> None:
        owner = signed_in(world.owner)
        assert owner.get("/users/member@example.org").status_code == 200
        Membership.objects.filter(user=world.member).update(ends_at=now())
        assert owner.get("/users/member@example.org").status_code == 403
        assert owner.put(MEMBER, []).status_code == 403

    def test_the_last_owner_of_a_tenant_stays(self, world: factories.World) -> None:
        owner, path = signed_in(world.owner), "/users/owner@example.org/tenants"
        for body in ([], [entry(world.tenant, "admin")]):
            answer = owner.put(path, body)
            assert (answer.status_code, answer.json()["details"][0]["code"]) == (400, "last-owner")
        assert stored(world.owner) == {str(world.tenant.pk): "owner"}
        owner.put(MEMBER, [entry(world.tenant, "owner")])
        assert owner.put(path, []).status_code == 200


class TestOthers:
    def test_a_grant_hands_on_no_more_than_it_holds(self, world: factories.World) -> None:
        PermissionGrant.objects.create(
            grantee=world.stranger,
            resource="tenant",
            resource_id=world.tenant.pk,
            permissions=["users:read", "users:write"],
        )
        client = signed_in(world.stranger)
        assert client.get(MEMBER).json() == [entry(world.tenant, "member")]
        assert client.put(MEMBER, [entry(world.tenant, "owner")]).status_code == 403
        assert client.put(MEMBER, [entry(world.tenant, "member")]).status_code == 200
        assert client.put(MEMBER, []).status_code == 200
        assert stored(world.member) == {}

    @pytest.mark.parametrize("method", ["PUT", "PATCH"])
    def test_permissions_of_a_grant_cannot_become_a_membership(
        self, world: factories.World, method: str
    ) -> None:
        for grantee in (world.stranger, world.tenant_admin):
            PermissionGrant.objects.create(
                grantee=grantee,
                resource="account",
                resource_id=world.account.pk,
                permissions=sorted(GRANTABLE),
            )
        attempts = [
            (world.stranger, "/users/stranger@example.org/tenants", "member"),
            (world.stranger, MEMBER, "admin"),
            (world.tenant_admin, "/users/tenant-admin@example.org/tenants", "owner"),
            (world.tenant_admin, "/users/stranger@example.org/tenants", "owner"),
        ]
        before = set(Membership.objects.values_list("user", "tenant", "role"))
        for user, path, role in attempts:
            answer = signed_in(user).request(method, path, [entry(world.tenant, role)])
            # Appending to a user who is in the tenant already changes nothing.
            unchanged = method == "PATCH" and path != "/users/stranger@example.org/tenants"
            assert answer.status_code == (200 if unchanged else 403)
        assert set(Membership.objects.values_list("user", "tenant", "role")) == before

    def test_an_admin_with_a_grant_hands_on_only_the_membership(self, world: factories.World) -> None:
        PermissionGrant.objects.create(
            grantee=world.tenant_admin,
            resource="tenant",
            resource_id=world.tenant.pk,
            permissions=["users:write"],
        )
        client = signed_in(world.tenant_admin)
        assert client.put(MEMBER, [entry(world.tenant, "admin")]).json() == [entry(world.tenant, "admin")]

    def test_a_pat_of_a_platform_admin_writes_memberships_of_its_tenants(
        self, world: factories.World
    ) -> None:
        token = factories.pat_token(
            world.platform_admin, "users:read", "users:write", tenants=[str(world.tenant.pk)]
        )
        client = ApiClient(token)
        assert client.put(MEMBER, [entry(world.tenant, "admin")]).json() == [entry(world.tenant, "admin")]
        assert client.patch(MEMBER, [entry(world.stranger_tenant, "member")]).status_code == 403


@pytest.mark.django_db(transaction=True)
def test_of_two_owners_removing_each_other_at_once_one_remains() -> None:
    for _ in range(5):
        User.objects.all().delete()
        Tenant.objects.all().delete()
        first, second = (factories.make_user(f"{name}@example.org") for name in "ab")
        tenant = factories.make_tenant(factories.make_account("Acme", owners=[first]), owner=first)
        Membership.objects.create(user=second, tenant=tenant, role="owner")
        answers = at_once(
            [
                partial(signed_in(first).put, f"/users/{second.email}/tenants", []),
                partial(signed_in(second).put, f"/users/{first.email}/tenants", []),
            ]
        )
        assert Membership.objects.filter(tenant=tenant, role="owner").count() == 1
        statuses = sorted(answer.status_code for answer in answers)
        assert statuses[0] == 200
        assert statuses[1] in {400, 403}


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
