"""``/auth/login`` and ``/auth/callback``. Contract: Discovery and sign-in."""

from __future__ import annotations

import base64
import html
import json
import re
import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from allauth.socialaccount.providers.github.views import GitHubOAuth2Adapter
from allauth.socialaccount.providers.google import views as google
from cryptography.hazmat.primitives.asymmetric import rsa
from django.test import Client

from accounts.models import Account, Event, MagicLink, RefreshToken, Tenant, User
from tenantadmin.conf.environment import Environment, read_providers
from tenantadmin.lib.core.timestamps import now
from tests.accounts.issuer import Issuer, running_issuer
from tests.accounts.support import at_once
from tests.conftest import ApiClient
from tests.environment import environment

if TYPE_CHECKING:
    from tests import factories

pytestmark = pytest.mark.django_db


def app(name: str, **settings: Any) -> dict[str, Any]:
    return {
        "provider_id": name,
        "name": name,
        "client_id": "client",
        "secret": "secret",
        "settings": settings,
    }


@pytest.fixture
def issuer(settings: Any) -> Iterator[Issuer]:
    with running_issuer() as running:
        settings.DASHBOARD_URL = "https://dash.example.org"
        settings.ALLOWED_REDIRECT_HOSTS = ["https://app.example.org"]
        settings.SIGNIN_PROVIDERS = ["corp", "google", "github", "microsoft"]
        settings.SOCIALACCOUNT_PROVIDERS = {
            "openid_connect": {
                "APPS": [app("corp", server_url=running.url, oauth_pkce_enabled=True)],
                "OAUTH_PKCE_ENABLED": True,
            },
            "google": {
                "APPS": [app("google")],
                "OAUTH_PKCE_ENABLED": True,
                "SCOPE": ["openid", "profile", "email"],
            },
            "github": {"APPS": [app("github")], "OAUTH_PKCE_ENABLED": True, "SCOPE": ["user:email"]},
            "microsoft": {
                "APPS": [
                    app(
                        "microsoft",
                        tenant="directory",
                        verified_email=True,
                        login_url=running.url,
                        graph_url=running.url,
                    )
                ],
                "OAUTH_PKCE_ENABLED": True,
            },
        }
        yield running


class Browser:
    """Keeps cookies, follows nothing by itself."""

    def __init__(self) -> None:
        self.client = Client(raise_request_exception=False)

    def login(self, query: str = "") -> str:
        answer = self.client.get(f"/auth/login{query}")
        assert answer.status_code == 302, answer.content
        return str(answer["Location"])

    def callback(self, provider: str = "corp", **parameters: str) -> Any:
        return self.client.get(f"/auth/callback/{provider}?{urlencode(parameters)}")

    def sign_in(self, issuer: Issuer, query: str = "") -> Any:
        page = self.login(query)
        provider = query_of(page)["redirect_uri"].rpartition("/")[2]
        return self.callback(provider, **issuer.authorize(page))


