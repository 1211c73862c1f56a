"""``/auth/magic-link`` and ``/auth/magic-link/verify``, by real mail. Contract: Discovery and sign-in."""

from __future__ import annotations

import datetime as dt
import email
import email.policy
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from accounts.models import Account, Fqdn, MagicLink, Membership, RefreshToken, Tenant, TenantConfig, User
from accounts.tenants.names import draw_name
from tenantadmin.lib.core.timestamps import now
from tests.accounts.support import Inbox, at_once, running_inbox
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from tests import factories

pytestmark = pytest.mark.django_db
REQUEST, VERIFY = "/auth/magic-link", "/auth/magic-link/verify"


@pytest.fixture
def inbox(settings: Any) -> Iterator[Inbox]:
    with running_inbox() as received:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", received.port
        yield received


@pytest.fixture(autouse=True)
def _dashboard(settings: Any) -> None:
    settings.DASHBOARD_URL = "https://dash.example.org"
    settings.ALLOWED_REDIRECT_HOSTS = ["https://app.example.org"]


def link_for(client: ApiClient, inbox: Inbox, address: str, **body: str) -> str:
    answer = client.post(REQUEST, {"email": address, **body})
    assert (answer.status_code, answer.json()) == (202, {"status": "sent"})
    return inbox.token()


