"""A Chromium with one page."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

#: What Chromium and htmx say of an answer such as 401, which tests assert themselves.
_ANSWERED: Final = (
    "Failed to load resource: the server responded with a status of 4",
    "Response Status Error Code 4",
)

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium() -> str | None:
    """Return the browser's path: `CHROMIUM`, or the first known name that is installed."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


def find_prettier() -> str | None:
    """Return the path of Prettier: where ``make browser`` installs it, or another."""
    ours = Path(__file__).parents[2] / ".cache" / "prettier" / "node_modules" / ".bin" / "prettier"
    return str(ours) if ours.exists() else shutil.which("prettier")


@contextmanager
def launched(chromium: str) -> Iterator[Browser]:
    """Start the browser and stop it at the end."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as home:
        browser = playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-background-networking", "--no-first-run"],
            env={**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home},
        )
        try:
            yield browser
        finally:
            browser.close()


#: Says what of a page is off to the side, which texts are cut or folded nearly letter by letter, which words
#: of tables are broken, and which columns of text are narrow beside free space.
#: The SQL result of a page may be wider than its place, which scrolls.
FAULTS_OF_WIDTH = """of => {
    const name = (it) => `${it.tagName.toLowerCase()}.${it.className} “${it.innerText.slice(0, 40)}”`;
    const faults = document.documentElement.scrollWidth > innerWidth ? ["the page"] : [];
    const kinds = "h1, h2, h3, dt, dd, th, td, a, p, li, button, label, code";
    for (const it of document.querySelectorAll(`${of} :is(${kinds})`)) {
        if (!it.clientWidth || !it.checkVisibility({visibilityProperty: true})) continue;
        if (it.closest(".result, .sr-only, .hidden")) continue;
        const {overflowX, textOverflow, display} = getComputedStyle(it);
        const isCut = it.scrollWidth > it.clientWidth + 1 && !/auto|scroll/.test(overflowX);
        if (isCut && (textOverflow !== "ellipsis" || it.clientWidth < 60)) {
            faults.push(`${name(it)} is cut: ${it.scrollWidth} in ${it.clientWidth}`);
        }
        const isNarrow = display === "table-cell" && it.clientWidth < 50 && it.clientHeight > 100;
        if (isNarrow && it.innerText.trim().length > 6) faults.push(`${name(it)} is folded`);
    }
    const range = document.createRange();
    const broken = (it) => {
        const texts = document.createTreeWalker(it, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) {
            for (const word of texts.currentNode.data.matchAll(/(?<!\\S)\\p{L}{2,12}(?!\\S)/gu)) {
                range.setStart(texts.currentNode, word.index);
                range.setEnd(texts.currentNode, word.index + word[0].length);
                if (new Set([...range.getClientRects()].map((it) => it.top)).size > 1) return word[0];
            }
        }
    };
    const room = (it) => {
        const {paddingLeft, paddingRight} = getComputedStyle(it);
        return it.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    };
    const free = (it) => {
        range.selectNodeContents(it);
        return room(it) - range.getBoundingClientRect().width;
    };
    for (const row of document.querySelectorAll(`${of} tr`)) {
        if (row.closest(".result, .hidden, [aria-label=Result]")) continue;
        const isCell = (it) => it.clientWidth && getComputedStyle(it).display === "table-cell";
        const cells = [...row.cells].filter(isCell);
        for (const it of cells) {
            if (broken(it)) faults.push(`${name(it)}: “${broken(it)}” is broken`);
            const twelve = 6 * parseFloat(getComputedStyle(it).fontSize);
            const isNarrow = it.innerText.length > 24 && it.clientHeight > 60 && room(it) < twelve;
            if (isNarrow && cells.some((other) => free(other) > 40)) {
                faults.push(`${name(it)} is ${room(it)} wide beside free space`);
            }
        }
    }
    const boxes = `${of} :is(.panel, .wide, .table)`;
    for (const it of document.querySelectorAll(`${boxes}:not(:has(.result), [aria-label=Result])`)) {
        const isWide = it.innerText && it.scrollWidth > it.clientWidth;
        if (isWide) faults.push(`${name(it)}: ${it.scrollWidth} in ${it.clientWidth}`);
    }
    return faults;
}"""
WIDTHS = (1280, 1024, 768, 390)


def pass_frames(page: Page) -> None:
    """Let the page do what it has begun: two frames pass."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