def query_of(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


class TestProviders:
    @pytest.mark.usefixtures("issuer")
    def test_are_listed_in_a_fixed_order(self, anonymous: ApiClient) -> None:
        assert anonymous.get("/auth/providers").json() == {
            "providers": [
                {"id": "corp", "name": "corp"},
                {"id": "google", "name": "google"},
                {"id": "github", "name": "github"},
                {"id": "microsoft", "name": "microsoft"},
            ],
            "magicLink": True,
        }

    def test_may_be_none(self, anonymous: ApiClient, settings: Any) -> None:
        settings.SIGNIN_PROVIDERS, settings.MAGIC_LINKS_ENABLED = [], False
        assert anonymous.get("/auth/providers").json() == {"providers": [], "magicLink": False}

    def test_have_the_names_that_people_know(self) -> None:
        variables = {
            f"SIGNIN_{name}_{what}": "x"
            for name in ("GOOGLE", "CORP")
            for what in ("CLIENT_ID", "CLIENT_SECRET")
        }
        variables["SIGNIN_CORP_ISSUER"] = "https://sso.example.com"
        with environment(variables):
            providers = read_providers(["corp", "google"], env := Environment())
            env.seal()
        assert [providers[kind]["APPS"][0]["name"] for kind in ("openid_connect", "google")] == [
            "corp",
            "Google",
        ]


@pytest.mark.usefixtures("issuer")
class TestLogin:
    def test_leads_to_the_providers_page_with_pkce_nonce_and_state(self, issuer: Issuer) -> None:
        browser = Browser()
        answer = browser.client.get("/auth/login?redirect=/reports")
        assert answer.status_code == 302
        assert answer["Cache-Control"] == "no-store"
        address = urlsplit(answer["Location"])
        assert f"{address.scheme}://{address.netloc}{address.path}" == f"{issuer.url}/authorize"
        query = query_of(answer["Location"])
        assert query["client_id"] == "client"
        assert query["redirect_uri"] == "http://testserver/auth/callback/corp"
        assert query["response_type"] == "code"
        assert set(query["scope"].split()) == {"openid", "profile", "email"}
        assert query["code_challenge_method"] == "S256"
        assert re.fullmatch(r"[A-Za-z0-9_-]{43}", query["code_challenge"])
        assert len(query["nonce"]) == 32
        state = json.loads(base64.b64decode(query["state"]))
        assert state["redirect"] == "https://dash.example.org/reports"
        cookie = answer.cookies["signin_browser"]
        assert (cookie["httponly"], cookie["samesite"], cookie["path"], cookie["max-age"]) == (
            True,
            "Lax",
            "/auth",
            600,
        )

    @pytest.mark.parametrize(
        ("query", "target"),
        [
            ("", "https://dash.example.org"),
            ("?return_to=/a", "https://dash.example.org/a"),
            ("?redirect=/b&return_to=/a", "https://dash.example.org/b"),
            ("?redirect=//evil.example", "https://dash.example.org"),
            ("?redirect=https://app.example.org/c", "https://app.example.org/c"),
            ("?redirect=" + "/a" * 3000, "https://dash.example.org"),
        ],
    )
    def test_where_it_leads_in_the_end(self, query: str, target: str) -> None:
        state = query_of(Browser().login(query))["state"]
        assert json.loads(base64.b64decode(state))["redirect"] == target

    @pytest.mark.parametrize(
        ("provider", "host"),
        [
            ("", "127.0.0.1"),
            ("corp", "127.0.0.1"),
            ("google", "accounts.google.com"),
            ("github", "github.com"),
            ("nonsense", "127.0.0.1"),
        ],
    )
    def test_the_provider_is_named_or_the_first(self, provider: str, host: str) -> None:
        assert urlsplit(Browser().login(f"?provider={provider}")).hostname == host

    def test_without_a_provider_it_is_a_500(self, settings: Any) -> None:
        settings.SIGNIN_PROVIDERS = []
        for path in ("/auth/login", "/auth/callback?code=x&state=y"):
            answer = ApiClient().get(path)
            assert (answer.status_code, answer.json()["error"]) == (500, "identity_provider_unavailable")
        answer = ApiClient().get("/auth/callback")
        assert (answer.status_code, answer.json()["message"]) == (400, "'code' is missing.")

    def test_a_provider_that_does_not_answer_is_a_502(self, issuer: Issuer, settings: Any) -> None:
        issuer.status = 503
        answer = ApiClient().get("/auth/login")
        assert (answer.status_code, answer.json()["error"]) == (502, "identity_provider_error")
        settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"] = [
            app("corp", server_url="http://127.0.0.1:9")
        ]
        assert ApiClient().get("/auth/login").status_code == 502

    def test_an_unknown_parameter_is_a_400(self) -> None:
        assert ApiClient().get("/auth/login?redirect_to=/").status_code == 400

    def test_without_redis_it_is_a_500(self, settings: Any, tmp_path: Any) -> None:
        settings.REDIS_URL = f"unix://{tmp_path}/missing.sock"
        assert ApiClient().get("/auth/login").status_code == 500