class TestFlow:
    def test_a_stranger_finds_a_free_account_and_a_tenant(self, anonymous: ApiClient, inbox: Inbox) -> None:
        token = link_for(anonymous, inbox, "Ada@Example.org")
        message = inbox.messages[0]
        assert (message["To"], message["Subject"]) == ("ada@example.org", "Sign in to tenantadmin")
        html = message.get_body(("html",))
        assert html is not None
        assert f"http://testserver/auth/magic-link/verify?t={token}" in html.get_content()
        assert len(token) == 43

        answer = anonymous.post(VERIFY, {"token": token})
        assert answer.status_code == 200
        assert answer["Cache-Control"] == "no-store"
        body = answer.json()
        assert body["expires_in"] == 3600
        assert body["return_to"] == "https://dash.example.org"
        document = ApiClient(body["access_token"]).get("/users/ada@example.org").json()
        tenant = Tenant.objects.get()
        assert document["tenants"] == [{"tenantId": str(tenant.pk), "role": "owner"}]
        assert document["identity"]["emailVerified"] is True
        account = Account.objects.get()
        assert (account.plan, [owner.email for owner in account.owners.all()]) == (
            "free",
            ["ada@example.org"],
        )
        assert tenant.account == account
        refreshed = anonymous.post(
            "/oauth/token", {"grant_type": "refresh_token", "refresh_token": body["refresh_token"]}
        )
        assert refreshed.status_code == 200

    def test_a_second_sign_in_provisions_nothing(self, anonymous: ApiClient, inbox: Inbox) -> None:
        for _ in range(2):
            token = link_for(anonymous, inbox, "ada@example.org")
            assert anonymous.post(VERIFY, {"token": token}).status_code == 200
        assert (User.objects.count(), Account.objects.count(), Tenant.objects.count()) == (1, 1, 1)

    def test_the_first_tenant_has_an_address_that_is_drawn_again_on_a_conflict(
        self, anonymous: ApiClient, inbox: Inbox, world: factories.World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Fqdn.objects.create(name="quiet-harbor-42.gateway.localhost", tenant_id=world.tenant.pk)
        drawn = iter(["harbor", "harbor", "meadow"])
        monkeypatch.setattr(
            "accounts.tenants.lifecycle.draw_name", lambda domain: f"quiet-{next(drawn)}-42.{domain}"
        )
        token = link_for(anonymous, inbox, "ada@example.org")
        assert anonymous.post(VERIFY, {"token": token}).status_code == 200
        tenant = Tenant.objects.get(memberships__user__email="ada@example.org")
        assert [name.name for name in Fqdn.objects.filter(tenant_id=tenant.pk)] == [
            "quiet-meadow-42.gateway.localhost"
        ]
        assert TenantConfig.objects.get(tenant=tenant).document["fqdns"] == [
            "quiet-meadow-42.gateway.localhost"
        ]

    def test_a_drawn_address_has_two_words_and_a_number(self) -> None:
        assert re.fullmatch(r"[a-z]+-[a-z]+-[1-9][0-9]\.gateway\.localhost", draw_name("gateway.localhost"))

    @pytest.mark.usefixtures("world")
    def test_an_invited_user_gets_no_other_tenant(self, anonymous: ApiClient, inbox: Inbox) -> None:
        before = Tenant.objects.count()
        token = link_for(anonymous, inbox, "member@example.org")
        assert anonymous.post(VERIFY, {"token": token}).status_code == 200
        assert Tenant.objects.count() == before

    def test_a_guest_gets_no_tenant(self, anonymous: ApiClient, inbox: Inbox) -> None:
        User.objects.create(email="guest@example.org", role="guest")
        token = link_for(anonymous, inbox, "guest@example.org")
        assert anonymous.post(VERIFY, {"token": token}).status_code == 200
        assert not Membership.objects.exists()

    @pytest.mark.usefixtures("world")
    def test_known_and_unknown_addresses_are_answered_alike(self, anonymous: ApiClient, inbox: Inbox) -> None:
        answers = [
            anonymous.post(REQUEST, {"email": address})
            for address in ("member@example.org", "unknown@example.org")
        ]
        User.objects.filter(email="member@example.org").update(is_active=False)
        answers.append(anonymous.post(REQUEST, {"email": "member@example.org"}))
        assert {(answer.status_code, answer.content) for answer in answers} == {(202, b'{"status":"sent"}')}
        assert len(inbox.messages) == 3

    def test_only_the_digest_of_a_link_is_stored(self, anonymous: ApiClient, inbox: Inbox) -> None:
        token = link_for(anonymous, inbox, "ada@example.org")
        assert token not in str(MagicLink.objects.values().get())

    @pytest.mark.parametrize("mode", [None, 0o755, 0o777])
    def test_files_hold_the_mail_by_default_and_only_we_can_read_them(
        self, anonymous: ApiClient, settings: Any, tmp_path: Path, mode: int | None
    ) -> None:
        folder = tmp_path / "mail"
        if mode is not None:
            folder.mkdir()
            folder.chmod(mode)
        # The test runner has put its own mailbox in place of the configured one.
        settings.EMAIL_BACKEND = "tenantadmin.mail.PrivateFileBackend"
        settings.EMAIL_FILE_PATH = str(folder)
        assert anonymous.post(REQUEST, {"email": "ada@example.org"}).status_code == 202
        [written] = folder.iterdir()
        assert (folder.stat().st_mode & 0o777, written.stat().st_mode & 0o777) == (0o700, 0o600)
        message = email.message_from_bytes(written.read_bytes(), policy=email.policy.default)
        assert [part.get_content_type() for part in message.iter_parts()] == ["text/plain", "text/html"]


class TestLimits:
    def test_one_mailbox_has_one_limit_and_gets_all_its_mail(
        self, anonymous: ApiClient, inbox: Inbox
    ) -> None:
        spellings = ["zoe@bücher.example", "ZOE@BÜCHER.example", "zoe@bu\u0308cher.example"]
        spellings += ["Zoe@xn--bcher-kva.example", " zoe@XN--BCHER-KVA.example "]
        for spelling in spellings:
            assert anonymous.post(REQUEST, {"email": spelling}).status_code == 202
        assert {message["To"] for message in inbox.messages} == {"zoe@xn--bcher-kva.example"}
        for spelling in spellings:
            assert anonymous.post(REQUEST, {"email": spelling}).status_code == 429

    def test_a_link_goes_to_the_domain_that_was_typed(self, anonymous: ApiClient, inbox: Inbox) -> None:
        token = link_for(anonymous, inbox, "zoe@straße.example")
        assert inbox.messages[0]["To"] == "zoe@xn--strae-oqa.example"
        assert anonymous.post(VERIFY, {"token": token}).status_code == 200
        assert [user.email for user in User.objects.all()] == ["zoe@xn--strae-oqa.example"]

    @pytest.mark.parametrize("email", ["zoe@e\uff58ample.org", "zoe@[127.0.0.1]", '"zoe"@example.org'])
    def test_other_forms_are_refused(self, anonymous: ApiClient, inbox: Inbox, email: str) -> None:
        assert anonymous.post(REQUEST, {"email": email}).status_code == 400
        assert not inbox.messages

    @pytest.mark.parametrize(
        ("addresses", "limited"),
        [
            ([f"2001:db8:0:1::{number:x}" for number in range(21)], True),
            ([f"2001:db8:0:{number:x}::1" for number in range(21)], False),
            (["::ffff:192.0.2.1", "192.0.2.1", "::ffff:c000:201"] * 7, True),
        ],
    )
    def test_one_client_is_one_network(
        self, anonymous: ApiClient, inbox: Inbox, addresses: list[str], limited: bool
    ) -> None:
        answers = [
            anonymous._client.post(
                REQUEST, {"email": f"ada{index}@example.org"}, "application/json", REMOTE_ADDR=address
            ).status_code
            for index, address in enumerate(addresses)
        ]
        assert answers == [202] * 20 + [429 if limited else 202]


class TestOnce:
    def test_a_used_link_is_a_401(self, anonymous: ApiClient, inbox: Inbox) -> None:
        token = link_for(anonymous, inbox, "ada@example.org")
        assert anonymous.post(VERIFY, {"token": token}).status_code == 200
        again = anonymous.post(VERIFY, {"token": token})
        assert (again.status_code, again.json()["error"]) == (401, "unauthorized")
        assert RefreshToken.objects.count() == 1

    def test_an_expired_link_is_a_401(self, anonymous: ApiClient, inbox: Inbox) -> None:
        token = link_for(anonymous, inbox, "ada@example.org")
        link = MagicLink.objects.get()
        assert link.expires_at - link.created_at == dt.timedelta(minutes=15)
        MagicLink.objects.update(expires_at=now())
        assert anonymous.post(VERIFY, {"token": token}).status_code == 401
        assert not User.objects.exists()

    @pytest.mark.parametrize("token", ["x", "x" * 4096, "tas_pat_x", "ä"])
    def test_an_unknown_link_is_a_401(self, anonymous: ApiClient, token: str) -> None:
        assert anonymous.post(VERIFY, {"token": token}).status_code == 401

    def test_an_earlier_link_stays_valid_and_signing_in_ends_all(
        self, anonymous: ApiClient, inbox: Inbox
    ) -> None:
        first = link_for(anonymous, inbox, "ada@example.org")
        second = link_for(anonymous, inbox, "ada@example.org")
        other = link_for(anonymous, inbox, "bob@example.org")
        assert anonymous.post(VERIFY, {"token": first}).status_code == 200
        assert anonymous.post(VERIFY, {"token": second}).status_code == 401
        assert anonymous.post(VERIFY, {"token": other}).status_code == 200


class TestRedirect:
    @pytest.mark.parametrize(
        ("asked", "at_verify", "target"),
        [
            (None, None, "https://dash.example.org"),
            ("/reports", None, "https://dash.example.org/reports"),
            ("https://app.example.org/x", None, "https://app.example.org/x"),
            ("//evil.example", None, "https://dash.example.org"),
            ("/reports", "/other", "https://dash.example.org/other"),
            ("/reports", "https://evil.example", "https://dash.example.org"),
            ("/reports", "", "https://dash.example.org"),
        ],
    )
    def test_where_it_leads(
        self,
        anonymous: ApiClient,
        inbox: Inbox,
        asked: str | None,
        at_verify: str | None,
        target: str,
    ) -> None:
        token = link_for(
            anonymous, inbox, "ada@example.org", **({} if asked is None else {"redirect": asked})
        )
        proof = {"token": token, **({} if at_verify is None else {"return_to": at_verify})}
        assert anonymous.post(VERIFY, proof).json()["return_to"] == target


class TestPage:
    def form(self, token: str, **headers: str) -> Any:
        return ApiClient().request(
            "POST",
            VERIFY,
            f"token={token}".encode(),
            headers={"Content-Type": "application/x-www-form-urlencoded", **headers},
        )

    def test_looking_at_it_uses_nothing_up(self, anonymous: ApiClient, inbox: Inbox) -> None:
        token = link_for(anonymous, inbox, "ada@example.org", redirect="/reports?day=1")
        for _ in range(3):
            page = anonymous.get(f"{VERIFY}?t={token}")
            assert page.status_code == 200
            assert f'name="token" value="{token}"' in page.content.decode()
            assert "as <strong>ada@example.org</strong> at http" in page.content.decode()
        assert page["Cache-Control"] == "no-store"
        assert "default-src 'none'" in page["Content-Security-Policy"]
        assert page["Referrer-Policy"] == "no-referrer"
        # The origin of a page without a referrer.
        answer = self.form(token, Origin="null", **{"Sec-Fetch-Site": "same-origin"})
        assert answer.status_code == 303
        target = urlsplit(answer["Location"])
        assert (target.scheme, target.netloc, target.path) == ("https", "dash.example.org", "/reports")
        parameters = parse_qs(target.query)
        assert set(parameters) == {"day", "access_token", "refresh_token", "expires_in"}
        assert ApiClient(parameters["access_token"][0]).get("/users/ada@example.org").status_code == 200

    def test_a_used_link_leads_back_to_a_page_that_mails_another(
        self, anonymous: ApiClient, inbox: Inbox
    ) -> None:
        token = link_for(anonymous, inbox, "ada@example.org", redirect="/dashboard/#/t/x")
        self.form(token)
        answer = self.form(token)
        assert (answer.status_code, answer["Location"]) == (303, f"{VERIFY}?t={token}&problem=unauthorized")
        # It is said before the button is pressed, too.
        for address in (answer["Location"], f"{VERIFY}?t={token}"):
            page = anonymous.get(address).content.decode()
            assert "already used" in page
            assert "<button" not in page
            assert "#/signin?email=ada%40example.org&amp;to=%2Ft%2Fx&amp;send=1" in page
        page = self.form("unknown")["Location"]
        assert "already used" in anonymous.get(page).content.decode()

    def test_a_form_of_another_site_is_refused(self, anonymous: ApiClient, inbox: Inbox) -> None:
        token = link_for(anonymous, inbox, "ada@example.org")
        headers: list[dict[str, str]] = [
            *({"Origin": origin} for origin in ("https://evil.example", "http://testserver.evil.example")),
            *({"Origin": "null", "Sec-Fetch-Site": site} for site in ("cross-site", "same-site", "none")),
        ]
        for sent in headers:
            assert self.form(token, **sent)["Location"] == f"{VERIFY}?problem=forbidden", sent
        assert not User.objects.exists()

    @pytest.mark.parametrize("headers", [{}, {"Origin": "http://testserver"}, {"Origin": "null"}])
    def test_a_browser_that_does_not_tell_the_site_signs_in(
        self, anonymous: ApiClient, inbox: Inbox, headers: dict[str, str]
    ) -> None:
        token = link_for(anonymous, inbox, "ada@example.org")
        assert "access_token" in self.form(token, **headers)["Location"]

    def test_the_token_in_the_address_is_escaped(self, anonymous: ApiClient) -> None:
        page = anonymous.get(f'{VERIFY}?t="><script>alert(1)</script>').content.decode()
        assert "<script>" not in page
        assert "Ask for a new link" in anonymous.get(VERIFY).content.decode()


class TestRefusals:
    @pytest.mark.parametrize(
        "body",
        [
            {},
            [],
            {"email": ""},
            {"email": 7},
            {"email": "nonsense"},
            {"email": "a@b"},
            {"email": "a@example.org\r\nBcc: b@example.org"},
            {"email": "a@example.org,b@example.org"},
            {"email": "\u212aate@example.org"},
            {"email": "a" * 310 + "@example.org"},
            {"email": "a@example.org", "redirect": "/" + "x" * 2048},
            {"email": "a@example.org", "redirect": 7},
            {"email": "a@example.org", "return_to": "/"},
            {"email": "a@example.org", "name": "x"},
            b'{"email": "a@example.org", "email": "b@example.org"}',
            b'{"email": "a\\u0000@example.org"}',
        ],
    )
    def test_a_malformed_request_is_a_400(self, anonymous: ApiClient, inbox: Inbox, body: object) -> None:
        assert anonymous.post(REQUEST, body).status_code == 400
        assert not inbox.messages

    @pytest.mark.parametrize(
        "body",
        [{}, {"token": ""}, {"token": 7}, {"token": "x" * 4097}, {"token": "x", "return_to": "/" * 2049},
         {"token": "x", "email": "y"}, {"token": None}],
    )  # fmt: skip
    def test_a_malformed_proof_is_a_400(self, anonymous: ApiClient, body: object) -> None:
        assert anonymous.post(VERIFY, body).status_code == 400

    def test_a_domain_that_may_not_sign_in_is_a_403(
        self, anonymous: ApiClient, inbox: Inbox, settings: Any
    ) -> None:
        token = link_for(anonymous, inbox, "ada@example.org")
        settings.SIGNIN_EMAIL_DOMAINS = ["Example.COM"]
        for address in ("ada@example.org", "ada@example.com.evil.example", "example.com@example.org"):
            assert anonymous.post(REQUEST, {"email": address}).status_code == 403
        assert anonymous.post(VERIFY, {"token": token}).status_code == 403
        assert anonymous.post(REQUEST, {"email": "ada@EXAMPLE.com"}).status_code == 202
        assert not User.objects.exists()

    @pytest.mark.usefixtures("world")
    def test_a_deactivated_user_is_a_403_and_gets_no_token(self, anonymous: ApiClient, inbox: Inbox) -> None:
        User.objects.filter(email="member@example.org").update(is_active=False)
        token = link_for(anonymous, inbox, "member@example.org")
        assert anonymous.post(VERIFY, {"token": token}).status_code == 403
        assert not RefreshToken.objects.exists()

    def test_the_sixth_link_of_an_address_is_a_429(self, anonymous: ApiClient, inbox: Inbox) -> None:
        for spelling in (
            "a@example.org",
            "A@example.org",
            " a@example.org",
            "a@EXAMPLE.org",
            "a@Example.Org",
        ):
            link_for(anonymous, inbox, spelling)
        answer = anonymous.post(REQUEST, {"email": "a@example.org"})
        assert (answer.status_code, answer.json()["error"]) == (429, "rate_limited")
        assert 890 <= int(answer["Retry-After"]) <= 900
        assert len(inbox.messages) == 5
        link_for(anonymous, inbox, "b@example.org")

    def test_the_twenty_first_link_of_a_client_is_a_429(self, anonymous: ApiClient, settings: Any) -> None:
        def ask(number: int, **headers: str) -> int:
            body = f'{{"email": "u{number}@example.org"}}'.encode()
            return anonymous.request("POST", REQUEST, body, headers=headers).status_code

        forged = {"X-Forwarded-For": "203.0.113.9"}
        assert {ask(number, **forged) for number in range(20)} == {202}
        assert ask(20, **{"X-Forwarded-For": "203.0.113.10"}) == 429
        settings.TRUSTED_PROXIES = ["127.0.0.0/8"]
        assert ask(21, **{"X-Forwarded-For": "203.0.113.10"}) == 202
        assert ask(22, **{"X-Forwarded-For": "203.0.113.10, 127.0.0.1"}) == 202

    def test_without_redis_or_with_a_misconfigured_limit_it_is_a_500(
        self, anonymous: ApiClient, inbox: Inbox, settings: Any, tmp_path: Path
    ) -> None:
        settings.MAGIC_LINK_EMAIL_LIMIT = "plenty"
        assert anonymous.post(REQUEST, {"email": "a@example.org"}).status_code == 500
        settings.MAGIC_LINK_EMAIL_LIMIT = "5 per minute"
        settings.REDIS_URL = f"unix://{tmp_path}/missing.sock"
        answer = anonymous.post(REQUEST, {"email": "a@example.org"})
        assert (answer.status_code, answer.json()["error"]) == (500, "internal_error")
        assert not inbox.messages

    def test_a_mail_server_that_refuses_or_is_down_is_a_502(
        self, anonymous: ApiClient, inbox: Inbox, settings: Any
    ) -> None:
        inbox.refuses = True
        answer = anonymous.post(REQUEST, {"email": "a@example.org"})
        assert (answer.status_code, answer.json()["error"]) == (502, "identity_provider_error")
        settings.EMAIL_PORT = 9
        assert anonymous.post(REQUEST, {"email": "a@example.org"}).status_code == 502
        assert not MagicLink.objects.exists()

    def test_without_a_mail_server_it_is_a_503(
        self, anonymous: ApiClient, inbox: Inbox, settings: Any
    ) -> None:
        token = link_for(anonymous, inbox, "a@example.org")
        settings.MAGIC_LINKS_ENABLED = False
        for answer in (
            anonymous.post(REQUEST, {"email": "a@example.org"}),
            anonymous.post(VERIFY, {"token": token}),
            anonymous.get(f"{VERIFY}?t={token}"),
        ):
            assert (answer.status_code, answer.json()["error"]) == (503, "identity_provider_unavailable")


@pytest.mark.django_db(transaction=True)
def test_of_two_verifications_at_once_exactly_one_signs_in(anonymous: ApiClient, inbox: Inbox) -> None:
    for number in range(3):
        token = link_for(anonymous, inbox, f"u{number}@example.org")
        answers = at_once([partial(anonymous.post, VERIFY, {"token": token})] * 4)
        assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401]
        assert RefreshToken.objects.count() == number + 1
        assert Tenant.objects.count() == number + 1


@pytest.mark.django_db(transaction=True)
def test_two_links_at_once_provision_one_account(anonymous: ApiClient, inbox: Inbox) -> None:
    tokens = [link_for(anonymous, inbox, "ada@example.org") for _ in range(2)]
    answers = at_once([partial(anonymous.post, VERIFY, {"token": token}) for token in tokens])
    assert 200 in {answer.status_code for answer in answers}
    assert {answer.status_code for answer in answers} <= {200, 401}
    assert (User.objects.count(), Account.objects.count(), Tenant.objects.count()) == (1, 1, 1)
