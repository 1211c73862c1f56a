"""What holds the dashboard against the contract finds a page that leaves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.dashboard.watching import watched_dashboard

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.browser.dashboard.demo import Demo

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("fetch(api + '/users/me/nothing')", "GET /users/me/nothing is no operation"),
        ("fetch(api + '/auth/providers?colour=red')", r"/auth/providers has no parameters \['colour'\]"),
        (
            "fetch(api + '/auth/providers').then((answer) => answer.json()).then((body) => body.nothing)",
            r"NOT IN THE CONTRACT: \w+ 200\.nothing",
        ),
    ],
)
def test_a_page_that_leaves_the_contract_fails(
    demo: Demo, browser: Browser, service: str, home: str, expression: str, problem: str
) -> None:
    def open_page() -> None:
        with watched_dashboard(browser, home=home, api=service) as dashboard:
            dashboard.page.goto(home)
            dashboard.page.evaluate(f"(api) => {expression}.then(() => null)", service)

    with pytest.raises(AssertionError, match=problem):
        open_page()
