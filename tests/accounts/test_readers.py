"""What staff change of who can read a tenant, alone and with a second admin. Docs: security.md."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from django.core import mail

from accounts.access.credentials import end_pat, exchange_pat
from accounts.admin.offboarding import offboard
from accounts.admin.rights import revoke_rights, rights_on
from accounts.models import Event, Membership, PermissionGrant, Proposal, TenantConfig, User
from accounts.readers.grants import MAX_STAFF_GRANT
from accounts.readers.rule import Author, SecondAdminNeeded
from accounts.tasks import remove_old_invitations
from tenantadmin.lib.core.errors import ApiError, Forbidden
from tenantadmin.lib.core.request_context import acting_for
from tenantadmin.lib.core.timestamps import format_timestamp, now
from tests import factories
from tests.accounts.support import at_once, signed_in
from tests.conftest import ApiClient, clear_principal_cache
from tests.sending import send_all

if TYPE_CHECKING:
    from accounts.models import Tenant

pytestmark = pytest.mark.django_db
NEEDED = (403, "second_admin_required")


def require_approval(tenant: Tenant) -> None:
    config = TenantConfig.objects.get(pk=tenant.pk)
    config.document = {**config.document, "access": {"staffApproval": "required"}}
    config.save()


@pytest.fixture
def required(world: factories.World) -> None:
    require_approval(world.tenant)


@pytest.fixture
def admin(world: factories.World) -> ApiClient:
    return signed_in(world.platform_admin)


@pytest.fixture
def second(world: factories.World) -> ApiClient:
    return signed_in(factories.make_user("second@example.org", role="admin"))


@pytest.fixture
def outbox(django_capture_on_commit_callbacks: Any) -> Callable[..., Any]:
    """Return what calls a function and returns its answer and the mails that it sends."""

    def call(act: Callable[[], Any]) -> tuple[Any, list[Any]]:
        send_all()
        mail.outbox.clear()
        with django_capture_on_commit_callbacks(execute=True):
            answer = act()
        send_all()
        return answer, list(mail.outbox)

    return call


def memberships(user: User) -> str:
    return f"/users/{user.email}/tenants"


def entry(tenant: Tenant, role: str) -> list[dict[str, str]]:
    return [{"tenantId": str(tenant.pk), "role": role}]


def grant_on(resource: str, pk: object, **more: Any) -> dict[str, Any]:
    body = {"grantee": "stranger@example.org", "resource": resource, "resourceId": str(pk)}
    return {**body, "permissions": ["config:read"], **more}


def outcome(answer: Any) -> Any:
    return answer.status_code if answer.status_code < 400 else (answer.status_code, answer.json()["error"])


def owners_of(tenant: Tenant) -> list[str]:
    return list(Membership.objects.owners_of(tenant.pk).values_list("user__email", flat=True))


@pytest.mark.usefixtures("required")
class TestApprovalRequired:
    def test_one_admin_does_not_walk_round_it(self, world: factories.World, admin: ApiClient) -> None:
        attempts: list[tuple[str, Any]] = [
            (memberships(world.owner), []),
            (memberships(world.owner), entry(world.tenant, "member")),
            (f"/users/{world.owner.email}", {"tenants": []}),
        ]
        for path, body in attempts:
            refused = admin.put(path, body)
            assert outcome(refused) == (403, "forbidden")
            assert "neither remove nor demote the last owner" in refused.json()["message"]
        assert outcome(admin.put(memberships(world.member), entry(world.tenant, "owner"))) == NEEDED
        # Again, it is still one admin.
        assert outcome(admin.put(memberships(world.member), entry(world.tenant, "owner"))) == NEEDED
        assert outcome(admin.patch(memberships(world.stranger), entry(world.tenant, "owner"))) == NEEDED
        assert outcome(admin.patch(memberships(world.stranger), entry(world.tenant, "member"))) == (
            *(403, "forbidden"),
        )
        assert owners_of(world.tenant) == ["owner@example.org"]
        assert not world.stranger.memberships.filter(tenant=world.tenant).exists()

    def test_an_inactive_owner_or_a_guest_is_no_other_owner(
        self, world: factories.World, admin: ApiClient
    ) -> None:
        for fields in ({"is_active": False}, {"role": "guest"}):
            gone = factories.make_user(f"{min(fields)}@example.org", **fields)
            Membership.objects.create(user=gone, tenant=world.tenant, role="owner")
        assert outcome(admin.put(memberships(world.owner), [])) == (403, "forbidden")
        Membership.objects.filter(user=world.member).update(role="owner")
        assert outcome(admin.put(memberships(world.owner), [])) == 200

    def test_an_admin_who_owns_the_account_gives_no_more_than_its_memberships(
        self, world: factories.World, admin: ApiClient
    ) -> None:
        world.account.owners.add(world.platform_admin)
        clear_principal_cache()
        assert outcome(admin.post("/config/grants", grant_on("account", world.account.pk))) == NEEDED
        # Access for a limited time makes no owner.
        until = now() + dt.timedelta(hours=1)
        Membership.objects.create(
            user=world.platform_admin, tenant=world.tenant, role="member", ends_at=until
        )
        clear_principal_cache()
        assert outcome(admin.post("/config/grants", grant_on("account", world.account.pk))) == NEEDED
        assert not PermissionGrant.objects.exists()

    def test_staff_make_no_tokens_of_members(self, world: factories.World, admin: ApiClient) -> None:
        path = "/users/owner@example.org/tokens"
        own = signed_in(world.owner)
        for place in (
            {"tenants": [str(world.tenant.pk)]},
            {"tenants": [], "accounts": [str(world.account.pk)]},
        ):
            wanted = {"name": "x", "scopes": ["config:read"], **place}
            made = own.post(path, wanted).json()
            for asked in (
                partial(admin.post, path, wanted),
                partial(admin.post, f"{path}/{made['id']}/rotate"),
            ):
                refused = asked()
                assert outcome(refused) == (403, "forbidden")
                assert "only members themselves make and rotate" in refused.json()["message"]
            assert admin.delete(f"{path}/{made['id']}").status_code == 200

    def test_the_site_follows_it(self, world: factories.World) -> None:
        rights = [right for right in rights_on(world.tenant).rows if right.what == "owner"]
        with pytest.raises(Forbidden, match="neither remove nor demote"):
            revoke_rights(rights, author=Author.on_site(world.platform_admin))

    def test_a_second_admin_confirms_a_new_owner(
        self, world: factories.World, admin: ApiClient, second: ApiClient, outbox: Callable[..., Any]
    ) -> None:
        path, body = memberships(world.stranger), entry(world.tenant, "owner")
        asked = partial(admin.request, "PATCH", path, body, headers={"X-Reason": "ticket%207"})
        refused, mails = outbox(asked)
        assert outcome(refused) == NEEDED
        assert [message.to for message in mails] == [["owner@example.org"]]
        assert "- stranger@example.org would be an owner.\n\nReason:\n\n> ticket 7\n" in mails[0].body
        proposed = Event.objects.get(kind="rights.proposed")
        assert (proposed.actor, proposed.subject) == ("admin@example.org", "stranger@example.org")
        assert (proposed.tenant_id, proposed.reason) == (world.tenant.pk, "ticket 7")
        _, mails = outbox(asked)
        assert (mails, Proposal.objects.count()) == ([], 1)
        done, mails = outbox(partial(second.patch, path, body))
        assert outcome(done) == 200
        assert owners_of(world.tenant) == ["owner@example.org", "stranger@example.org"]
        assert [message.to for message in mails] == [["owner@example.org"]]
        assert "- stranger@example.org is an owner now." in mails[0].body
        assert "admin@example.org asked for it first" in mails[0].body
        confirmed = Event.objects.get(kind="rights.confirmed")
        assert (confirmed.actor, confirmed.before) == (
            "second@example.org",
            {"proposedBy": "admin@example.org", "reason": "ticket 7"},
        )
        # It is used up.
        Membership.objects.filter(user=world.stranger, tenant=world.tenant).delete()
        assert outcome(second.patch(path, body)) == NEEDED

    @pytest.mark.parametrize("why", ["expired", "demoted", "deactivated", "of another role", "for itself"])
    def test_what_confirms_nothing(
        self, world: factories.World, admin: ApiClient, second: ApiClient, why: str
    ) -> None:
        person = world.platform_admin if why == "for itself" else world.stranger
        path, body = memberships(person), entry(world.tenant, "owner")
        expected: Any = (403, "forbidden") if why == "for itself" else NEEDED
        assert outcome(admin.patch(path, body)) == expected
        if why == "expired":
            Proposal.objects.update(expires_at=now())
        elif why == "demoted":
            User.objects.filter(pk=world.platform_admin.pk).update(role="user")
        elif why == "deactivated":
            User.objects.filter(pk=world.platform_admin.pk).update(is_active=False)
        else:
            body = entry(world.tenant, "admin") if why == "of another role" else body
        expected = (403, "forbidden") if why == "of another role" else NEEDED
        assert outcome(second.patch(path, body)) == expected
        assert owners_of(world.tenant) == ["owner@example.org"]

    def test_a_tenant_without_an_owner_and_its_former_ones(
        self, world: factories.World, admin: ApiClient, second: ApiClient, outbox: Callable[..., Any]
    ) -> None:
        User.objects.filter(pk=world.member.pk).update(is_active=True)
        owner = signed_in(world.owner)
        owner.put(memberships(world.member), entry(world.tenant, "owner"))
        signed_in(world.member).put(memberships(world.owner), [])
        # As a command may do it.
        Membership.objects.filter(tenant=world.tenant).delete()
        path, body = memberships(world.stranger), entry(world.tenant, "owner")
        refused, mails = outbox(partial(admin.patch, path, body))
        assert outcome(refused) == NEEDED
        assert [message.to for message in mails] == [["owner@example.org"]]
        assert outcome(second.patch(path, body)) == 200

    @pytest.mark.parametrize("how", ["delete", "deactivate", "guest"])
    def test_the_last_owner_ends_with_a_second_admin(
        self,
        world: factories.World,
        admin: ApiClient,
        second: ApiClient,
        outbox: Callable[..., Any],
        how: str,
    ) -> None:
        address = f"/users/{world.owner.email}"
        calls: dict[str, Callable[[ApiClient], Any]] = {
            "delete": lambda client: client.delete(address),
            "deactivate": lambda client: client.put(address, {"active": False}),
            "guest": lambda client: client.put(f"{address}/roles", {"primary": "guest", "scopes": []}),
        }
        assert outcome(calls[how](admin)) == NEEDED
        assert User.objects.get(pk=world.owner.pk).is_active
        done, mails = outbox(lambda: calls[how](second))
        assert outcome(done) == 200
        assert [message.to for message in mails if "tenant “Warehouse”" in message.subject] == [
            ["owner@example.org"]
        ]
        # Of a tenant that has another owner, or no such configuration, one admin is enough.
        assert outcome(calls[how](admin)) in {200, (404, "not_found")}
        assert outcome(admin.delete(f"/users/{world.stranger.email}")) == 200

    def test_an_heir_of_the_last_owner_too(self, world: factories.World, outbox: Callable[..., Any]) -> None:
        other = factories.make_user("second@example.org", role="admin")
        heirs = dict.fromkeys((world.account.pk, world.tenant.pk), world.stranger.email)

        def run(admin: User) -> None:
            with acting_for("left the company"):
                try:
                    offboard(world.owner.pk, heirs=heirs, author=Author.on_site(admin))
                except SecondAdminNeeded as error:
                    error.settle()
                    raise

        for _ in range(2):
            with pytest.raises(SecondAdminNeeded, match=r"stranger@example\.org would be an owner"):
                run(world.platform_admin)
        assert User.objects.get(pk=world.owner.pk).is_active
        _, mails = outbox(partial(run, other))
        assert owners_of(world.tenant) == ["stranger@example.org"]
        assert not User.objects.get(pk=world.owner.pk).is_active
        told = next(message for message in mails if "tenant" in message.subject)
        assert told.to == ["owner@example.org"]
        assert "- stranger@example.org is an owner now.\n" in told.body
        assert "- owner@example.org is no longer a member, and was an owner.\n" in told.body

    @pytest.mark.parametrize("resource", ["tenant", "account"])
    def test_a_grant_needs_a_second_admin(
        self, world: factories.World, admin: ApiClient, second: ApiClient, resource: str
    ) -> None:
        body = grant_on(resource, getattr(world, resource).pk)
        assert outcome(admin.post("/config/grants", body)) == NEEDED
        assert not PermissionGrant.objects.exists()
        more = {**body, "permissions": ["config:read", "config:write"]}
        assert outcome(second.post("/config/grants", more)) == NEEDED
        assert outcome(second.post("/config/grants", body)) == 201
        # Owners need none.
        assert outcome(signed_in(world.owner).post("/config/grants", body)) == 201

    def test_access_for_a_limited_time_is_approved(self, world: factories.World, admin: ApiClient) -> None:
        assert outcome(admin.put(memberships(world.platform_admin), entry(world.tenant, "member"))) == (
            *(403, "forbidden"),
        )

    def test_old_proposals_are_removed(self, world: factories.World, admin: ApiClient) -> None:
        for person, days in ((world.stranger, 31), (world.member, 29)):
            admin.patch(memberships(person), entry(world.tenant, "owner"))
            admin.put(memberships(person), entry(world.tenant, "owner"))
            expired = now() - dt.timedelta(days=days)
            Proposal.objects.filter(person=person.email).update(expires_at=expired)
        remove_old_invitations()
        assert [proposal.person for proposal in Proposal.objects.all()] == ["member@example.org"]


class TestElsewhere:
    def test_owners_are_told_what_staff_change(
        self, world: factories.World, admin: ApiClient, outbox: Callable[..., Any]
    ) -> None:
        path, body = memberships(world.stranger), entry(world.tenant, "admin")
        done, mails = outbox(partial(admin.patch, path, body))
        assert outcome(done) == 200
        assert [message.to for message in mails] == [["owner@example.org"]]
        assert mails[0].subject == "Staff changed who can read your tenant “Warehouse”"
        # Owners are not told what they do themselves, nor of what changes nothing.
        _, mails = outbox(partial(signed_in(world.owner).put, path, entry(world.tenant, "member")))
        assert mails == []

    def test_owners_are_told_of_tokens_that_staff_make_for_members(
        self, world: factories.World, admin: ApiClient, outbox: Callable[..., Any]
    ) -> None:
        wanted = {"name": "x", "scopes": ["config:read"], "tenants": [str(world.tenant.pk)]}
        made, mails = outbox(partial(admin.post, "/users/member@example.org/tokens", wanted))
        assert outcome(made) == 201
        assert [message.to for message in mails] == [["owner@example.org"]]
        assert "Staff have made or rotated a personal access token of member@example.org." in mails[0].body

    def test_grants_of_staff_end(self, world: factories.World, admin: ApiClient) -> None:
        made = admin.post("/config/grants", grant_on("tenant", world.tenant.pk)).json()
        grant = PermissionGrant.objects.get(pk=made["id"])
        assert grant.expires_at is not None
        assert abs(grant.expires_at - now() - MAX_STAFF_GRANT) < dt.timedelta(minutes=1)
        late = format_timestamp(now() + MAX_STAFF_GRANT + dt.timedelta(days=1))
        refused = admin.post("/config/grants", grant_on("tenant", world.tenant.pk, expiresAt=late))
        assert [(detail["path"], detail["code"]) for detail in refused.json()["details"]] == [
            ("/expiresAt", "too-late")
        ]
        body = grant_on("tenant", world.tenant.pk, expiresAt=late)
        assert signed_in(world.owner).post("/config/grants", body).json()["expiresAt"] == late

    def test_a_grant_of_a_token_ends_with_it(self, world: factories.World) -> None:
        User.objects.filter(pk=world.owner.pk).update(role="admin")
        named = [str(world.tenant.pk)]
        secret = factories.pat_secret(world.owner, "users:write", "config:read", tenants=named)
        client = ApiClient(exchange_pat(secret).access_token)
        pat = world.owner.personal_access_tokens.get()
        made = client.post("/config/grants", grant_on("tenant", world.tenant.pk)).json()
        assert made["expiresAt"] == format_timestamp(pat.expires_at)
        late = format_timestamp(pat.expires_at + dt.timedelta(seconds=1))
        refused = client.post("/config/grants", grant_on("tenant", world.tenant.pk, expiresAt=late))
        assert refused.json()["details"][0]["code"] == "too-late"
        config = f"/config/tenants/{world.tenant.pk}/config"
        assert signed_in(world.stranger).get(config).status_code == 200
        end_pat(pat, actor="x@example.org")
        clear_principal_cache()
        assert signed_in(world.stranger).get(config).status_code == 403
        assert not PermissionGrant.objects.in_force().exists()


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    ROUNDS = 5

    @pytest.fixture
    def world(self) -> factories.World:
        world = factories.make_world()
        require_approval(world.tenant)
        return world

    def test_of_two_who_confirm_a_grant_one_wins(
        self, world: factories.World, admin: ApiClient, second: ApiClient
    ) -> None:
        third = signed_in(factories.make_user("third@example.org", role="admin"))
        body = grant_on("tenant", world.tenant.pk)
        for _ in range(self.ROUNDS):
            PermissionGrant.objects.all().delete()
            Proposal.objects.all().delete()
            assert outcome(admin.post("/config/grants", body)) == NEEDED
            answers = at_once([partial(client.post, "/config/grants", body) for client in (second, third)])
            assert sorted(map(str, map(outcome, answers))) == sorted(map(str, (201, NEEDED)))
            assert PermissionGrant.objects.count() == 1

    def test_two_who_ask_at_once_do_nothing_alone(
        self, world: factories.World, admin: ApiClient, second: ApiClient
    ) -> None:
        path, body = memberships(world.stranger), entry(world.tenant, "owner")
        for _ in range(self.ROUNDS):
            Membership.objects.filter(user=world.stranger, tenant=world.tenant).delete()
            Proposal.objects.all().delete()
            calls = [partial(client.patch, path, body) for client in (admin, second)]
            outcomes = [outcome(answer) for answer in at_once(calls)]
            # The later one confirms what the earlier has asked for, if that is stored by then.
            assert outcomes in ([NEEDED, NEEDED], [NEEDED, 200], [200, NEEDED])
            is_owner = "stranger@example.org" in owners_of(world.tenant)
            assert is_owner == (200 in outcomes)

    def test_the_last_owner_leaves_while_staff_name_an_heir(
        self, world: factories.World, admin: ApiClient, second: ApiClient
    ) -> None:
        path, body = memberships(world.member), entry(world.tenant, "owner")
        for _ in range(self.ROUNDS):
            Membership.objects.filter(user=world.member).update(role="member")
            Membership.objects.update_or_create(
                user=world.owner, tenant=world.tenant, defaults={"role": "owner"}
            )
            Proposal.objects.all().delete()
            assert outcome(admin.put(path, body)) == NEEDED
            leaves = partial(signed_in(world.owner).put, memberships(world.owner), [])
            calls: list[Any] = [partial(second.put, path, body), leaves]
            named, left = map(outcome, at_once(calls))
            assert named == 200
            # The owner leaves after the heir has come, or is told to wait.
            assert left in {200, (400, "validation_failed")}
            heirs = ["member@example.org"] if left == 200 else ["owner@example.org", "member@example.org"]
            assert sorted(owners_of(world.tenant)) == sorted(heirs)

    def test_of_two_admins_who_remove_two_owners_one_wins(
        self, world: factories.World, admin: ApiClient, second: ApiClient
    ) -> None:
        for _ in range(self.ROUNDS):
            for user in (world.owner, world.member):
                Membership.objects.update_or_create(
                    user=user, tenant=world.tenant, defaults={"role": "owner"}
                )
            calls = [
                partial(client.put, memberships(user), [])
                for client, user in ((admin, world.owner), (second, world.member))
            ]
            assert sorted(map(str, map(outcome, at_once(calls)))) == ["(403, 'forbidden')", "200"]
            assert len(owners_of(world.tenant)) == 1


def test_a_change_that_is_refused_leaves_nothing(world: factories.World) -> None:
    require_approval(world.tenant)
    with pytest.raises(ApiError) as refused:
        revoke_rights(rights_on(world.tenant).rows, author=Author.on_site(world.platform_admin))
    assert "last owner" in refused.value.text or "no owner" in refused.value.text
    assert world.tenant.memberships.count() == 3
