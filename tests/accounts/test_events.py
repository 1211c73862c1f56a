"""What leaves an event, and what it says. Contract: Events."""

from __future__ import annotations

import io
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.access.credentials import create_pat, create_refresh_token, sign_in_scopes
from accounts.access.rights import rights_of
from accounts.access.scopes import Scope
from accounts.access.tokens import AccessToken
from accounts.models import Event, MagicLink, PermissionGrant, Tenant, User
from accounts.models.events import EventKind
from accounts.signin.flow import Device, Identity, complete_sign_in
from accounts.signin.state import PendingSignIn, new_browser_id, save_pending
from accounts.tasks import remove_tombstones
from accounts.tenants.lifecycle import delete_tenant
from tenantadmin.lib.core import request_context
from tenantadmin.lib.core.request_context import set_address
from tenantadmin.lib.core.timestamps import format_timestamp, now
from tests import factories
from tests.accounts.support import signed_in
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from django.core.mail import EmailMessage

    from accounts.models import PersonalAccessToken

pytestmark = pytest.mark.django_db
ADA = "ada@example.org"
VERIFY = "/auth/magic-link/verify"
#: Kind, actor, subject.
Trace = tuple[str, str, str]


@pytest.fixture(autouse=True)
def _nothing_refused_lately() -> None:
    cache.clear()


@pytest.fixture
def admin(world: factories.World) -> ApiClient:
    return signed_in(world.platform_admin)


def events(*kinds: str) -> list[Event]:
    """Return the events in order; if kinds are given, only events of these kinds."""
    found = Event.objects.order_by("pk")
    return list(found.filter(kind__in=kinds) if kinds else found)


def traces(*kinds: str) -> list[Trace]:
    return [(event.kind, event.actor, event.subject) for event in events(*kinds)]


def changes(*kinds: str) -> list[tuple[str, Any, Any]]:
    """Return kind, before and after of the events, in order."""
    return [(event.kind, event.before, event.after) for event in events(*kinds)]


def exchange(text: str, grant_type: str = "pat_exchange", **headers: str) -> int:
    member = "pat" if grant_type == "pat_exchange" else "refresh_token"
    body = {"grant_type": grant_type, member: text}
    return ApiClient().request("POST", "/oauth/token", body, headers=headers).status_code


def member_pat(world: factories.World) -> tuple[PersonalAccessToken, str]:
    return create_pat(
        owner=world.member, name="ci", scopes=[Scope.CONFIG_READ], tenants=[str(world.tenant.pk)]
    )


