"""The ways into the admin site, the second factor, and how long a session lasts."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

import pytest
from allauth.mfa.models import Authenticator
from django.core import mail
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from accounts.models import User
from accounts.models.events import Event
from accounts.signin.staff.enrolment import enrolment_link
from tests import factories
from tests.accounts.issuer import Issuer, running_issuer
from tests.admin.staff import PASSWORD, act, add_totp, by_password, code_of, prove_factor

if TYPE_CHECKING:
    from django.test.client import _MonkeyPatchedWSGIResponse as Answer


@pytest.fixture(autouse=True)
def _unspent_limits(settings: Any) -> None:
    settings.RATE_LIMIT_NAMESPACE = f"test-{uuid.uuid4().hex}"
    # Here django-allauth counts, and refusals are recorded once in a while.
    cache.clear()


@pytest.fixture
def ada(db: None) -> User:
    user = factories.make_user("ada@example.org", role="admin")
    user.set_password(PASSWORD)
    user.save()
    return user


@pytest.fixture
def issuer(settings: Any) -> Iterator[Issuer]:
    with running_issuer() as issuer:
        settings.SIGNIN_PROVIDERS = ["corp", "other"]
        settings.SOCIALACCOUNT_PROVIDERS = {
            "openid_connect": {
                "OAUTH_PKCE_ENABLED": True,
                "APPS": [
                    {
                        "provider_id": name,
                        "name": name,
                        "client_id": f"id-{name}",
                        "secret": "secret",
                        "settings": {"server_url": issuer.url, "oauth_pkce_enabled": True},
                    }
                    for name in settings.SIGNIN_PROVIDERS
                ],
            }
        }
        yield issuer


def by_provider(client: Client, issuer: Issuer, provider: str = "corp", target: str = "") -> Answer:
    begun = client.get(f"/admin/login/provider/{provider}/?{urlencode({'next': target})}")
    assert begun.status_code == 302
    return client.get("/auth/callback", issuer.authorize(begun["Location"]))


def said(client: Client) -> list[str]:
    """Return the messages that the next page shows."""
    answer = client.get("/admin/login/", follow=True)
    return [str(message) for message in answer.context["messages"]]


def is_in(client: Client) -> bool:
    return client.get("/admin/").status_code == 200


class TestWaysIn:
    def test_the_page_offers_the_configured_ways(self, client: Client, issuer: Issuer, db: None) -> None:
        page = client.get("/admin/login/?next=/admin/accounts/user/").content.decode()
        assert "/admin/login/provider/corp/?next=/admin/accounts/user/" in page
        assert "Sign in with other" in page
        assert "Sign in with a passkey" in page
        assert "Mail me a sign-in link" in page
        assert "Sign in with a password" in page

    def test_by_an_identity_provider(self, client: Client, issuer: Issuer, ada: User) -> None:
        answer = by_provider(client, issuer, target="/admin/accounts/user/")
        assert (answer.status_code, answer["Location"]) == (302, "/admin/accounts/user/")
        assert is_in(client)
        ada.refresh_from_db()
        assert (ada.identity_provider, ada.identity_subject) == ("corp", "117")
        # The site's sign-in hands out no tokens.
        assert "access_token" not in answer["Location"]

    @pytest.mark.parametrize("target", ["https://evil.example", "//evil.example", "/\\evil.example"])
    def test_a_provider_leads_to_this_site_alone(
        self, client: Client, issuer: Issuer, ada: User, target: str
    ) -> None:
        assert by_provider(client, issuer, target=target)["Location"] == "/admin/"

    def test_a_provider_creates_no_user_and_lets_only_staff_in(
        self, client: Client, issuer: Issuer, db: None
    ) -> None:
        assert by_provider(client, issuer)["Location"] == "/admin/login/"
        assert said(client) == ["Only active staff may sign in here."]
        assert not User.objects.exists()
        factories.make_user("ada@example.org")
        by_provider(client, issuer)
        assert not is_in(client)

    def test_an_unverified_address_is_refused(self, client: Client, issuer: Issuer, ada: User) -> None:
        issuer.user["email_verified"] = False
        by_provider(client, issuer)
        assert said(client) == ["The identity provider has not verified this email address."]
        assert not is_in(client)

    def test_a_refusal_at_the_provider_shows_a_message(
        self, client: Client, issuer: Issuer, ada: User
    ) -> None:
        begun = client.get("/admin/login/provider/corp/")
        state = issuer.authorize(begun["Location"])["state"]
        assert client.get("/auth/callback", {"error": "denied", "state": state}).status_code == 302
        assert said(client) == ["The identity provider refused. Start again."]

    def test_an_unknown_provider(self, client: Client, issuer: Issuer, db: None) -> None:
        assert client.get("/admin/login/provider/unknown/")["Location"] == "/admin/login/"
        assert said(client) == ["There is no identity provider 'unknown'."]

    def test_by_a_mailed_link_once(self, client: Client, ada: User) -> None:
        client.post("/admin/login/link/ask/", {"email": "Ada@example.org"})
        assert said(client) == ["A link is on its way to ada@example.org. It works once, for 15 minutes."]
        [link] = re.findall(r"http://testserver(/admin/login/link/\?t=\S+)", str(mail.outbox[0].body))
        page = client.get(link)
        assert (page.status_code, is_in(client)) == (200, False)
        token = link.partition("t=")[2]
        assert token in page.content.decode()
        assert client.post("/admin/login/link/", {"token": token})["Location"] == "/admin/"
        assert is_in(client)
        other = Client()
        other.post("/admin/login/link/", {"token": token})
        assert not is_in(other)
        assert said(other) == ["The link is invalid, expired or already used. Ask for a new one."]

    def test_a_mailed_link_leads_on(self, client: Client, ada: User, settings: Any) -> None:
        settings.STAFF_SECOND_FACTOR = True
        secret = add_totp(ada)
        target = "/auth/step-up?redirect=https%3A%2F%2Fdash.example.org%2F%23%2Ft%2F1%2Fmembers"
        login = f"/admin/login/?{urlencode({'next': target})}"
        assert f'name="next" value="{target}"' in client.get(login).content.decode()
        asked = client.post("/admin/login/link/ask/", {"email": "ada@example.org", "next": target})
        assert asked["Location"] == login
        [link] = re.findall(r"http://testserver(/admin/login/link/\?\S+)", str(mail.outbox[0].body))
        # In another browser, such as a telephone's.
        browser = Client()
        page = browser.get(link)
        form = dict(re.findall(r'name="(token|next)" value="([^"]+)"', page.content.decode()))
        assert form["next"] == target
        assert browser.post("/admin/login/link/", form)["Location"] == reverse("mfa_authenticate")
        done = browser.post(reverse("mfa_authenticate"), {"code": code_of(secret)})
        assert done["Location"] == target
        assert browser.post("/admin/login/link/", form)["Location"] == login

    @pytest.mark.parametrize("target", ["https://evil.example", "//evil.example", "/\\evil.example"])
    def test_a_mailed_link_leads_to_this_site_alone(self, client: Client, ada: User, target: str) -> None:
        client.post("/admin/login/link/ask/", {"email": "ada@example.org", "next": target})
        [token] = re.findall(r"/admin/login/link/\?t=(\S+)", str(mail.outbox[0].body))
        answer = client.post("/admin/login/link/", {"token": token, "next": target})
        assert answer["Location"] == "/admin/"

    def test_a_link_request_answers_alike_for_strangers(self, client: Client, world: factories.World) -> None:
        for email in ("member@example.org", "unknown@example.org"):
            client.post("/admin/login/link/ask/", {"email": email})
            assert said(client) == [f"A link is on its way to {email}. It works once, for 15 minutes."]
            token = re.findall(r"\?t=(\S+)", str(mail.outbox[-1].body))[0]
            client.post("/admin/login/link/", {"token": token})
            assert not is_in(client)
            assert said(client) == ["Only active staff may sign in here."]

    def test_an_invalid_address_is_refused(self, client: Client, db: None) -> None:
        client.post("/admin/login/link/ask/", {"email": "a@b\r\nBcc: c@d"})
        assert mail.outbox == []
        assert len(said(client)) == 1

    def test_the_forms_need_their_token(self, ada: User) -> None:
        strict = Client(enforce_csrf_checks=True)
        for path in ("/admin/login/", "/admin/login/link/ask/", "/admin/login/link/"):
            assert strict.post(path, {"token": "x", "email": "ada@example.org"}).status_code == 403


class TestIdentities:
    def test_a_second_provider_cannot_take_over_a_user(
        self, client: Client, issuer: Issuer, ada: User
    ) -> None:
        by_provider(client, issuer, "corp")
        stranger = Client()
        by_provider(stranger, issuer, "other")
        assert not is_in(stranger)
        assert said(stranger) == [
            (
                "ada@example.org signs in through 'corp' here. Sign in that way or by an emailed link. "
                "To change it, ask a platform admin to unlink it."
            )
        ]
        ada.refresh_from_db()
        assert ada.identity_provider == "corp"

    def test_a_new_holder_of_the_address_cannot_take_over_the_user(
        self, client: Client, issuer: Issuer, ada: User
    ) -> None:
        by_provider(client, issuer)
        issuer.user["sub"] = "118"
        stranger = Client()
        by_provider(stranger, issuer)
        assert not is_in(stranger)

    def test_the_signed_in_user_links_another_provider(
        self, client: Client, issuer: Issuer, ada: User
    ) -> None:
        by_provider(client, issuer, "corp")
        issuer.user["sub"] = "of-other"
        begun = client.post("/admin/account/provider/other/")
        answer = client.get("/auth/callback", issuer.authorize(begun["Location"]))
        assert answer["Location"] == "/admin/account/"
        ada.refresh_from_db()
        assert (ada.identity_provider, ada.identity_subject) == ("other", "of-other")

    def test_an_identity_is_linked_only_by_its_own_session(
        self, client: Client, issuer: Issuer, ada: User
    ) -> None:
        by_password(client)
        begun = client.post("/admin/account/provider/other/")
        proof = issuer.authorize(begun["Location"])
        bob = factories.make_user("bob@example.org", role="admin")
        client.force_login(bob)
        client.get("/auth/callback", proof)
        bob.refresh_from_db()
        ada.refresh_from_db()
        assert (bob.identity_subject, ada.identity_subject) == ("", "")

    def test_an_identity_of_another_user_is_not_linked(
        self, client: Client, issuer: Issuer, ada: User
    ) -> None:
        factories.make_user("bob@example.org", identity_provider="other", identity_subject="117")
        by_password(client)
        begun = client.post("/admin/account/provider/other/")
        client.get("/auth/callback", issuer.authorize(begun["Location"]))
        ada.refresh_from_db()
        assert ada.identity_subject == ""

    def test_linking_is_begun_by_a_form_of_the_site(self, issuer: Issuer, ada: User) -> None:
        strict = Client(enforce_csrf_checks=True)
        strict.force_login(ada)
        assert strict.post("/admin/account/provider/other/").status_code == 403
        assert strict.get("/admin/account/provider/other/").status_code == 405

    def test_a_platform_admin_unlinks_with_a_reason(self, issuer: Issuer, ada: User, staff: Client) -> None:
        by_provider(Client(), issuer, "corp")
        shown = act(staff, "unlink", ada, reason="new company")
        assert "Identity provider unlinked: ada@example.org." in shown
        event = Event.objects.get(kind="identity.unlinked")
        assert (event.actor, event.subject, event.reason, event.before) == (
            "admin@example.org",
            "ada@example.org",
            "new company",
            {"provider": "corp", "subject": "117"},
        )
        assert by_provider(Client(), issuer, "other")["Location"] == "/admin/"


class TestSecondFactor:
    @pytest.fixture(autouse=True)
    def _required(self, settings: Any) -> None:
        settings.STAFF_SECOND_FACTOR = True

    def test_every_page_needs_a_second_factor(self, client: Client, ada: User) -> None:
        by_password(client)
        answer = client.get("/admin/", follow=True)
        assert answer.redirect_chain[-1][0] == reverse("staff-ways-in")
        assert "an invitation to add the first one" in answer.content.decode()
        for path in ("/admin/accounts/user/", "/admin/accounts/tenant/", "/admin/password_change/"):
            assert client.get(path).status_code == 302

    def test_signing_out_needs_no_second_factor(self, client: Client, ada: User) -> None:
        by_password(client)
        page = client.get(reverse("mfa_index")).content.decode()
        assert f'href="{reverse("account_logout")}"' in page
        assert client.get(reverse("account_logout")).status_code == 200
        assert client.post(reverse("account_logout"))["Location"] == "/admin/login/"
        assert "_auth_user_id" not in client.session

    def test_an_authenticator_app_is_added_and_then_asked_for(self, client: Client, ada: User) -> None:
        client.get(enrolment_link(ada).removeprefix("http://testserver"))
        by_password(client)
        answer = client.get("/admin/", follow=True)
        assert answer.redirect_chain[-1][0] == reverse("mfa_index")
        assert "Add a second factor" in answer.content.decode()
        page = client.get(reverse("mfa_activate_totp"))
        secret = client.session["mfa.totp.secret"]
        assert secret in page.content.decode()
        done = client.post(reverse("mfa_activate_totp"), {"code": code_of(secret)})
        assert done["Location"] == reverse("mfa_view_recovery_codes")
        stored = Authenticator.objects.get(type="totp").data["secret"]
        assert secret not in stored
        # The new factor is proven once before it opens the site.
        answer = client.get("/admin/", follow=True)
        assert answer.redirect_chain[-1][0] == f"{reverse('mfa_reauthenticate')}?next=/admin/"
        answer = client.post(reverse("mfa_reauthenticate"), {"code": code_of(secret), "next": "/admin/"})
        assert answer["Location"] == "/admin/"
        assert is_in(client)

    @pytest.mark.parametrize("way", ["password", "provider", "link"])
    def test_every_way_in_asks_for_it(self, client: Client, issuer: Issuer, ada: User, way: str) -> None:
        secret = add_totp(ada)
        if way == "password":
            answer = by_password(client)
        elif way == "provider":
            answer = by_provider(client, issuer)
        else:
            client.post("/admin/login/link/ask/", {"email": "ada@example.org"})
            token = re.findall(r"\?t=(\S+)", str(mail.outbox[-1].body))[0]
            answer = client.post("/admin/login/link/", {"token": token})
        assert answer["Location"] == reverse("mfa_authenticate")
        assert not is_in(client)
        assert client.post(reverse("mfa_authenticate"), {"code": "000000"}).status_code == 200
        assert not is_in(client)
        assert client.post(reverse("mfa_authenticate"), {"code": code_of(secret)}).status_code == 302
        assert is_in(client)

    def test_a_code_works_once(self, ada: User) -> None:
        secret = add_totp(ada)
        code = code_of(secret)
        codes = [code, code]
        outcomes = []
        for given in codes:
            client = Client()
            by_password(client)
            client.post(reverse("mfa_authenticate"), {"code": given})
            outcomes.append(is_in(client))
        assert outcomes == [True, False]

    def test_a_recovery_code_works_once(self, ada: User) -> None:
        add_totp(ada)
        code = Authenticator.objects.get(type="recovery_codes").wrap().get_unused_codes()[0]
        outcomes = []
        for _ in range(2):
            client = Client()
            by_password(client)
            client.post(reverse("mfa_authenticate"), {"code": code})
            outcomes.append(is_in(client))
        assert outcomes == [True, False]

    def test_codes_are_guessed_five_times_and_then_no_more(self, client: Client, ada: User) -> None:
        secret = add_totp(ada)
        by_password(client)
        for _ in range(5):
            client.post(reverse("mfa_authenticate"), {"code": "000000"})
        client.post(reverse("mfa_authenticate"), {"code": code_of(secret)})
        assert not is_in(client)

    def test_a_session_of_before_the_factor_does_not_get_in_by_it(self, client: Client, ada: User) -> None:
        """An attacker who has only the password waits until the owner adds a factor."""
        by_password(client)
        add_totp(ada)
        assert not is_in(client)
        answer = client.post(reverse("mfa_add_webauthn"), {"name": "mine", "credential": "{}"})
        assert answer["Location"].startswith(reverse("mfa_reauthenticate"))
        # Nor does the password confirm any more.
        answer = client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
        assert answer["Location"] == reverse("mfa_reauthenticate")

    def test_another_platform_admin_resets_it_with_a_reason(
        self, client: Client, ada: User, world: factories.World, settings: Any
    ) -> None:
        secret = add_totp(ada)
        by_password(client)
        client.post(reverse("mfa_authenticate"), {"code": code_of(secret)})
        assert is_in(client)
        settings.STAFF_SECOND_FACTOR = False
        other = Client()
        other.force_login(world.platform_admin)
        assert "Give a reason of at most 500 characters." in act(
            other, "reset_second_factor", ada, reason=" "
        )
        assert Authenticator.objects.filter(user=ada).count() == 2
        shown = act(other, "reset_second_factor", ada, reason="lost phone, called back")
        assert "Second factor reset: ada@example.org." in shown
        event = Event.objects.get(kind="second-factor.reset")
        assert (event.actor, event.reason, event.before) == (
            "admin@example.org",
            "lost phone, called back",
            {"types": ["totp"]},
        )
        assert not Authenticator.objects.filter(user=ada).exists()
        settings.STAFF_SECOND_FACTOR = True
        # A session that had proven it is asked for a new one.
        assert not is_in(client)

    @pytest.mark.parametrize("page", ["mfa_activate_totp", "mfa_add_webauthn"])
    def test_the_first_is_added_by_invitation_alone(self, client: Client, ada: User, page: str) -> None:
        bob = factories.make_user("bob@example.org", role="admin")
        links = [enrolment_link(bob), enrolment_link(ada) + "x"]
        # A new epoch ends a link, as it ends sessions.
        links.append(enrolment_link(ada))
        User.objects.filter(pk=ada.pk).update(epoch=uuid.uuid4())
        for link in ("", *links):
            browser = Client()
            if link:
                browser.get(link.removeprefix("http://testserver"))
            by_password(browser)
            for answer in (browser.get(reverse(page)), browser.post(reverse(page), {"code": "000000"})):
                assert (answer.status_code, answer["Location"]) == (302, reverse("staff-ways-in"))
        assert not Authenticator.objects.exists()
        ada.refresh_from_db()
        by_password(client)
        # Also with a session that is open already.
        client.get(enrolment_link(ada).removeprefix("http://testserver"))
        assert client.get(reverse(page)).status_code == 200

    def test_a_link_is_good_once_and_for_a_day(
        self, client: Client, ada: User, django_capture_on_commit_callbacks: Any
    ) -> None:
        link = enrolment_link(ada).removeprefix("http://testserver")
        client.get(link)
        by_password(client)
        client.get(reverse("mfa_activate_totp"))
        secret = client.session["mfa.totp.secret"]
        with django_capture_on_commit_callbacks(execute=True):
            client.post(reverse("mfa_activate_totp"), {"code": code_of(secret)})
        assert Authenticator.objects.filter(type="totp").exists()
        Authenticator.objects.all().delete()
        assert client.get(reverse("mfa_activate_totp")).status_code == 302
        yesterday = time.time() - 25 * 3600
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("django.core.signing.time.time", lambda: yesterday)
            old = enrolment_link(ada).removeprefix("http://testserver")
        client.get(old)
        assert client.get(reverse("mfa_activate_totp")).status_code == 302
        client.get(enrolment_link(ada).removeprefix("http://testserver"))
        assert client.get(reverse("mfa_activate_totp")).status_code == 200

    def test_an_admin_invites_another(self, world: factories.World, staff: Client, ada: User) -> None:
        prove_factor(staff, world.platform_admin)
        shown = act(staff, "invite_second_factor", ada, reason="new colleague")
        assert "Invited to add a second factor: ada@example.org." in shown
        [message] = mail.outbox
        assert message.to == ["ada@example.org"]
        [link] = re.findall(r"http://testserver(/admin/account/enrol/\?t=\S+)", str(message.body))
        event = Event.objects.get(kind="staff.acted")
        assert (event.actor, event.subject, event.reason, event.after) == (
            "admin@example.org",
            "ada@example.org",
            "new colleague",
            {"act": "second-factor.invited"},
        )
        browser = Client()
        browser.get(link)
        by_password(browser)
        assert browser.get(reverse("mfa_activate_totp")).status_code == 200
        for user in (world.platform_admin, world.member):
            act(staff, "invite_second_factor", user, reason="x")
        assert len(mail.outbox) == 1

    def test_admins_cannot_reset_their_own(
        self, world: factories.World, staff: Client, settings: Any
    ) -> None:
        settings.STAFF_SECOND_FACTOR = False
        add_totp(world.platform_admin)
        prove_factor(staff, world.platform_admin)
        shown = act(staff, "reset_second_factor", world.platform_admin, reason="me")
        assert "This is you: another platform admin resets it." in shown
        assert Authenticator.objects.filter(user=world.platform_admin).count() == 2

    def test_the_command_resets_it(self, ada: User, capsys: pytest.CaptureFixture[str]) -> None:
        add_totp(ada)
        call_command("reset_second_factor", "Ada@example.org", "--reason", "lost phone")
        first, second = capsys.readouterr().out.splitlines()
        assert first == "The second factor of ada@example.org is reset."
        prefix = "To add a new one, once, within 24 h: http://testserver/admin/account/enrol/?t="
        assert second.startswith(prefix)
        assert not Authenticator.objects.exists()
        with pytest.raises(CommandError, match=r"^ada@example.org has no second factor.$"):
            call_command("reset_second_factor", "ada@example.org", "--reason", "again")
        with pytest.raises(CommandError, match=r"^There is no user eve@example.org.$"):
            call_command("reset_second_factor", "eve@example.org", "--reason", "x")


class TestEvents:
    def test_a_sign_in_is_recorded_when_everything_is_proven(
        self, client: Client, issuer: Issuer, ada: User
    ) -> None:
        secret = add_totp(ada)
        by_provider(client, issuer)
        assert not Event.objects.filter(kind="sign-in.succeeded").exists()
        client.post(reverse("mfa_authenticate"), {"code": "000000"})
        client.post(reverse("mfa_authenticate"), {"code": code_of(secret)})
        recorded = Event.objects.exclude(kind="identity.linked").order_by("at", "id")
        assert [
            (event.kind, event.actor, event.subject, event.after, event.reason) for event in recorded
        ] == [
            ("sign-in.failed", "", "ada@example.org", {"secondFactor": "code"}, "The code is wrong."),
            (
                "sign-in.succeeded",
                "ada@example.org",
                "ada@example.org",
                {"provider": "corp", "secondFactor": "totp"},
                "",
            ),
        ]

    def test_a_wrong_proof_is_recorded_without_it_also_when_pages_ask_again(
        self, client: Client, ada: User
    ) -> None:
        passkey = {"credential": '{"id": "secret-1"}'}
        client.post(reverse("mfa_login_webauthn"), passkey)
        by_password(client)
        client.post(reverse("account_reauthenticate"), {"password": "secret-2"})
        secret = add_totp(ada)
        key = Authenticator.objects.create(user=ada, type=Authenticator.Type.WEBAUTHN, data={})
        client.post(reverse("mfa_reauthenticate_webauthn"), passkey)
        key.delete()
        client.post(reverse("mfa_reauthenticate"), {"code": "000000"})
        client.post(reverse("mfa_reauthenticate"), {"code": code_of(secret)})
        signing_in = Client()
        by_password(signing_in)
        signing_in.post(reverse("mfa_authenticate"), passkey)
        failed = Event.objects.filter(kind="sign-in.failed").order_by("id")
        assert [(event.actor, event.subject, event.after, event.reason) for event in failed] == [
            ("", "", {"provider": "passkey"}, "The passkey is wrong."),
            (
                "",
                "ada@example.org",
                {"provider": "password"},
                "The password that confirms the sign-in is wrong.",
            ),
            (
                "",
                "ada@example.org",
                {"secondFactor": "webauthn"},
                "The passkey that confirms the sign-in is wrong.",
            ),
            ("", "ada@example.org", {"secondFactor": "code"}, "The code that confirms the sign-in is wrong."),
            ("", "ada@example.org", {"secondFactor": "webauthn"}, "The passkey is wrong."),
        ]
        recorded = str(list(Event.objects.values()))
        assert "secret-" not in recorded
        assert "000000" not in recorded

    def test_tries_to_confirm_are_recorded_once_and_when_they_were_too_many(
        self, client: Client, ada: User
    ) -> None:
        by_password(client)
        add_totp(ada)
        for _ in range(7):
            client.post(reverse("mfa_reauthenticate"), {"code": "000000"})
        failed = Event.objects.filter(kind="sign-in.failed").order_by("id")
        assert [event.reason for event in failed] == [
            "The code that confirms the sign-in is wrong.",
            "There were too many tries.",
        ]

    @pytest.mark.parametrize("credential", ["{}", '{"id": "x"}', "[]", '"x"', '{"id": 1, "response": {}}'])
    def test_a_malformed_passkey_is_not_added(self, client: Client, ada: User, credential: str) -> None:
        by_password(client)
        client.get(reverse("mfa_add_webauthn"))
        sent = {"name": "Key", "credential": credential}
        answer = client.post(reverse("mfa_add_webauthn"), sent)
        assert answer.status_code == 200
        assert answer.context["form"].errors
        assert not Authenticator.objects.filter(user=ada).exists()

    def test_second_factors_that_come_and_go_are_recorded_without_their_secrets(
        self, client: Client, ada: User, django_capture_on_commit_callbacks: Any
    ) -> None:
        by_password(client)
        client.get(reverse("mfa_activate_totp"))
        secret = client.session["mfa.totp.secret"]
        with django_capture_on_commit_callbacks(execute=True):
            client.post(reverse("mfa_activate_totp"), {"code": code_of(secret)})
        client.post(reverse("mfa_reauthenticate"), {"code": code_of(secret), "next": "/admin/"})
        client.post(reverse("mfa_deactivate_totp"))
        recorded = Event.objects.filter(kind__startswith="second-factor").order_by("at", "id")
        assert sorted((event.kind, (event.after or event.before or {})["type"]) for event in recorded) == [
            ("second-factor.added", "recovery_codes"),
            ("second-factor.added", "totp"),
            ("second-factor.removed", "recovery_codes"),
            ("second-factor.removed", "totp"),
        ]
        assert secret not in str(list(Event.objects.values()))

    def test_a_refused_provider_is_recorded(self, client: Client, issuer: Issuer, ada: User) -> None:
        by_provider(client, issuer, "corp")
        by_provider(Client(), issuer, "other")
        event = Event.objects.get(kind="sign-in.failed")
        assert event.subject == "ada@example.org"
        assert event.after == {"provider": "other"}
        assert event.reason == "The user signs in through another identity, at 'corp'."


class TestSessions:
    def test_one_ends_after_twelve_hours(self, client: Client, ada: User) -> None:
        by_password(client)
        assert is_in(client)
        session = client.session
        begun_at = session["begun_at"]
        session["begun_at"] = begun_at - 12 * 3600 + 60
        session.save()
        assert is_in(client)
        session["begun_at"] = begun_at - 12 * 3600 - 1
        session.save()
        assert not is_in(client)
        assert "_auth_user_id" not in client.session

    def test_one_ends_when_it_was_idle_for_half_an_hour(self, client: Client, ada: User) -> None:
        by_password(client)
        for _ in range(2):
            answer = client.get("/admin/")
            assert answer.cookies["sessionid"]["max-age"] == 1800
        assert 1790 < client.session.get_expiry_age() <= 1800

    def test_a_page_that_polls_keeps_no_session_alive(self, client: Client, ada: User) -> None:
        by_password(client)
        assert "sessionid" in client.get("/admin/").cookies
        polled = client.get("/admin/", {"part": "without-owner"}, headers={"HX-Request": "true"})
        assert polled.status_code == 200
        assert "sessionid" not in polled.cookies
        assert "sessionid" in client.post("/admin/?part=x").cookies

    def test_a_polled_part_reloads_the_page_after_the_session_ended(self, client: Client) -> None:
        part = "/admin/?part=without-owner"
        answer = client.get(part, headers={"HX-Request": "true"}, follow=True)
        assert (answer["HX-Refresh"], answer.content) == ("true", b"")
        assert b"Sign in" in client.get(part, follow=True).content

    def test_one_ends_with_the_office(self, client: Client, ada: User) -> None:
        by_password(client)
        assert is_in(client)
        User.objects.filter(pk=ada.pk).update(role="user")
        assert client.get(reverse("mfa_index"))["Location"].startswith("/admin/login/")
        assert "_auth_user_id" not in client.session

    def test_acts_ask_again_after_fifteen_minutes_and_go_on_then(
        self, client: Client, ada: User, world: factories.World
    ) -> None:
        by_password(client)
        assert "Deactivated: member@example.org." in act(client, "deactivate", world.member)
        session = client.session
        for record in session["account_authentication_methods"]:
            record["at"] -= 901
        session.save()
        address = reverse("admin:accounts_user_changelist")
        form = {
            "action": "activate",
            "_selected_action": str(world.member.pk),
            "confirmed": "yes",
            "reason": "asked to",
        }
        asked = client.post(address, form)
        assert asked["Location"] == f"{reverse('account_reauthenticate')}?{urlencode({'next': address})}"
        world.member.refresh_from_db()
        assert not world.member.is_active
        refused = client.post(reverse("account_reauthenticate"), {"password": "wrong", "next": address})
        assert refused.status_code == 200
        assert "It goes on after this." in refused.content.decode()
        client.post(reverse("account_reauthenticate"), {"password": PASSWORD, "next": address})
        world.member.refresh_from_db()
        assert world.member.is_active

    def test_a_form_with_a_query_in_its_address_goes_on_after_the_proof(
        self, client: Client, ada: User, world: factories.World
    ) -> None:
        by_password(client)
        session = client.session
        for record in session["account_authentication_methods"]:
            record["at"] -= 901
        session.save()
        address = f"{reverse('admin:tenant-access', args=[world.tenant.pk])}?back=x"
        asked = client.post(address, {"hours": 1, "reason": "ticket 7"})
        path, _, query = asked["Location"].partition("?")
        assert not ada.memberships.exists()
        assert client.post(path, {"password": PASSWORD, **dict(parse_qsl(query))}).status_code == 302
        assert ada.memberships.get().tenant == world.tenant
