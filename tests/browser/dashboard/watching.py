"""The dashboard in a Chromium, and its requests held against the contract."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from openapi_schema_validator import OAS30Validator

from tests.browser.browsing import opened_page, pass_frames
from tests.browser.dashboard.contract_types import contract

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

_WATCH: Final = (Path(__file__).parent / "contract_watch.js").read_text()
CONTRACT: Final = contract()
_PATTERNS: Final = sorted(
    (
        (re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))), operations)
        for path, operations in CONTRACT["paths"].items()
    ),
    key=lambda entry: len(entry[0].pattern.replace("[^/]+", "")),
    reverse=True,
)
#: To another page of the dashboard: until it has left the page before.
_GO: Final = """address => new Promise((done) => {
    if (new URL(address).href === location.href) return done();
    addEventListener("hashchange", () => done(), {once: true});
    location.href = address;
})"""
_BACK: Final = """() => new Promise((done) => {
    addEventListener("hashchange", () => done(), {once: true});
    history.back();
})"""


@dataclass
class Watched:
    """What a page asked of the service: ``GET /users/me``, and what of it the contract does not have."""

    page: Page
    home: str
    asked: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        """Open a page of the dashboard and wait until all of it is there."""
        address = f"{self.home}#{path}"
        if self.page.url.partition("#")[0] == self.home:
            self.page.evaluate(_GO, address)
        else:
            self.page.goto(address)
        self.settle()

    def back(self) -> None:
        """Go back to the page of the dashboard before, and wait until all of it is there."""
        self.page.evaluate(_BACK)
        self.settle()

    def settle(self) -> None:
        """Wait until the page is there, and what it asked for has come and is shown."""
        # A link that was clicked is followed before.
        pass_frames(self.page)
        self.page.wait_for_selector("html:not([data-asks]) #view:not(:has(.skeleton)) > *")


def misuse_of(request: Request, *, api: str) -> str:
    """Return how a request to the service leaves the contract, or ''."""
    url = urlsplit(request.url)
    name = f"{request.method} {url.path}"
    found = next(
        (
            operations[request.method.lower()]
            for pattern, operations in _PATTERNS
            if pattern.fullmatch(url.path) and request.method.lower() in operations
        ),
        None,
    )
    if found is None:
        return f"{name} is no operation"
    known = {parameter["name"] for parameter in found.get("parameters", []) if parameter["in"] == "query"}
    if unknown := [key for key, _ in parse_qsl(url.query) if key not in known]:
        return f"{name} has no parameters {unknown}"
    if found["operationId"] == "validateRules":
        # Its point is to be sent what people type.
        return ""
    if (body := found.get("requestBody")) and request.post_data:
        schema = {**body["content"]["application/json"]["schema"], "components": CONTRACT["components"]}
        errors = [
            error.message for error in OAS30Validator(schema).iter_errors(json.loads(request.post_data))
        ]
        return f"{name}: {errors[0]}" if errors else ""
    return f"{name} takes no body" if request.post_data and not body else ""


@contextmanager
def watched_dashboard(browser: Browser, *, home: str, api: str, **context: Any) -> Iterator[Watched]:
    """Open a page for the dashboard at ``home``, whose service is at ``api``.

    At the end it fails if the page reported an error, if its policy was violated, if it asked another host,
    or if a request or a field that it read is not in the contract.
    """
    with opened_page(browser, **context) as page:
        watched = Watched(page, home)
        page.add_init_script(f"{_WATCH}({json.dumps({'contract': CONTRACT, 'api': api})})")

        def note(request: Request) -> None:
            url = urlsplit(request.url)
            origin = f"{url.scheme}://{url.netloc}"
            if request.resource_type != "fetch":
                # Pages, scripts and styles.
                if not request.url.startswith(("data:", f"{api}/", home)):
                    watched.foreign.append(request.url)
            elif origin != api:
                watched.foreign.append(request.url)
            elif request.method != "OPTIONS":
                watched.asked.append(f"{request.method} {url.path}" + (f"?{url.query}" if url.query else ""))
                if misuse := misuse_of(request, api=api):
                    watched.foreign.append(misuse)

        page.on("request", note)
        yield watched
        # The service still works for a page that is closed.
        page.wait_for_selector("html:not([data-asks])", state="attached")
        assert not watched.foreign, watched.foreign


def edit(page: Any, change: Callable[[str], str]) -> None:
    """Change the text of the editor of the page, as typing does."""
    page.wait_for_selector(".ace_editor")
    text = page.evaluate("ace.edit(document.querySelector('.ace_editor')).getValue()")
    page.evaluate("text => ace.edit(document.querySelector('.ace_editor')).setValue(text, -1)", change(text))