class TestSignIn:
    def mail_token(self, mailoutbox: list[EmailMessage], email: str = ADA) -> str:
        assert ApiClient().post("/auth/magic-link", {"email": email}).status_code == 202
        found = re.search(r"\?t=(\S+)", str(mailoutbox[-1].body))
        assert found is not None
        return found.group(1)

    def test_by_a_link_of_a_new_user(self, mailoutbox: list[EmailMessage]) -> None:
        token = self.mail_token(mailoutbox)
        assert ApiClient().post(VERIFY, {"token": token}).status_code == 200
        assert traces() == [
            ("sign-in.link-requested", "", ADA),
            ("user.created", ADA, ADA),
            ("membership.added", ADA, ADA),
            ("sign-in.succeeded", ADA, ADA),
        ]
        (signed,) = events("sign-in.succeeded")
        session = User.objects.get(email=ADA).refresh_tokens.get().pk
        assert (signed.after, signed.address) == ({"provider": "link", "session": session}, "127.0.0.1")
        (membership,) = events("membership.added")
        assert (membership.tenant_id, membership.after) == (Tenant.objects.get().pk, {"role": "owner"})

    @pytest.mark.django_db(transaction=True)
    def test_a_used_link_leaves_a_failure_though_its_transaction_fails(
        self, mailoutbox: list[EmailMessage]
    ) -> None:
        token = self.mail_token(mailoutbox)
        statuses = [ApiClient().post(VERIFY, {"token": token}).status_code for _ in range(3)]
        assert statuses == [200, 401, 401]
        (failed,) = events("sign-in.failed")
        assert (failed.actor, failed.subject, failed.address) == ("", ADA, "127.0.0.1")
        assert failed.after == {"provider": "link"}
        assert failed.reason == "This or a later link was used before."
        MagicLink.objects.update(used_at=None, expires_at=now())
        assert ApiClient().post(VERIFY, {"token": token}).status_code == 401
        assert [event.reason for event in events("sign-in.failed")][1:] == ["The link has expired."]

    @pytest.mark.django_db(transaction=True)
    def test_a_deactivated_user_leaves_a_failure(self, mailoutbox: list[EmailMessage]) -> None:
        factories.make_user(ADA, is_active=False)
        assert ApiClient().post(VERIFY, {"token": self.mail_token(mailoutbox)}).status_code == 403
        (failed,) = events("sign-in.failed")
        assert (failed.subject, failed.reason) == (ADA, "The user is deactivated.")

    def test_invented_links_are_recorded_once_for_each_client(self) -> None:
        for address in ("192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"):
            for number in range(3):
                Client().post(
                    VERIFY, {"token": f"t{number}"}, content_type="application/json", REMOTE_ADDR=address
                )
        assert [(event.kind, event.subject, event.address) for event in events()] == [
            ("sign-in.failed", "", "192.0.2.1"),
            ("sign-in.failed", "", "192.0.2.2"),
            ("sign-in.failed", "", "2001:db8::1"),
        ]

    def test_a_state_that_is_not_ours_and_a_provider_that_refuses(self, settings: Any) -> None:
        settings.SIGNIN_PROVIDERS = ["corp"]
        browser = new_browser_id()
        pending = PendingSignIn(provider="corp", redirect="/", verifier="v", nonce="n")
        client = Client()
        client.cookies["signin_browser"] = browser
        state = save_pending(pending, browser=browser)
        assert client.get("/auth/callback", {"state": "x", "code": "c"}).status_code == 401
        assert client.get("/auth/callback", {"state": state, "error": "denied"}).status_code == 401
        assert [
            (event.kind, event.actor, event.subject, event.after, event.reason) for event in events()
        ] == [
            ("sign-in.failed", "", "", None, "The state is malformed."),
            ("sign-in.failed", "", "", {"provider": "corp"}, "The identity provider refused."),
        ]

    def test_through_a_provider(self) -> None:
        complete_sign_in(Identity(email=ADA, email_verified=True, provider="corp", subject="s1"), Device())
        (signed,) = events("sign-in.succeeded")
        assert signed.after == {"provider": "corp", "session": User.objects.get().refresh_tokens.get().pk}

    def test_on_the_admin_site(self, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        settings.RATE_LIMIT_NAMESPACE = f"test-{uuid.uuid4().hex}"
        monkeypatch.setattr("accounts.limits._FIRST_WAIT_SECONDS", 60)
        user = factories.make_user(ADA, role="admin")
        user.set_password("right")
        user.save()

        def attempt(email: str, password: str, address: str = "192.0.2.1") -> int:
            form = {"username": email, "password": password, "next": "/admin/"}
            return Client().post("/admin/login/", form, REMOTE_ADDR=address).status_code

        assert attempt(ADA, "right") == 302
        assert [attempt(ADA, "wrong") for _ in range(6)] == [200] * 5 + [429]
        # A user types the password into the field of the email.
        assert attempt("hunter2", "wrong", "192.0.2.2") == 200
        factories.make_user("bob@example.org")
        factories.make_user("gone@example.org", role="admin", is_active=False)
        others = ("bob@example.org", "gone@example.org", "nobody@example.org")
        assert [attempt(email, "wrong", "192.0.2.2") for email in others] == [200] * 3
        assert [(event.kind, event.actor, event.subject, event.reason) for event in events()] == [
            ("sign-in.succeeded", ADA, ADA, ""),
            ("sign-in.failed", "", ADA, "The password is wrong."),
            ("sign-in.failed", "", ADA, "There were too many tries."),
            ("sign-in.failed", "", "", "What was typed is no email address."),
            ("sign-in.failed", "", "bob@example.org", "The user is not staff."),
            ("sign-in.failed", "", "gone@example.org", "The user is deactivated."),
            ("sign-in.failed", "", "nobody@example.org", "There is no user of this address."),
        ]
        assert {event.after["provider"] for event in events() if event.after} == {"password"}


class TestTokens:
    def test_minted_from_a_pat_or_a_refresh_token(self, world: factories.World) -> None:
        pat, text = member_pat(world)
        session, refresh = create_refresh_token(user=world.member)
        assert exchange(text) == exchange(refresh, "refresh_token") == 200
        first, second = events("token.minted")
        scopes = sorted(sign_in_scopes(rights_of(world.member)))
        assert first.after == {"pat": pat.pk, "scopes": ["config:read"]}
        assert second.after == {"session": session.pk, "scopes": scopes}
        assert {(event.actor, event.subject) for event in (first, second)} == {(world.member.email,) * 2}

    def test_a_credential_that_ended_is_recorded_once_and_names_its_owner(
        self, world: factories.World
    ) -> None:
        _, text = member_pat(world)
        _, refresh = create_refresh_token(user=world.member)
        for token in (text, refresh):
            assert ApiClient().post("/auth/logout", {"token": token}).status_code == 200
        assert [exchange(text) for _ in range(3)] == [401] * 3
        assert [exchange(refresh, "refresh_token") for _ in range(3)] == [401] * 3
        assert traces("token.refused") == [("token.refused", "", world.member.email)] * 2

    def test_another_reason_is_recorded_too(self, world: factories.World) -> None:
        admin = world.platform_admin
        _, text = create_pat(owner=admin, name="x", scopes=[Scope.CONFIG_READ], tenants=["*"])
        User.objects.filter(pk=admin.pk).update(role="user")
        assert exchange(text) == 401
        User.objects.filter(pk=admin.pk).update(is_active=False)
        assert exchange(text) == 401
        assert [event.reason for event in events("token.refused")] == [
            "The owner of this wildcard token is no longer a platform admin.",
            "The credential is unknown, expired or revoked.",
        ]

    def test_invented_credentials_are_recorded_once_for_each_client(self) -> None:
        assert {exchange(f"tas_pat_{number}") for number in range(5)} == {401}
        assert traces() == [("token.refused", "", "")]

    def test_a_bearer_token_that_is_refused(self, world: factories.World) -> None:
        expired: Any = AccessToken(factories.sign_in(world.member))  # type: ignore[arg-type]
        expired.set_exp(lifetime=-AccessToken.lifetime)
        forged = [factories.sign_in(world.owner)[:-4] + text for text in ("AAAA", "BBBB")]
        gone = factories.make_user(ADA)
        deleted = factories.sign_in(gone)
        gone.delete()
        for token in (str(expired), *forged, deleted) * 2:
            assert ApiClient(token).get("/config/tenants").status_code == 401
        assert [(event.kind, event.subject, event.reason) for event in events()] == [
            (
                "token.refused",
                world.member.email,
                "The access token has expired. Ask POST /oauth/token for a new one.",
            ),
            ("token.refused", "", "The access token is not valid."),
            (
                "token.refused",
                ADA,
                "The session of this token has ended, or its user is deleted or not active.",
            ),
        ]

    def test_without_redis_a_refusal_is_in_the_log_alone(
        self, settings: Any, tmp_path: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        broken = {**settings.CACHES["default"], "LOCATION": f"unix://{tmp_path}/missing.sock"}
        settings.CACHES = {"default": broken}
        assert exchange("tas_pat_x") == 401
        assert events() == []
        assert "The credential is unknown, expired or revoked." in caplog.text

    def test_each_end_is_recorded_once(self, world: factories.World) -> None:
        pat, text = member_pat(world)
        session, refresh = create_refresh_token(user=world.member)
        for token in (refresh, refresh, text, text, "unknown"):
            assert ApiClient().post("/auth/logout", {"token": token}).status_code == 200
        member = world.member.email
        assert traces() == [
            ("pat.created", member, member),
            ("session.ended", member, member),
            ("pat.revoked", member, member),
        ]
        created, ended, revoked = events()
        assert ended.before == {"session": session.pk}
        assert revoked.before == created.after
        assert created.after == {
            "pat": pat.pk,
            "name": "ci",
            "scopes": ["config:read"],
            "tenants": [str(world.tenant.pk)],
            "accounts": [],
            "endpoints": [],
            "expiresAt": format_timestamp(pat.expires_at),
        }

    def test_a_pat_that_an_admin_makes_and_revokes(self, admin: ApiClient, world: factories.World) -> None:
        address = f"/users/{world.member.email}/tokens"
        body = {"name": "ci", "scopes": ["config:read"], "tenants": [str(world.tenant.pk)]}
        created = admin.post(address, body)
        assert created.status_code == 201
        assert admin.delete(f"{address}/{created.json()['id']}").status_code == 200
        assert admin.delete(f"{address}/{created.json()['id']}").status_code == 404
        assert traces() == [
            ("pat.created", "admin@example.org", "member@example.org"),
            ("pat.revoked", "admin@example.org", "member@example.org"),
        ]


class TestUsers:
    def test_a_user_is_made_and_changed(self, admin: ApiClient) -> None:
        address = f"/users/{ADA}"
        for body in (
            {"displayName": "Ada", "roles": {"primary": "user", "scopes": []}},
            {"displayName": "Ada", "active": True},  # nothing new
            {"displayName": "Ada L.", "active": False},
            {"active": True, "roles": {"primary": "guest", "scopes": ["config:read"]}},
        ):
            assert admin.put(address, body).status_code == 200
        roles = {"primary": "user", "scopes": []}
        assert changes() == [
            ("user.created", None, None),
            ("user.changed", {"displayName": ""}, {"displayName": "Ada"}),
            ("user.changed", {"displayName": "Ada"}, {"displayName": "Ada L."}),
            ("user.deactivated", None, None),
            ("roles.changed", roles, {"primary": "guest", "scopes": ["config:read"]}),
            ("user.activated", None, None),
        ]
        assert {(event.actor, event.subject) for event in events()} == {("admin@example.org", ADA)}

    def test_roles_by_their_own_address(self, admin: ApiClient, world: factories.World) -> None:
        address = f"/users/{world.member.email}/roles"
        assert admin.put(address, {"primary": "admin", "scopes": []}).status_code == 200
        assert admin.patch(address, {"primary": "admin"}).status_code == 200  # nothing new
        assert admin.patch(address, {"primary": "user"}).status_code == 200
        user, platform = {"primary": "user", "scopes": []}, {"primary": "admin", "scopes": []}
        assert changes() == [("roles.changed", user, platform), ("roles.changed", platform, user)]

    def test_a_demotion_ends_wildcard_tokens(self, admin: ApiClient) -> None:
        second = factories.make_user("second@example.org", role="admin")
        pat, _ = create_pat(owner=second, name="x", scopes=[Scope.CONFIG_READ], tenants=["*"])
        assert admin.patch(f"/users/{second.email}/roles", {"primary": "user"}).status_code == 200
        (revoked,) = events("pat.revoked")
        (created,) = events("pat.created")
        assert (revoked.actor, revoked.subject) == ("admin@example.org", second.email)
        assert revoked.before == created.after
        assert created.after is not None
        assert created.after["pat"] == pat.pk

    def test_a_write_that_fails_leaves_nothing(self, admin: ApiClient, world: factories.World) -> None:
        tenants = [{"tenantId": str(uuid.uuid4()), "role": "member"}]
        body = {"displayName": "X", "active": False, "tenants": tenants}
        assert admin.put(f"/users/{world.member.email}", body).status_code == 400
        assert admin.put(f"/users/{ADA}", body).status_code == 400
        assert events() == []

    def test_a_deletion_records_the_rights_removed_with_the_user(
        self, admin: ApiClient, world: factories.World
    ) -> None:
        grant = PermissionGrant.objects.create(
            grantee=world.member,
            resource="account",
            resource_id=world.account.pk,
            permissions=["config:read"],
        )
        assert admin.delete(f"/users/{world.member.email}").status_code == 200
        assert traces() == [
            ("membership.removed", "admin@example.org", "member@example.org"),
            ("grant.revoked", "admin@example.org", "member@example.org"),
            ("user.deleted", "admin@example.org", "member@example.org"),
        ]
        membership, ended, deleted = events()
        assert (membership.tenant_id, membership.before) == (world.tenant.pk, {"role": "member"})
        assert (ended.account_id, ended.before) == (
            world.account.pk,
            {"grant": str(grant.pk), "permissions": ["config:read"], "expiresAt": None},
        )
        assert deleted.before == {"displayName": "", "roles": {"primary": "user", "scopes": []}}


class TestRights:
    def test_memberships(self, world: factories.World) -> None:
        owner, address = signed_in(world.owner), f"/users/{world.member.email}/tenants"
        entry = {"tenantId": str(world.tenant.pk)}
        assert owner.put(address, [{**entry, "role": "admin"}]).status_code == 200
        assert owner.put(address, [{**entry, "role": "admin"}]).status_code == 200  # nothing new
        assert owner.put(address, []).status_code == 200
        admin = signed_in(world.platform_admin)
        assert admin.patch(address, [{**entry, "role": "member"}]).status_code == 200
        assert owner.patch(address, [{**entry, "role": "admin"}]).status_code == 200  # keeps the entry
        assert changes() == [
            ("membership.changed", {"role": "member"}, {"role": "admin"}),
            ("membership.removed", {"role": "admin"}, None),
            ("membership.added", None, {"role": "member"}),
        ]
        assert [(event.actor, event.subject, event.tenant_id) for event in events()] == [
            ("owner@example.org", "member@example.org", world.tenant.pk),
            ("owner@example.org", "member@example.org", world.tenant.pk),
            ("admin@example.org", "member@example.org", world.tenant.pk),
        ]

    def test_grants(self, world: factories.World) -> None:
        owner = signed_in(world.owner)
        for resource, identifier in (("tenant", world.tenant.pk), ("account", world.account.pk)):
            body = {
                "grantee": "stranger@example.org",
                "resource": resource,
                "resourceId": str(identifier),
                "permissions": ["config:read"],
                "expiresAt": "2099-01-01T00:00:00.000Z",
            }
            created = owner.post("/config/grants", body)
            assert created.status_code == 201, created.content
            assert owner.delete(f"/config/grants/{created.json()['id']}").status_code == 200
        of_tenant, of_account = events("grant.created")
        assert (of_tenant.tenant_id, of_tenant.account_id) == (world.tenant.pk, None)
        assert (of_account.tenant_id, of_account.account_id) == (None, world.account.pk)
        assert of_account.after == {
            "grant": created.json()["id"],
            "permissions": ["config:read"],
            "expiresAt": "2099-01-01T00:00:00.000Z",
        }
        assert [event.before for event in events("grant.revoked")] == [of_tenant.after, of_account.after]
        assert {(event.actor, event.subject) for event in events()} == {
            ("owner@example.org", "stranger@example.org")
        }

    def test_domains(self, admin: ApiClient, world: factories.World) -> None:
        address = f"/config/accounts/{world.account.pk}/domains"
        assert admin.post(address, {"domain": "example.com"}).status_code == 201
        assert admin.post(address, {"domain": "example.com"}).status_code == 409
        for _ in range(2):
            assert admin.post(f"{address}/example.com/verify", {"manual": True}).status_code == 200
        assert admin.delete(f"{address}/example.com").status_code == 200
        assert changes() == [
            ("domain.added", None, None),
            ("domain.verified", None, {"byHand": True}),
            ("domain.removed", {"verified": True}, None),
        ]
        assert {(event.actor, event.subject, event.account_id) for event in events()} == {
            ("admin@example.org", "example.com", world.account.pk)
        }

    def test_domains_and_grants_go_with_their_account(self, admin: ApiClient) -> None:
        account = factories.make_account("Gone", owners=[factories.make_user(ADA)])
        account.domains.create(name="example.com", challenge="c")
        for ended in (None, now()):
            PermissionGrant.objects.create(
                grantee=account.owners.get(),
                resource="account",
                resource_id=account.pk,
                permissions=["config:read"],
                revoked_at=ended,
            )
        assert admin.delete(f"/config/accounts/{account.pk}").status_code == 200
        assert [(event.kind, event.actor, event.subject, event.account_id) for event in events()] == [
            ("domain.removed", "admin@example.org", "example.com", account.pk),
            ("grant.revoked", "admin@example.org", ADA, account.pk),
        ]

    def test_removing_a_tombstone_records_the_ended_rights(
        self, world: factories.World, settings: Any
    ) -> None:
        PermissionGrant.objects.create(
            grantee=world.stranger,
            resource="tenant",
            resource_id=world.tenant.pk,
            permissions=["config:read"],
        )
        delete_tenant(tenant_id=world.tenant.pk, actor="owner@example.org")
        settings.TOMBSTONE_LIFETIME = type(settings.TOMBSTONE_LIFETIME)(0)
        remove_tombstones()
        assert {(event.kind, event.actor, event.subject, event.tenant_id) for event in events()} == {
            ("grant.revoked", "system", "stranger@example.org", world.tenant.pk),
            ("membership.removed", "system", "owner@example.org", world.tenant.pk),
            ("membership.removed", "system", "tenant-admin@example.org", world.tenant.pk),
            ("membership.removed", "system", "member@example.org", world.tenant.pk),
        }
        assert len(events()) == 4


class TestTerms:
    def test_are_published_and_acknowledged(self, world: factories.World) -> None:
        publisher = ApiClient(factories.pat_token(world.platform_admin, "tos:publish", tenants=["*"]))
        hashes = [publisher.post("/tos", {"markdown": text}).json()["hash"] for text in ("A", "B", "B")]
        assert changes("terms.published") == [
            ("terms.published", None, None),
            ("terms.published", {"hash": hashes[0]}, None),
        ]
        assert [event.subject for event in events("terms.published")] == hashes[:2]


class TestCommands:
    def test_create_admin(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO())
        # As in a process that answers no requests.
        request_context._request_id.set("-")
        set_address(str)
        out = io.StringIO()
        for _ in range(2):
            call_command("create_admin", ADA, stdout=out)
        command = "manage.py create_admin"
        assert traces() == [
            ("user.created", command, ADA),
            ("roles.changed", command, ADA),
            ("password.changed", command, ADA),
        ]
        password = re.findall(r"site: (\S+)", out.getvalue())[0]
        assert password not in stored_text()
        assert {(event.request_id, event.address) for event in events()} == {("-", "")}

    def test_create_pat(self, world: factories.World) -> None:
        arguments = ["--owner", world.platform_admin.email, "--scope", "config:read", "--tenant", "*"]
        call_command("create_pat", *arguments, stdout=io.StringIO())
        assert traces() == [("pat.created", "manage.py create_pat", "admin@example.org")]


def stored_text() -> str:
    """Return everything that the table of events holds, as text."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(to_jsonb(e)::text, ' ') FROM accounts_event e")
        return str(cursor.fetchone()[0])


def test_no_event_holds_a_secret(world: factories.World, mailoutbox: list[EmailMessage]) -> None:
    """Signs in by a link, refreshes, makes and exchanges a PAT, signs out; each token used again after."""
    secrets = []
    assert ApiClient().post("/auth/magic-link", {"email": world.platform_admin.email}).status_code == 202
    secrets += re.findall(r"\?t=(\S+)", str(mailoutbox[-1].body))
    verified = ApiClient().post(VERIFY, {"token": secrets[0]}).json()
    secrets += [verified["access_token"], verified["refresh_token"]]
    client = ApiClient(verified["access_token"])
    made = client.post(
        f"/users/{world.platform_admin.email}/tokens",
        {"name": "x", "scopes": ["config:read"], "tenants": ["*"]},
    ).json()
    secrets.append(made["token"])
    for _ in range(2):
        for grant_type, member, text in (
            ("pat_exchange", "pat", made["token"]),
            ("refresh_token", "refresh_token", verified["refresh_token"]),
        ):
            answer = ApiClient().post("/oauth/token", {"grant_type": grant_type, member: text}).json()
            secrets.append(answer.get("access_token", text))
        for token in (made["token"], verified["refresh_token"]):
            ApiClient().post("/auth/logout", {"token": token})
            assert ApiClient(token).get("/config/tenants").status_code == 401
        ApiClient().post(VERIFY, {"token": secrets[0]})
    User.objects.filter(pk=world.platform_admin.pk).update(is_active=False)
    assert client.get("/config/tenants").status_code == 401
    text = stored_text()
    assert len(set(secrets)) == 6
    assert {event.kind for event in events()} >= {
        "token.minted",
        "token.refused",
        "pat.created",
        "sign-in.failed",
    }
    for secret in secrets:
        # Nor any part of it that would help to guess the rest.
        assert secret not in text
        assert re.sub("^tas_(pat|refresh)_", "", secret)[:12] not in text


def test_what_is_repeated_costs_one_query_and_at_most_one_insert(world: factories.World) -> None:
    _, text = member_pat(world)
    with CaptureQueriesContext(connection) as captured:
        assert [exchange(text), exchange(text)] == [200, 200]
    asked = [query["sql"].split()[0] for query in captured if "accounts_event" in query["sql"]]
    assert asked == ["SELECT", "INSERT", "SELECT"]


def test_an_event_rolls_back_with_its_transaction(world: factories.World) -> None:
    with transaction.atomic():
        member_pat(world)
        transaction.set_rollback(True)
    assert events() == []


def test_the_documentation_lists_every_kind() -> None:
    page = (Path(__file__).parents[2] / "docs" / "events.md").read_text()
    rows = [
        line.split("|")[1] for line in page.partition("## Kinds")[2].splitlines() if line.startswith("| `")
    ]
    assert sorted(re.findall(r"`([^`]+)`", " ".join(rows))) == sorted(EventKind.values)