#: The page learns its width some time later, and its tables fit in the frame after that.
_HAS_WIDTH = """width => new Promise((done) => {
    const look = () => requestAnimationFrame(innerWidth === width ? () => requestAnimationFrame(done) : look);
    look();
})"""


def resize(page: Page, width: int) -> None:
    """Give the window this width, and wait until the page's tables fit."""
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate(_HAS_WIDTH, width)


def faults_of_width(page: Page, of: str) -> dict[int, list[str]]:
    """Return what does not fit in the part that ``of`` selects, by the width of the window.

    The window has its own size again afterwards.
    """
    own = page.viewport_size
    assert own is not None
    found = {}
    for width in WIDTHS:
        resize(page, width)
        if faults := page.evaluate(FAULTS_OF_WIDTH, of):
            found[width] = faults
    page.set_viewport_size(own)
    page.evaluate(_HAS_WIDTH, own["width"])
    return found


@contextmanager
def opened_page(browser: Browser, **context: Any) -> Iterator[Page]:
    """Open a page in a new context with these options; fail at the end if it has reported an error."""
    page = browser.new_page(**context)
    try:
        problems: list[str] = []
        answers: deque[str] = deque(maxlen=20)
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("response", lambda answer: answers.append(f"{answer.status} {answer.url}"))
        page.on("requestfailed", lambda request: answers.append(f"{request.failure} {request.url}"))
        try:
            yield page
        except Exception as error:
            for said in (f"Last answers: {list(answers)}", f"Reported: {problems}"):
                error.add_note(said)
            error.add_note(f"{page.url} shows:\n{page.inner_text('body')[:4000]}")
            raise
        # A violation of the Content-Security-Policy is one.
        unexpected = [problem for problem in problems if not problem.startswith(_ANSWERED)]
        assert not unexpected, unexpected
    finally:
        page.close()


_running: dict[str, Browser] = {}


@contextmanager
def shared_browser(chromium: str) -> Iterator[Browser]:
    """Start the browser, and let `browsing` use it until the end."""
    with launched(chromium) as browser:
        _running[chromium] = browser
        yield browser
        del _running[chromium]


@contextmanager
def browsing(chromium: str, **context: Any) -> Iterator[Page]:
    """Open a page as `opened_page` does, in the browser that is kept or in one of its own."""
    with ExitStack() as stack:
        browser = _running.get(chromium) or stack.enter_context(launched(chromium))
        yield stack.enter_context(opened_page(browser, **context))


def requested_hosts(page: Page) -> set[str]:
    """Return the set that collects the hosts of all requests of ``page`` from now on."""
    hosts: set[str] = set()

    def note(request: Request) -> None:
        if not request.url.startswith("data:"):
            hosts.add(urlsplit(request.url).netloc)

    page.on("request", note)
    return hosts


def type_sql(page: Page, editor: str) -> None:
    """Type statements into the editor of SQL: only a word that was chosen takes the place of what was typed.

    ``editor`` is JavaScript for Ace's editor.
    """
    sql = (
        "SELECT matchedRule, count(*) AS n\nFROM proxy_logs\nWHERE cacheStatus = 'HIT'"
        "\nGROUP BY day\nORDER BY 2 desc\nLIMIT 5"
    )
    # The list has followed all letters.
    listed = ".ace_autocomplete:visible .ace_completion-highlight:text-is('cacheSt')"
    for text, keys, typed in (
        (sql, (), sql),
        ("SELECT cacheSt", ("Tab", "Enter"), "SELECT cacheStatus"),
        ("SELECT cacheSt", ("ArrowDown", "Enter"), "SELECT cacheStatus"),
        ("SELECT cacheSt", ("Escape", "Control+Space", "Enter"), "SELECT cacheStatus"),
        # The list that opens by itself after one that was asked for has nothing chosen, either.
        ("SELECT cacheSt", ("Enter",), "SELECT cacheSt\n"),
    ):
        page.evaluate(f"() => {{ {editor}.setValue(''); {editor}.focus(); }}")
        page.keyboard.type(text)
        for key in keys:
            if key != "Control+Space":
                page.wait_for_selector(listed)
            page.keyboard.press(key)
        assert page.evaluate(f"{editor}.getValue()") == typed