class TestCallback:
    def test_a_stranger_signs_in_and_finds_a_home(self, issuer: Issuer) -> None:
        answer = Browser().sign_in(issuer, "?redirect=/reports?day=1")
        assert answer.status_code == 302, answer.content
        assert answer["Cache-Control"] == "no-store"
        target = urlsplit(answer["Location"])
        assert (target.scheme, target.netloc, target.path) == ("https", "dash.example.org", "/reports")
        query = query_of(answer["Location"])
        assert set(query) == {"day", "access_token", "refresh_token", "expires_in"}
        assert query["expires_in"] == "3600"
        document = ApiClient(query["access_token"]).get("/users/ada@example.org").json()
        assert document["displayName"] == "Ada Lovelace"
        assert {**document["identity"], "lastLoginAt": "…"} == {
            "provider": "corp",
            "subject": "117",
            "emailVerified": True,
            "lastLoginAt": "…",
        }
        assert [entry["role"] for entry in document["tenants"]] == ["owner"]
        assert Account.objects.get().plan == "free"

    def test_a_second_sign_in_updates_the_user(self, issuer: Issuer) -> None:
        Browser().sign_in(issuer)
        first = User.objects.get().last_login
        issuer.user["name"] = "Augusta"
        Browser().sign_in(issuer)
        user = User.objects.get()
        assert user.last_login is not None
        assert first is not None
        assert user.last_login >= first
        assert user.display_name == "Ada Lovelace"
        assert (Account.objects.count(), Tenant.objects.count(), RefreshToken.objects.count()) == (1, 1, 2)

    def test_a_verified_address_links_to_its_user(self, issuer: Issuer, world: factories.World) -> None:
        issuer.user["email"] = "Member@Example.org"
        assert Browser().sign_in(issuer).status_code == 302
        world.member.refresh_from_db()
        assert (world.member.identity_provider, world.member.identity_subject) == ("corp", "117")
        issuer.user["email"] = "renamed@example.org"
        assert Browser().sign_in(issuer).status_code == 302
        assert not User.objects.filter(email="renamed@example.org").exists()

    @pytest.mark.parametrize("identity", [("google", "117"), ("corp", "116")])
    def test_a_user_with_another_identity_is_not_taken_over(
        self, issuer: Issuer, identity: tuple[str, str]
    ) -> None:
        provider, subject = identity
        User.objects.create(email="ada@example.org", identity_provider=provider, identity_subject=subject)
        answer = Browser().sign_in(issuer)
        assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized")
        assert answer.json()["message"].startswith(f"ada@example.org signs in through '{provider}' here.")
        user = User.objects.get()
        assert (user.identity_provider, user.identity_subject) == identity
        assert not RefreshToken.objects.exists()

    def test_the_audit_says_whether_the_provider_answered(self, issuer: Issuer, settings: Any) -> None:
        def fail(*apps: Any, status: int = 200) -> str:
            browser = Browser()
            given = issuer.authorize(browser.login())
            issuer.status = status
            settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"] += apps
            del settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"][: len(apps)]
            assert browser.callback("corp", **given).status_code == 401
            issuer.status = 200
            return Event.objects.filter(kind="sign-in.failed").latest("pk").reason

        assert fail(status=503) == "The identity provider gave an answer that is not valid."
        silent = app("corp", server_url="http://127.0.0.1:9")
        assert fail(silent) == "The identity provider did not answer."

    @pytest.mark.parametrize("verified", [False, None, 0, "false", "yes"])
    def test_an_unverified_address_neither_signs_in_nor_links(
        self, issuer: Issuer, world: factories.World, verified: object
    ) -> None:
        for address in ("member@example.org", "new@example.org"):
            issuer.user.update(email=address, email_verified=verified)
            answer = Browser().sign_in(issuer)
            assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized")
        world.member.refresh_from_db()
        assert world.member.identity_subject == ""
        assert not User.objects.filter(email="new@example.org").exists()

    @pytest.mark.parametrize("verified", [False, None])
    def test_an_issuer_whose_addresses_are_trusted_signs_in_without_the_claim(
        self, issuer: Issuer, settings: Any, world: factories.World, verified: object
    ) -> None:
        app = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"][0]
        app["settings"]["verified_email"] = True
        issuer.user.update(email="member@example.org", email_verified=verified)
        assert Browser().sign_in(issuer).status_code == 302
        world.member.refresh_from_db()
        assert world.member.identity_subject == "117"

    @pytest.mark.parametrize("address", [None, "", "nonsense", "\u212aate@example.org", "a/b@example.org"])
    def test_without_a_usable_address_it_is_a_401(self, issuer: Issuer, address: object) -> None:
        issuer.user["email"] = address
        answer = Browser().sign_in(issuer)
        assert answer.status_code == 401
        assert answer.json()["message"] == "The identity provider gave no usable email address."
        assert not User.objects.exists()

    def test_a_domain_that_may_not_sign_in_is_a_403(self, issuer: Issuer, settings: Any) -> None:
        settings.SIGNIN_EMAIL_DOMAINS = ["example.com"]
        answer = Browser().sign_in(issuer)
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
        assert not User.objects.exists()

    def test_a_deactivated_user_is_a_403(self, issuer: Issuer) -> None:
        User.objects.create(email="ada@example.org", is_active=False)
        assert Browser().sign_in(issuer).status_code == 403
        assert not RefreshToken.objects.exists()

    def test_it_ends_the_open_links_of_the_address(self, issuer: Issuer) -> None:
        link = MagicLink.objects.create(
            digest=b"x" * 32, email="ada@example.org", return_to="/", expires_at=now()
        )
        Browser().sign_in(issuer)
        link.refresh_from_db()
        assert link.used_at is not None

    def test_several_tabs_of_one_browser_sign_in(self, issuer: Issuer) -> None:
        browser = Browser()
        pages = [browser.login("?redirect=/a"), browser.login("?redirect=/b")]
        for page, path in zip(pages, ("/a", "/b"), strict=True):
            answer = browser.callback(**issuer.authorize(page))
            assert (answer.status_code, urlsplit(answer["Location"]).path) == (302, path)


