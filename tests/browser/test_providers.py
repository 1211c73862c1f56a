"""Sign in through two real OpenID providers whose clocks are wrong. ``make test-providers`` installs one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser.browsing import browsing
from tests.browser.provider import EMAIL, PASSWORD
from tests.browser.providers import running_provider
from tests.browser.signing_in import LANDING, read_profile, tokens_of

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("seconds_ahead", [-90, 90])
@pytest.mark.parametrize("name", ["allauth", "oidc-provider"])
def test_a_clock_may_be_90_seconds_wrong(
    chromium: str, service: str, settings: Any, tmp_path: Path, name: str, seconds_ahead: int
) -> None:
    running = running_provider(name, service, settings, tmp_path, seconds_ahead=seconds_ahead)
    with running as provider, browsing(chromium) as page:
        # The pages of oidc-provider load fonts and pictures from other hosts.
        page.route(re.compile("^https:"), lambda route: route.fulfill(body=""))
        page.goto(f"{service}/auth/login?redirect={LANDING}")
        assert page.url.startswith(provider)
        page.fill("input[name=login]", EMAIL)
        page.fill("input[name=password]", PASSWORD)
        page.click("button[type=submit]")
        page.click("button[name=action][value=grant]" if name == "allauth" else "button[type=submit]")
        tokens = tokens_of(page)
    assert read_profile(tokens)["displayName"] == "Ada Lovelace"
