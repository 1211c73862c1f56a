"""Invitations into tenants, from both sides. Contract: Invitations."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from accounts.access.scopes import Scope
from accounts.admin.offboarding import offboard
from accounts.models import Event, Invitation, InvitationRefusal, Membership, Tenant, User
from accounts.readers.memberships import SetMembership
from accounts.readers.rule import Author, change_readers
from accounts.readers.users import DeleteUser, SetRole
from accounts.tasks import remove_old_invitations
from accounts.tenants.lifecycle import delete_tenant
from accounts.users import delete_user
from tenantadmin.lib.core.timestamps import format_timestamp, now
from tests import factories
from tests.accounts.support import at_once, signed_in
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from django.core.mail import EmailMultiAlternatives
    from pytest_django.fixtures import DjangoAssertNumQueries

    from accounts.readers.rule import Change

pytestmark = pytest.mark.django_db
OWN = "/users/me/invitations"
MEMBERS = {"owner@example.org": "owner", "tenant-admin@example.org": "admin", "member@example.org": "member"}


def into(tenant: Tenant) -> str:
    return f"/config/tenants/{tenant.pk}/invitations"


def members(tenant: Tenant) -> dict[str, str]:
    return dict(tenant.memberships.values_list("user__email", "role"))


def invite(world: factories.World, email: str = "stranger@example.org", role: str = "member") -> str:
    answer = signed_in(world.owner).post(into(world.tenant), {"email": email, "role": role})
    assert answer.status_code == 201, answer.content
    return str(answer.json()["id"])


def joined(user: User, ago: dt.timedelta) -> None:
    User.objects.filter(pk=user.pk).update(created_at=now() - ago)


def kinds() -> list[tuple[str, str, str]]:
    rows = Event.objects.exclude(kind__startswith="token.").order_by("at", "id")
    return list(rows.values_list("kind", "actor", "subject"))


class TestInviting:
    def test_what_is_answered_listed_and_mailed(
        self, world: factories.World, mailoutbox: list[EmailMultiAlternatives], settings: Any
    ) -> None:
        settings.DASHBOARD_URL = "https://dash.example.org/"
        joined(world.owner, dt.timedelta(days=2))
        owner = signed_in(world.owner)
        body = {"email": " Grace@Example.org", "role": "admin", "message": "Have a <look>."}
        answer = owner.post(into(world.tenant), body)
        assert answer.status_code == 201
        stored = Invitation.objects.get()
        assert answer.json() == {
            "id": str(stored.pk),
            "tenantId": str(world.tenant.pk),
            "tenantName": "Warehouse",
            "email": "grace@example.org",
            "role": "admin",
            "message": "Have a <look>.",
            "invitedBy": "owner@example.org",
            "state": "open",
            "createdAt": format_timestamp(stored.created_at),
            "expiresAt": format_timestamp(stored.created_at + dt.timedelta(days=14)),
        }
        assert owner.get(into(world.tenant)).json() == {
            "_links": {
                "self": {"href": into(world.tenant)},
                "parent": {"href": f"/config/tenants/{world.tenant.pk}"},
            },
            "invitations": [answer.json()],
        }
        (mail,) = mailoutbox
        assert (mail.to, mail.subject) == (
            ["grace@example.org"],
            "owner@example.org invites you to a tenant of tenantadmin",
        )
        html = str(mail.alternatives[0][0])
        assert "> Have a <look>." in mail.body
        assert "Have a &lt;look&gt;." in html
        for text in (str(mail.body), html):
            assert text.count("https://dash.example.org/#/signin?email=grace%40example.org") == 1
            assert "http://testserver" in text
        assert not User.objects.filter(email="grace@example.org").exists()
        assert kinds() == [("invitation.created", "owner@example.org", "grace@example.org")]

    def test_known_and_unknown_addresses_are_answered_alike(
        self, world: factories.World, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        owner = signed_in(world.owner)
        owner.get(into(world.tenant))
        factories.make_user("gone@example.org", is_active=False)
        answers = []
        for email in ("unknown@example.org", "stranger@example.org", "admin@example.org", "gone@example.org"):
            with django_assert_num_queries(11):
                answer = owner.post(into(world.tenant), {"email": email, "role": "member"})
            shown = answer.json()
            for name in ("id", "email", "createdAt", "expiresAt"):
                shown.pop(name)
            answers.append((answer.status_code, shown))
        assert all(answer == answers[0] for answer in answers)
        assert answers[0][0] == 201

    def test_a_second_one_to_an_address_replaces_the_first(self, world: factories.World) -> None:
        first, second = invite(world), invite(world, role="admin")
        listed = signed_in(world.owner).get(into(world.tenant)).json()["invitations"]
        assert [(row["id"], row["state"]) for row in listed] == [(second, "open"), (first, "withdrawn")]
        (own,) = signed_in(world.stranger).get(OWN).json()["invitations"]
        assert (own["id"], own["role"]) == (second, "admin")

    @pytest.mark.parametrize(
        ("body", "path", "code"),
        [
            ({"email": "ada@example.org"}, "/role", "required"),
            ({"email": "ada", "role": "member"}, "/email", "invalid-email"),
            ({"email": "ada@example.org", "role": "guest"}, "/role", "invalid-choice"),
            ({"email": "ada@example.org", "role": "member", "message": "x" * 501}, "/message", "max-length"),
            ({"email": "member@example.org", "role": "owner"}, "/email", "is-member"),
            ({"email": "owner@example.org", "role": "owner"}, "/email", "is-member"),
        ],
    )
    def test_what_is_refused(
        self, world: factories.World, body: dict[str, str], path: str, code: str
    ) -> None:
        answer = signed_in(world.owner).post(into(world.tenant), body)
        assert answer.status_code == 400
        assert [(detail["path"], detail["code"]) for detail in answer.json()["details"]] == [(path, code)]
        assert not Invitation.objects.exists()

    def test_a_platform_admin_does_not_invite_itself(self, world: factories.World) -> None:
        body = {"email": world.platform_admin.email, "role": "owner"}
        assert signed_in(world.platform_admin).post(into(world.tenant), body).status_code == 403
        # An owner does.
        assert signed_in(world.owner).post(into(world.tenant), body).status_code == 201

    @pytest.mark.slow
    def test_a_tenant_has_at_most_50_open_ones(self, world: factories.World, settings: Any) -> None:
        settings.INVITATION_LIMIT = "100 per hour"
        owner = signed_in(world.owner)
        for number in range(50):
            invite(world, f"ada{number}@example.org")
        body = {"email": "one-more@example.org", "role": "member"}
        answer = owner.post(into(world.tenant), body)
        assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
        invite(world, "ada7@example.org")  # replaces one
        open_one = str(Invitation.objects.open().values_list("pk", flat=True)[0])
        assert owner.delete(f"{into(world.tenant)}/{open_one}").status_code == 200
        assert owner.post(into(world.tenant), body).status_code == 201

    def test_it_is_limited_by_tenant_and_by_caller(self, world: factories.World) -> None:
        statuses = [
            signed_in(world.owner)
            .post(into(world.tenant), {"email": f"ada{number}@example.org", "role": "member"})
            .status_code
            for number in range(21)
        ]
        assert statuses == [201] * 20 + [429]

    def test_a_mailbox_gets_ten_a_day_of_all_tenants(
        self, world: factories.World, mailoutbox: list[EmailMultiAlternatives]
    ) -> None:
        """84 came in six seconds, from seven free accounts."""
        statuses: list[int] = []
        for number in range(6):
            owner = factories.make_user(f"owner{number}@example.org")
            tenant = factories.make_tenant(factories.make_account(f"a{number}", owners=[owner]), owner=owner)
            body = {"email": "Victim@example.org", "role": "member"}
            statuses += [signed_in(owner).post(into(tenant), body).status_code for _ in range(2)]
        assert statuses == [201] * 10 + [429] * 2
        assert len(mailoutbox) == 10

    def test_a_receiver_refuses_further_ones(
        self, world: factories.World, mailoutbox: list[EmailMultiAlternatives]
    ) -> None:
        invite(world)
        (link,) = {word for word in str(mailoutbox[0].body).split() if "unsubscribe" in word}
        assert mailoutbox[0].extra_headers["List-Unsubscribe"] == f"<{link}>"
        path = link.removeprefix("http://testserver")
        page = ApiClient().get(path).content.decode()
        assert "Do you want no more invitations by mail?" in page
        invite(world)  # Programs that follow links refuse nothing.
        assert len(mailoutbox) == 2
        for _ in range(2):
            assert "You get no more invitations by mail." in ApiClient().post(path).content.decode()
        invite(world)
        assert len(mailoutbox) == 2
        # It is there after signing in, and other addresses get theirs.
        assert len(signed_in(world.stranger).get(OWN).json()["invitations"]) == 1
        invite(world, "ada@example.org")
        assert [message.to for message in mailoutbox[2:]] == [["ada@example.org"]]
        assert [event for event in kinds() if event[1] == "stranger@example.org"] == [
            ("invitation.declined", "stranger@example.org", "stranger@example.org")
        ]

    def test_a_forged_link_refuses_nothing(self, world: factories.World) -> None:
        answer = ApiClient().post("/digests/unsubscribe?t=InN0cmFuZ2VyQGV4YW1wbGUub3JnIg:1:x")
        assert answer.status_code == 400
        assert not InvitationRefusal.objects.exists()

    def test_a_mail_shows_what_users_wrote_as_theirs_and_without_links(
        self, world: factories.World, mailoutbox: list[EmailMultiAlternatives]
    ) -> None:
        joined(world.owner, dt.timedelta(days=1))
        Tenant.objects.filter(pk=world.tenant.pk).update(
            name="x”. Pay at https://evil.example/a now, “evil.example"
        )
        message = (
            "Hello.\n\nYour account is closed.\u2028See www.evil.example or evil.example/b\r\n-- The service"
        )
        body = {"email": "grace@example.org", "role": "member", "message": message}
        assert signed_in(world.owner).post(into(world.tenant), body).status_code == 201
        (mail,) = mailoutbox
        assert mail.subject == "owner@example.org invites you to a tenant of tenantadmin"
        text, html = str(mail.body), str(mail.alternatives[0][0])
        assert (
            "\n> Hello.\n>\n> Your account is closed.\n> See [web address left out] or evil[.]example/b\n"
            "> -- The service\n"
        ) in text
        assert "the tenant “x'. Pay at [web address left out] now, 'evil[.]example” of tenantadmin" in text
        for shown in (text, html):
            assert "evil.example" not in shown

    @pytest.mark.parametrize(("hours", "status"), [(23, 400), (25, 201)])
    def test_a_new_user_invites_without_a_message(
        self, world: factories.World, hours: int, status: int
    ) -> None:
        joined(world.owner, dt.timedelta(hours=hours))
        body = {"email": "grace@example.org", "role": "member", "message": "Hello."}
        answer = signed_in(world.owner).post(into(world.tenant), body)
        assert answer.status_code == status
        if status == 400:
            assert answer.json()["details"][0]["path"] == "/message"
            assert not Invitation.objects.exists()
            assert signed_in(world.owner).post(into(world.tenant), {**body, "message": ""}).status_code == 201

    def test_a_mail_that_cannot_be_sent_leaves_no_open_invitation(
        self, world: factories.World, settings: Any
    ) -> None:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
        answer = signed_in(world.owner).post(
            into(world.tenant), {"email": "stranger@example.org", "role": "member"}
        )
        assert answer.status_code == 502
        assert [invitation.state for invitation in Invitation.objects.all()] == ["withdrawn"]
        assert signed_in(world.stranger).get(OWN).json()["invitations"] == []

    def test_without_a_mail_server_it_waits_for_the_sign_in(
        self, world: factories.World, settings: Any, mailoutbox: list[Any]
    ) -> None:
        settings.MAGIC_LINKS_ENABLED = False
        invite(world)
        assert not mailoutbox
        assert len(signed_in(world.stranger).get(OWN).json()["invitations"]) == 1

    def test_a_domain_that_may_not_sign_in_is_refused(self, world: factories.World, settings: Any) -> None:
        settings.SIGNIN_EMAIL_DOMAINS = ["example.com"]
        body = {"email": "stranger@example.org", "role": "member"}
        assert signed_in(world.owner).post(into(world.tenant), body).status_code == 403


class TestAnswering:
    def test_accepting_makes_a_member(self, world: factories.World) -> None:
        invitation = invite(world, role="admin")
        stranger = signed_in(world.stranger)
        assert stranger.get(f"/config/tenants/{world.tenant.pk}").status_code == 403
        (shown,) = stranger.get(OWN).json()["invitations"]
        answer = stranger.post(f"{OWN}/{invitation}/accept")
        assert answer.status_code == 200
        assert answer.json() == {**shown, "state": "accepted", "endedAt": answer.json()["endedAt"]}
        assert members(world.tenant) == {**MEMBERS, "stranger@example.org": "admin"}
        assert stranger.get(f"/config/tenants/{world.tenant.pk}").status_code == 200
        assert stranger.get(OWN).json()["invitations"] == []
        assert kinds()[1:] == [
            ("invitation.accepted", "stranger@example.org", "stranger@example.org"),
            ("membership.added", "stranger@example.org", "stranger@example.org"),
        ]
        assert stranger.post(f"{OWN}/{invitation}/accept").status_code == 409

    def test_declining(self, world: factories.World) -> None:
        invitation = invite(world)
        stranger = signed_in(world.stranger)
        assert stranger.post(f"{OWN}/{invitation}/decline").json()["state"] == "declined"
        assert stranger.post(f"{OWN}/{invitation}/accept").status_code == 409
        assert stranger.post(f"{OWN}/{invitation}/decline").status_code == 409
        assert members(world.tenant) == MEMBERS

    def test_withdrawing(self, world: factories.World) -> None:
        invitation = invite(world)
        owner, path = signed_in(world.owner), f"{into(world.tenant)}/{invitation}"
        assert owner.delete(path).status_code == 200
        assert owner.delete(path).status_code == 409
        assert owner.delete(f"{into(world.tenant)}/{world.tenant.pk}").status_code == 404
        assert signed_in(world.stranger).post(f"{OWN}/{invitation}/accept").status_code == 409
        assert members(world.tenant) == MEMBERS

    def test_an_invitation_is_for_its_address_alone(self, world: factories.World) -> None:
        invitation = invite(world)
        for user in (world.member, world.owner, world.platform_admin):
            for answer in ("accept", "decline"):
                assert signed_in(user).post(f"{OWN}/{invitation}/{answer}").status_code == 404
        other = signed_in(world.stranger_tenant.memberships.get().user)
        assert other.delete(f"{into(world.stranger_tenant)}/{invitation}").status_code == 404
        assert Invitation.objects.get().state == "open"

    def test_a_personal_access_token_does_not_answer(self, world: factories.World) -> None:
        invitation = invite(world)
        client = ApiClient(factories.pat_token(world.stranger, Scope.USERS_READ, Scope.USERS_WRITE))
        for answer in ("accept", "decline"):
            assert client.post(f"{OWN}/{invitation}/{answer}").status_code == 403
        assert len(client.get(OWN).json()["invitations"]) == 1

    @pytest.mark.parametrize(
        "end",
        [
            lambda _: Invitation.objects.update(expires_at=now()),
            lambda world: delete_tenant(tenant_id=world.tenant.pk, actor="x"),
            # The inviting user may no longer invite.
            lambda world: world.owner.memberships.all().delete(),
            lambda world: world.owner.memberships.update(role="admin"),
            lambda world: User.objects.filter(pk=world.owner.pk).update(role="guest"),
            lambda world: User.objects.filter(pk=world.owner.pk).update(is_active=False),
            lambda world: delete_user(world.owner.email, author=Author("x")),
        ],
    )
    def test_what_ends_it(self, world: factories.World, end: Callable[[factories.World], Any]) -> None:
        invitation = invite(world)
        end(world)
        stranger = signed_in(world.stranger)
        assert stranger.post(f"{OWN}/{invitation}/accept").status_code == 409
        assert not world.stranger.memberships.filter(tenant=world.tenant).exists()

    @pytest.mark.parametrize(
        "change",
        [
            lambda world: SetMembership(world.owner, world.tenant.pk, None),
            lambda world: SetMembership(world.owner, world.tenant.pk, "admin"),
            lambda world: SetRole(world.owner, role="guest", scopes=[], is_active=True),
            lambda world: SetRole(world.owner, role="user", scopes=[], is_active=False),
            lambda world: DeleteUser(world.owner),
        ],
    )
    def test_the_invitations_of_a_user_who_owns_the_tenant_no_more_are_withdrawn(
        self, world: factories.World, change: Callable[[factories.World], Change]
    ) -> None:
        invite(world)
        change_readers(Author("admin@example.org"), change(world))
        assert [invitation.state for invitation in Invitation.objects.all()] == ["withdrawn"]
        assert ("invitation.withdrawn", "admin@example.org", "stranger@example.org") in kinds()

    @pytest.mark.parametrize(("held", "kept"), [("member", "admin"), ("admin", "admin"), ("owner", "owner")])
    def test_a_higher_role_that_the_user_has_by_now_stays(
        self, world: factories.World, held: str, kept: str
    ) -> None:
        invitation = invite(world, role="admin")
        Membership.objects.create(user=world.stranger, tenant=world.tenant, role=held)
        assert signed_in(world.stranger).post(f"{OWN}/{invitation}/accept").status_code == 200
        assert members(world.tenant)["stranger@example.org"] == kept

    def test_access_for_a_limited_time_becomes_a_membership(self, world: factories.World) -> None:
        Membership.objects.create(
            user=world.stranger, tenant=world.tenant, role="member", ends_at=now() + dt.timedelta(hours=1)
        )
        invitation = invite(world)
        assert signed_in(world.stranger).post(f"{OWN}/{invitation}/accept").status_code == 200
        assert world.stranger.memberships.get(tenant=world.tenant).ends_at is None

    def test_who_signs_in_for_the_first_time_finds_it(self, world: factories.World) -> None:
        invitation = invite(world, "grace@example.org")
        grace = signed_in(factories.make_user("grace@example.org"))
        assert grace.post(f"{OWN}/{invitation}/accept").status_code == 200
        assert members(world.tenant)["grace@example.org"] == "member"

    @pytest.mark.parametrize("leave", ["offboard", "delete"])
    def test_offboarding_and_deletion_withdraw_it(self, world: factories.World, leave: str) -> None:
        invite(world, "ada@example.org")
        ada = factories.make_user("ada@example.org")
        if leave == "offboard":
            offboard(ada.pk, heirs={}, author=Author.on_site("admin@example.org"))
        else:
            delete_user(ada.email, author=Author("admin@example.org"))
        assert [invitation.state for invitation in Invitation.objects.all()] == ["withdrawn"]

    def test_old_ones_are_deleted_after_a_month(self, world: factories.World) -> None:
        invite(world)
        for days, left in ((29, 1), (31, 0)):
            Invitation.objects.update(expires_at=now() - dt.timedelta(days=days))
            remove_old_invitations()
            assert Invitation.objects.count() == left


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    ROUNDS = 5

    @pytest.fixture
    def world(self) -> factories.World:
        return factories.make_world()

    def test_of_two_accepts_one_wins(self, world: factories.World) -> None:
        for _ in range(self.ROUNDS):
            world.stranger.memberships.filter(tenant=world.tenant).delete()
            path = f"{OWN}/{invite(world)}/accept"
            answers = at_once([partial(signed_in(world.stranger).post, path)] * 4)
            assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
            assert members(world.tenant) == {**MEMBERS, "stranger@example.org": "member"}

    def test_withdraw_against_accept(self, world: factories.World) -> None:
        for _ in range(self.ROUNDS):
            world.stranger.memberships.filter(tenant=world.tenant).delete()
            invitation = invite(world)
            accept, withdraw = at_once(
                [
                    partial(signed_in(world.stranger).post, f"{OWN}/{invitation}/accept"),
                    partial(signed_in(world.owner).delete, f"{into(world.tenant)}/{invitation}"),
                ]
            )
            assert sorted((accept.status_code, withdraw.status_code)) == [200, 409]
            is_member = "stranger@example.org" in members(world.tenant)
            assert is_member == (accept.status_code == 200)

    def test_offboard_against_accept(self, world: factories.World) -> None:
        for number in range(self.ROUNDS):
            ada = factories.make_user(f"ada{number}@example.org")
            invitation = invite(world, ada.email)
            calls: list[Callable[[], Any]] = [
                partial(signed_in(ada).post, f"{OWN}/{invitation}/accept"),
                partial(offboard, ada.pk, heirs={}, author=Author.on_site("admin@example.org")),
            ]
            accept, _ = at_once(calls)
            assert accept.status_code in {200, 401, 403, 404, 409}
            assert members(world.tenant) == MEMBERS
            assert Invitation.objects.get(pk=invitation).state in {"accepted", "withdrawn"}

    def test_the_inviting_owner_leaves_against_accept(self, world: factories.World) -> None:
        other = factories.make_user("other-owner@example.org")
        Membership.objects.create(user=other, tenant=world.tenant, role="owner")
        for _ in range(self.ROUNDS):
            world.stranger.memberships.filter(tenant=world.tenant).delete()
            Membership.objects.update_or_create(
                user=world.owner, tenant=world.tenant, defaults={"role": "owner"}
            )
            invitation = invite(world)
            accept, leave = at_once(
                [
                    partial(signed_in(world.stranger).post, f"{OWN}/{invitation}/accept"),
                    partial(signed_in(other).put, f"/users/{world.owner.email}/tenants", []),
                ]
            )
            assert leave.status_code == 200
            assert accept.status_code in {200, 409}
            is_member = "stranger@example.org" in members(world.tenant)
            assert is_member == (accept.status_code == 200)