@pytest.mark.usefixtures("issuer")
class TestState:
    def test_neither_code_nor_error_is_a_400(self) -> None:
        for query in ({}, {"state": "x"}, {"code": ""}):
            assert Browser().callback(**query).status_code == 400

    def test_a_replayed_state_is_a_401(self, issuer: Issuer) -> None:
        browser = Browser()
        parameters = issuer.authorize(browser.login())
        assert browser.callback(**parameters).status_code == 302
        issuer.codes[parameters["code"]] = {}
        assert browser.callback(**parameters).status_code == 401
        assert issuer.exchanges == 1

    def test_a_state_of_another_browser_is_a_401_and_stays_good_for_its_own(self, issuer: Issuer) -> None:
        victim, attacker = Browser(), Browser()
        parameters = issuer.authorize(attacker.login())
        victim.login()
        for other in (victim, Browser()):
            assert other.callback(**parameters).status_code == 401
        assert issuer.exchanges == 0
        assert attacker.callback(**parameters).status_code == 302

    @pytest.mark.parametrize("state", ["", "x", "e30="])
    def test_a_bad_or_missing_state_is_a_401(self, issuer: Issuer, state: str) -> None:
        browser = Browser()
        browser.login()
        answer = browser.callback(code="x", state=state)
        assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized")
        assert issuer.exchanges == 0

    def test_a_refusal_of_the_provider_is_a_401_that_uses_the_state_up(self, issuer: Issuer) -> None:
        browser = Browser()
        parameters = issuer.authorize(browser.login())
        assert browser.callback(error="access_denied", state=parameters["state"]).status_code == 401
        assert browser.callback(**parameters).status_code == 401
        assert browser.callback(error="access_denied").status_code == 401


