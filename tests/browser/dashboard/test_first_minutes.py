"""From the sign-in to a Parquet file, and how a session begins and ends."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pyarrow.parquet as pq
import pytest
from django.db import connection
from playwright.sync_api import expect

from accounts.models import Membership, PersonalAccessToken, RefreshToken
from analytics.replay.execution import run_next
from tenantadmin.lib.core.formats import span
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.browser.dashboard.demo import at_both_origins
from tests.browser.dashboard.signing_in import sign_in
from tests.browser.dashboard.watching import edit, watched_dashboard

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

    from tests.browser.dashboard.demo import Demo

pytestmark = pytest.mark.browser


@contextmanager
def running_replays(tenant: str) -> Iterator[None]:
    """Run the replays of a tenant, as a worker does, until the block ends."""
    is_over = threading.Event()

    def work() -> None:
        while not is_over.wait(0.2):
            run_next(default_store(), tenant_id=UUID(tenant))
        connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        is_over.set()
        worker.join()


def newest_link(folder: str) -> str:
    newest = max(Path(folder).iterdir(), key=lambda path: path.stat().st_mtime)
    found = re.search(r"http\S+verify\S+", newest.read_text())
    assert found is not None
    return found[0]


@at_both_origins
def test_from_the_sign_in_to_a_parquet_file(
    demo: Demo, browser: Browser, service: str, home: str, settings: Any, tmp_path: Path
) -> None:
    settings.EMAIL_BACKEND = "tenantadmin.mail.PrivateFileBackend"
    settings.EMAIL_FILE_PATH = str(tmp_path / "mail")
    # Each origin has a newcomer of its own, who publishes another number.
    number = len(home)
    newcomer = factories.make_user(f"newcomer-{number}@example.org")
    Membership.objects.create(user=newcomer, tenant_id=demo.tenant, role="owner")
    with watched_dashboard(browser, home=home, api=service) as dashboard, running_replays(demo.tenant):
        page = dashboard.page
        page.goto(home)
        page.fill("input[name=email]", newcomer.email)
        page.click("text=Mail me a sign-in link")
        page.wait_for_selector("text=Check your mail.")
        page.wait_for_selector("text=Mail another link")
        page.goto(newest_link(settings.EMAIL_FILE_PATH))
        page.click("button")
        page.wait_for_selector("text=Accept and go on")
        assert page.url == f"{home}#/terms"
        page.click("text=Accept and go on")

        # The only tenant opens by itself.
        page.wait_for_selector("h1:has-text('Overview')")
        dashboard.settle()

        page.click("nav >> text=Drafts and replay")
        page.click("text=New draft")
        edit(page, lambda text: re.sub(r'"ttlSeconds": \d+', f'"ttlSeconds": {600 + number}', text, count=1))
        page.click("main >> text=Replay >> nth=0")
        page.fill("dialog input[name=from]", demo.last_day.isoformat())
        page.fill("dialog input[name=to]", demo.last_day.isoformat())
        page.click("dialog .primary")
        page.wait_for_selector("text=What publishing costs", timeout=60_000)
        assert page.locator("[aria-label='By rule'] tbody tr").count() > 5
        page.click("text=Review and publish")
        page.wait_for_selector("dialog td.now")
        assert span(600 + number) in page.locator("dialog td.now").all_inner_texts()
        page.click("dialog .primary")
        page.wait_for_selector("text=is in force.")

        page.click("nav >> text=SQL")
        page.click("main >> button:has-text('Run')")
        page.wait_for_selector("[aria-label=Result] tbody tr")
        rows = page.locator("[aria-label=Result] tbody tr").count()
        with page.expect_download() as saved:
            page.click("text=Parquet")
        saved.value.save_as(tmp_path / "rows.parquet")
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == rows > 1


def test_signing_out_ends_the_session_and_its_token(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, home, f"/t/{demo.tenant}/overview") as dashboard:
        page = dashboard.page
        assert "token" not in page.url
        page.click("text=Sign out")
        page.wait_for_selector("text=Mail me a sign-in link")
        page.wait_for_selector("text=You are signed out.")
        assert page.evaluate("Object.keys(sessionStorage)") == []
        dashboard.go(f"/t/{demo.tenant}/rules")
        assert page.url.endswith(f"#/signin?to=%2Ft%2F{demo.tenant}%2Frules")
        expect(page.get_by_role("button", name="Mail me a sign-in link")).to_be_visible()
    assert not PersonalAccessToken.objects.filter(name__startswith="Dashboard", revoked_at=None).exists()
    assert RefreshToken.objects.filter(user=demo.owner).latest("pk").revoked_at is not None


def test_an_access_token_is_renewed_before_it_expires(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, home) as dashboard:
        page = dashboard.page
        page.evaluate(
            "() => { const key = 'dashboard.session'; const held = JSON.parse(sessionStorage.getItem(key));"
            " sessionStorage.setItem(key, JSON.stringify({...held, expiresAt: Date.now() + 1000})); }"
        )
        del dashboard.asked[:]
        page.reload()
        page.wait_for_selector("tbody tr")
        assert dashboard.asked[:4] == [
            "POST /oauth/token",
            "GET /users/me",
            "GET /config/tenants/manifest?includeDeleted=true",
            "GET /users/me/invitations",
        ]


def test_calls_that_are_refused_together_share_one_new_token(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    refused: list[str] = []

    def refuse_once(route: Route) -> None:
        if (url := route.request.url) in refused:
            return route.continue_()
        refused.append(url)
        return route.fulfill(status=401, json={"error": "invalid_token", "message": "It has ended."})

    with open_as(demo.owner, home) as dashboard:
        dashboard.page.route("**/users/me/*", refuse_once)
        del dashboard.asked[:]
        dashboard.go("/account")
    parts = [f"GET /users/me/{name}" for name in ("digests", "sessions", "tokens")]
    assert sorted(dashboard.asked[:3]) == sorted(dashboard.asked[4:]) == parts
    assert dashboard.asked[3] == "POST /oauth/token"


def test_a_failure_has_one_sentence_and_the_request(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, home, f"/t/{demo.tenant}/replays/{demo.tenant}") as dashboard:
        alert = dashboard.page.locator("[role=alert]")
        alert.wait_for()
        assert re.search(r"^[A-Z].*\.\n+Request [A-Za-z0-9]+\n+Try again$", alert.inner_text())


def test_a_busy_service_is_asked_again(demo: Demo, home: str, open_as: Callable[..., Any]) -> None:
    with open_as(demo.owner, home) as dashboard:
        page = dashboard.page
        page.evaluate(
            "() => { const real = fetch; const refusals = [429, 503]; globalThis.refusals = refusals;"
            " globalThis.fetch = (...asked) => refusals.length"
            " ? Promise.resolve(new Response('', {status: refusals.shift(), headers: {'Retry-After': '1'}}))"
            " : real(...asked); }"
        )
        dashboard.go(f"/t/{demo.tenant}/history")
        page.wait_for_selector("h2:has-text('Revision ')")
        assert page.evaluate("refusals") == []
        assert page.locator("[role=alert]").count() == 0


def test_tokens_of_a_sign_in_from_elsewhere_are_asked_about(
    demo: Demo, home: str, browser: Browser, service: str
) -> None:
    with watched_dashboard(browser, home=home, api=service) as dashboard:
        tab = dashboard.page
        for taken in (False, True):
            tab.goto(f"{home}?{sign_in(demo.owner)}#/account")
            tab.wait_for_selector(f"text=Continue as {demo.owner.email}?")
            assert "token" not in tab.url
            assert tab.evaluate("sessionStorage.length") == 0
            tab.click(".primary" if taken else "text=Do not sign in")
            tab.wait_for_selector("text=Your account" if taken else "text=Mail me a sign-in link")
        # The tab takes tokens of the same user, and no tokens of another user.
        tab.goto(f"{home}?{sign_in(demo.owner)}#/")
        tab.wait_for_selector("tbody tr")
        tab.goto(f"{home}?{sign_in(demo.member)}#/")
        tab.click(f"text=Stay {demo.owner.email}")
        tab.wait_for_selector("tbody tr")
        assert demo.owner.display_name in tab.inner_text("aside.side")


def test_an_act_that_needs_a_second_factor_leads_to_it_and_asks_why(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, home, "/account") as dashboard:
        page = dashboard.page
        reasons: list[str | None] = []
        refusals = [
            {"error": "second_factor_required", "message": "Prove it.", "requestId": "x"},
            {
                "error": "second_factor_required",
                "message": "Say why.",
                "details": [{"path": "/X-Reason", "code": "missing-reason", "message": "Why?"}],
                "requestId": "x",
            },
        ]

        def refuse(route: Any) -> None:
            reason = route.request.headers.get("x-reason")
            if route.request.method != "OPTIONS":
                reasons.append(reason)
            if route.request.method == "OPTIONS" or reason:
                route.fallback()
            else:
                route.fulfill(status=403, json=refusals[0], headers={"Access-Control-Allow-Origin": "*"})

        page.route(lambda address: address.endswith("/users/me/sessions"), refuse)
        page.route("**/auth/step-up?*", lambda route: route.fulfill(body="Second factor"))
        page.on("dialog", lambda dialog: dialog.accept("ticket 42: löschen"))
        page.evaluate("() => { setTimeout(() => location.reload()); }")
        page.wait_for_url("**/auth/step-up?*")
        assert parse_qs(urlsplit(page.url).query) == {"redirect": [f"{home}#/account"]}
        assert reasons == [None]
        del refusals[0], reasons[:]
        page.goto(f"{home}#/account")
        page.wait_for_selector("text=Your account")
        assert reasons == [None, "ticket%2042%3A%20l%C3%B6schen"]


def test_an_act_goes_on_after_the_second_factor_is_proven(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    invitations, proven = f"/config/tenants/{demo.tenant}/invitations", sign_in(demo.owner)
    with open_as(demo.owner, home, f"/t/{demo.tenant}/members") as dashboard:
        page = dashboard.page
        sent: list[tuple[str, str | None]] = []

        def refuse_twice(route: Any) -> Any:
            if route.request.method != "POST":
                return route.fallback()
            reason = route.request.headers.get("x-reason")
            sent.append((route.request.post_data, reason))
            if reason:
                return route.fallback()
            body: dict[str, Any] = {
                "error": "second_factor_required",
                "message": "Prove it.",
                "requestId": "x",
            }
            if len(sent) > 1:
                body["details"] = [{"path": "/X-Reason", "code": "missing-reason", "message": "Why?"}]
            return route.fulfill(status=403, json=body, headers={"Access-Control-Allow-Origin": "*"})

        def prove(route: Any) -> None:
            [target] = parse_qs(urlsplit(route.request.url).query)["redirect"]
            before, _, after = target.partition("#")
            route.fulfill(status=302, headers={"Location": f"{before}?{proven}#{after}"})

        page.route(lambda address: address.endswith(invitations), refuse_twice)
        page.route("**/auth/step-up?*", prove)
        page.on("dialog", lambda dialog: dialog.accept("ticket 42"))
        page.click("text=Invite someone")
        page.fill("[name=email]", "goes.on@example.org")
        page.click("dialog button:has-text('Invite')")
        page.wait_for_selector("text=Done: what you began before.")
        page.wait_for_selector("td:has-text('goes.on@example.org')")
        assert [json.loads(body)["email"] for body, _ in sent] == ["goes.on@example.org"] * 3
        assert [reason for _, reason in sent] == [None, None, "ticket%2042"]
        assert page.url == f"{home}#/t/{demo.tenant}/members"
        # It is made once, and not again with the next sign-in.
        page.reload()
        page.wait_for_selector("td:has-text('goes.on@example.org')")
        assert len(sent) == 3
        page.click("tr:has-text('goes.on@example.org') button:has-text('Withdraw')")
        page.wait_for_selector("text=Withdrawn: goes.on@example.org.")
