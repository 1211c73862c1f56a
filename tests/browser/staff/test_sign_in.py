"""Signing in to the admin site in a browser: provider, link, authenticator app, passkey, recovery code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from allauth.mfa.models import Authenticator

from accounts.signin.staff.enrolment import enrolment_link
from tests import factories
from tests.accounts.support import running_inbox
from tests.admin.staff import code_of
from tests.browser.browsing import browsing, requested_hosts
from tests.browser.provider import EMAIL, PASSWORD

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from accounts.models import User

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
STAFF_PASSWORD = "something else entirely"


@pytest.fixture
def site(service: str, settings: Any) -> str:
    """The service under a host name for which browsers make passkeys. A second factor is required."""
    settings.STAFF_SECOND_FACTOR = True
    settings.PUBLIC_BASE_URL = service.replace("127.0.0.1", "localhost")
    return str(settings.PUBLIC_BASE_URL)


@pytest.fixture
def ada(service: str) -> User:
    user = factories.make_user(EMAIL, role="admin")
    user.set_password(STAFF_PASSWORD)
    user.save()
    return user


def enter_password(page: Page, site: str) -> None:
    page.goto(f"{site}/admin/")
    page.click("summary")
    page.fill("input[name=username]", EMAIL)
    page.fill("input[name=password]", STAFF_PASSWORD)
    page.click("#login-form button[type=submit]")


def sign_out(page: Page) -> None:
    page.click("#nav-sidebar [x-on\\:click*=openUserLinks]")
    page.click("#logout-form button")
    page.wait_for_selector("#passkey_login")
    # Its script listens then.
    page.wait_for_load_state()


def enter_code(page: Page, code: str) -> None:
    page.fill("input[name=code]", code)
    page.click("button[type=submit] >> nth=0")


def is_on_the_first_page(page: Page, site: str) -> bool:
    page.wait_for_url(f"{site}/admin/")
    return "Home" in page.inner_text("h1")


def test_an_authenticator_app_and_a_recovery_code(chromium: str, site: str, ada: User) -> None:
    with browsing(chromium) as page:
        hosts = requested_hosts(page)
        page.goto(enrolment_link(ada))
        enter_password(page, site)
        # Without a second factor there is one page to go to.
        page.wait_for_url("**/admin/account/second-factor/")
        page.click("a[href$='/totp/activate/']")
        page.wait_for_function("document.querySelector('img')?.naturalWidth > 0")
        secret = page.input_value("#authenticator_secret")
        enter_code(page, code_of(secret))
        # The new factor is proven once before anything else.
        page.wait_for_url("**/reauthenticate/**")
        enter_code(page, code_of(secret))
        page.wait_for_url("**/recovery-codes/")
        codes = page.input_value("#recovery_codes").split()
        assert len(codes) == 10
        page.goto(f"{site}/admin/")
        assert is_on_the_first_page(page, site)
        sign_out(page)

        enter_password(page, site)
        page.wait_for_url("**/authenticate/")
        enter_code(page, "00000000")
        page.wait_for_selector(".errorlist")
        enter_code(page, codes[0])
        assert is_on_the_first_page(page, site)
        assert hosts == {site.removeprefix("http://")}


def test_a_passkey_as_second_factor_and_alone(chromium: str, site: str, ada: User) -> None:
    with browsing(chromium) as page:
        devtools = page.context.new_cdp_session(page)
        devtools.send("WebAuthn.enable")
        devtools.send(
            "WebAuthn.addVirtualAuthenticator",
            {
                "options": {
                    "protocol": "ctap2",
                    "transport": "internal",
                    "hasResidentKey": True,
                    "hasUserVerification": True,
                    "isUserVerified": True,
                    "automaticPresenceSimulation": True,
                }
            },
        )
        page.goto(enrolment_link(ada))
        enter_password(page, site)
        page.click("a[href$='/webauthn/add/']")
        page.wait_for_url("**/webauthn/add/")
        page.fill("input[name=name]", "laptop")
        page.check("input[name=passwordless]")
        page.click("#mfa_webauthn_add")
        page.wait_for_url("**/webauthn/reauthenticate/**")
        page.click("#mfa_webauthn_reauthenticate")
        page.wait_for_url("**/recovery-codes/")
        page.goto(f"{site}/admin/")
        assert is_on_the_first_page(page, site)
        sign_out(page)

        enter_password(page, site)
        page.wait_for_url("**/authenticate/")
        page.click("#mfa_webauthn_authenticate")
        assert is_on_the_first_page(page, site)
        sign_out(page)

        # It has verified the user itself: both factors at once.
        page.click("#passkey_login")
        assert is_on_the_first_page(page, site)
    assert Authenticator.objects.get(type="webauthn").wrap().name == "laptop"


def test_an_identity_provider(chromium: str, service: str, provider: str, settings: Any, ada: User) -> None:
    with browsing(chromium) as page:
        page.goto(f"{service}/admin/")
        page.click("text=Sign in with corp")
        page.wait_for_url(f"{provider}/**")
        page.fill("input[name=login]", EMAIL)
        page.fill("input[name=password]", PASSWORD)
        page.click("button[type=submit]")
        page.click("button[name=action][value=grant]")
        assert is_on_the_first_page(page, service)
        page.goto(f"{service}/admin/account/")
        assert "You sign in through corp." in page.inner_text("#content")
    ada.refresh_from_db()
    assert ada.identity_provider == "corp"


def test_a_mailed_link(chromium: str, service: str, settings: Any, ada: User) -> None:
    with running_inbox() as inbox, browsing(chromium) as page:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", inbox.port
        page.goto(f"{service}/admin/")
        page.fill("#link-email", EMAIL)
        page.click("text=Mail me a sign-in link")
        page.wait_for_selector("text=A link is on its way")
        page.goto(inbox.link())
        page.click("button:has-text('Sign in')")
        assert is_on_the_first_page(page, service)
        page.goto(f"{service}/admin/accounts/user/{ada.pk}/change/")
        page.click("text=Make support")
        page.wait_for_selector("#reason")
        page.goto(f"{service}/admin/accounts/user/")
        page.wait_for_selector("#result_list")