class TestPages:
    """A browser gets a refusal as a page that leads on. Programs get JSON."""

    ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

    @pytest.mark.parametrize(
        ("path", "status", "message"),
        [
            ("/auth/callback/corp?code=x&state=x", 401, "Start again."),
            ("/auth/callback?error=access_denied", 401, "Start again."),
            ("/auth/callback/corp", 400, "'code' is missing."),
            ("/auth/login?page=1", 400, "A query parameter is not known."),
        ],
    )
    def test_a_refusal_leads_back_to_signing_in(
        self, issuer: Issuer, path: str, status: int, message: str
    ) -> None:
        page = Client().get(path, headers={"Accept": self.ACCEPT})
        assert (page.status_code, page["Content-Type"]) == (status, "text/html; charset=utf-8")
        assert (page["Cache-Control"], page["Referrer-Policy"]) == ("no-store", "no-referrer")
        text = page.content.decode()
        assert html.escape(message) in text
        assert '<a class="button" href="https://dash.example.org">To the dashboard</a>' in text
        assert page["X-Request-Id"] in text
        for accept in ("*/*", "application/json", "image/png"):
            answer = Client().get(path, headers={"Accept": accept})
            assert (answer.status_code, answer["Content-Type"]) == (status, "application/json")

    def test_a_deactivated_user_gets_a_page(self, issuer: Issuer) -> None:
        User.objects.create(email="ada@example.org", is_active=False)
        browser = Browser()
        browser.client.defaults["HTTP_ACCEPT"] = self.ACCEPT
        page = browser.sign_in(issuer)
        assert page.status_code == 403
        assert "This user is deactivated." in page.content.decode()

    def test_a_fault_is_a_page_without_its_message(
        self, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise ValueError("secret")

        monkeypatch.setattr("accounts.api.signin.choose_provider", fail)
        browser = Client(raise_request_exception=False)
        page = browser.get("/auth/callback?code=x", headers={"Accept": self.ACCEPT})
        assert page.status_code == 500
        assert "The service failed to answer this request." in page.content.decode()
        assert "secret" not in page.content.decode()


class TestLies:
    """Identity tokens with false claims, by a provider or an attacker on the way."""

    @pytest.mark.parametrize(
        "claims",
        [
            {"nonce": "other"},
            {"nonce": None},
            {"aud": "another-client"},
            {"iss": "https://evil.example"},
            {"exp": 1},
            {"sub": "118"},
        ],
    )
    def test_an_id_token_that_does_not_hold_is_a_401(self, issuer: Issuer, claims: dict[str, Any]) -> None:
        issuer.claims = claims
        assert Browser().sign_in(issuer).status_code == 401
        assert not User.objects.exists()

    @pytest.mark.parametrize("seconds", [-90, 1, 90])
    def test_the_clock_of_the_provider_may_differ_by_two_minutes(
        self, issuer: Issuer, seconds: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        now = int(time.time())
        issuer.claims = {"iat": now + seconds, "nbf": now + seconds, "exp": now + seconds + 60}
        assert Browser().sign_in(issuer).status_code == 302
        issuer.claims = {"iat": now + 200, "exp": now + 300}
        assert Browser().sign_in(issuer).status_code == 401
        assert "The token is not yet valid (iat)" in caplog.text
        issuer.claims = {"iat": now - 300, "exp": now - 200}
        assert Browser().sign_in(issuer).status_code == 401
        assert "Signature has expired" in caplog.text

    def test_an_id_token_of_another_key_is_a_401(self, issuer: Issuer) -> None:
        issuer.signing_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        assert Browser().sign_in(issuer).status_code == 401

    def test_an_unsigned_id_token_is_a_401(self, issuer: Issuer) -> None:
        issuer.signing_key, issuer.algorithm = None, "none"
        assert Browser().sign_in(issuer).status_code == 401

    def test_an_id_token_signed_with_the_public_key_as_a_secret_is_a_401(self, issuer: Issuer) -> None:
        issuer.signing_key, issuer.algorithm = "n" * 64, "HS256"
        assert Browser().sign_in(issuer).status_code == 401

    def test_the_address_of_another_provider_is_a_401(self, issuer: Issuer) -> None:
        browser = Browser()
        proof = issuer.authorize(browser.login())
        answer = browser.callback("google", **proof)
        assert (answer.status_code, answer.json()["message"]) == (
            401,
            "The sign-in was begun at another identity provider. Start again.",
        )
        assert issuer.exchanges == 0
        assert browser.callback("corp", **proof).status_code == 401

    def test_the_address_without_a_provider_still_works(self, issuer: Issuer) -> None:
        browser = Browser()
        proof = issuer.authorize(browser.login())
        answer = browser.client.get(f"/auth/callback?{urlencode(proof)}")
        assert (answer.status_code, "access_token=" in answer["Location"]) == (302, True)

    @pytest.mark.parametrize("supported", [False, True])
    def test_an_answer_of_another_issuer_is_a_401(self, issuer: Issuer, supported: bool) -> None:
        issuer.metadata["authorization_response_iss_parameter_supported"] = supported
        browser = Browser()
        for named in ("https://evil.example", f"{issuer.url}/", ""):
            proof = issuer.authorize(browser.login())
            assert browser.callback(**proof, iss=named).status_code == 401
        assert issuer.exchanges == 0
        proof = issuer.authorize(browser.login())
        assert browser.callback(**proof, iss=issuer.url).status_code == 302
        # Who always names itself, does so now.
        assert browser.sign_in(issuer).status_code == (401 if supported else 302)

    def test_an_exchange_that_fails_is_a_401(self, issuer: Issuer) -> None:
        browser = Browser()
        parameters = issuer.authorize(browser.login())
        answer = browser.callback(code="another", state=parameters["state"])
        assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized")

    def test_a_provider_that_fails_in_between_is_a_401(self, issuer: Issuer) -> None:
        browser = Browser()
        parameters = issuer.authorize(browser.login())
        issuer.status = 500
        assert browser.callback(**parameters).status_code == 401


class TestKnownProviders:
    def test_google(self, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(google.GoogleOAuth2Adapter, "access_token_url", f"{issuer.url}/token")
        monkeypatch.setattr(google, "ID_TOKEN_ISSUER", issuer.url)
        monkeypatch.setattr(google, "CERTS_URL", f"{issuer.url}/keys")
        monkeypatch.setattr(google.jwtkit, "lookup_kid_pem_x509_certificate", google.jwtkit.lookup_kid_jwk)
        assert Browser().sign_in(issuer, "?provider=google").status_code == 302
        assert User.objects.get().identity_provider == "google"
        issuer.claims = {"nonce": "other"}
        assert Browser().sign_in(issuer, "?provider=google").status_code == 401

    def test_github_takes_the_verified_address(self, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(GitHubOAuth2Adapter, "access_token_url", f"{issuer.url}/token")
        monkeypatch.setattr(GitHubOAuth2Adapter, "profile_url", f"{issuer.url}/user")
        monkeypatch.setattr(GitHubOAuth2Adapter, "emails_url", f"{issuer.url}/user/emails")
        issuer.user = {"id": 42, "login": "ada", "name": "Ada", "email": "public@example.org"}
        issuer.emails = [
            {"email": "public@example.org", "verified": False, "primary": True},
            {"email": "second@example.org", "verified": True, "primary": False},
        ]
        assert Browser().sign_in(issuer, "?provider=github").status_code == 302
        user = User.objects.get()
        assert (user.email, user.identity_provider, user.identity_subject) == (
            "second@example.org",
            "github",
            "42",
        )
        issuer.emails = [{"email": "public@example.org", "verified": False, "primary": True}]
        assert Browser().sign_in(issuer, "?provider=github").status_code == 401
        issuer.emails = [{"email": "\u212aate@example.org", "verified": True, "primary": True}]
        assert Browser().sign_in(issuer, "?provider=github").status_code == 401

    def test_microsoft_verifies_the_addresses_of_one_directory(self, issuer: Issuer, settings: Any) -> None:
        issuer.user = {"id": "m-1", "displayName": "Ada", "mail": "ada@example.org"}
        assert Browser().sign_in(issuer, "?provider=microsoft").status_code == 302
        assert User.objects.get().display_name == "Ada"
        settings.SOCIALACCOUNT_PROVIDERS["microsoft"]["APPS"][0]["settings"]["verified_email"] = False
        assert Browser().sign_in(issuer, "?provider=microsoft").status_code == 401


@pytest.mark.django_db(transaction=True)
def test_two_first_callbacks_at_once_provision_exactly_once(issuer: Issuer) -> None:
    for number in range(3):
        issuer.user.update(sub=str(number), email=f"u{number}@example.org")
        browsers = [Browser() for _ in range(4)]
        calls = [partial(browser.callback, **issuer.authorize(browser.login())) for browser in browsers]
        assert {answer.status_code for answer in at_once(calls)} == {302}
        assert (User.objects.count(), Account.objects.count(), Tenant.objects.count()) == (number + 1,) * 3
