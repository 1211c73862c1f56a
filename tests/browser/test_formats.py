"""The dashboard formats values as Python does: the cases of `tests/*.json`, and random values."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

import pytest

from tenantadmin.lib.core import formats
from tenantadmin.lib.core.json_lines import JsonFault, read_lines
from tests.browser.browsing import browsing
from tests.format_cases import CASES, CONDITIONS, JSON_FAULTS, NOW

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

_BERLIN: Final = ZoneInfo("Europe/Berlin")
#: Names in the dashboard's module that differ.
_NAMES: Final = {"size": "bytes", "duration_change": "durationChange", "between": "range"}
_CALL: Final = """(calls) => import("/static/dashboard/format.js")
    .then((f) => calls.map(([name, ...args]) => f[name](...args)))"""


@pytest.fixture
def page(chromium: str, service: str) -> Iterator[Page]:
    with browsing(chromium, locale="de-DE", timezone_id="Europe/Berlin") as opened:
        opened.goto(f"{service}/docs")
        yield opened


def call(page: Page, *calls: tuple[Any, ...]) -> list[str]:
    """Call functions of the module, each with its arguments."""
    found: list[str] = page.evaluate(_CALL, [[_NAMES.get(name, name), *args] for name, *args in calls])
    return found


def test_a_value_is_shown_as_in_python(page: Page) -> None:
    assert call(page, *[(name, value) for name, value, _ in CASES]) == [text for *_, text in CASES]
    draw = random.Random(0)  # noqa: S311
    values = [0, 1, *(draw.random() for _ in range(500)), *(draw.uniform(-1, 1) for _ in range(200))]
    values += [draw.random() * 10 ** draw.uniform(-3, 15) for _ in range(500)]
    values += [draw.randrange(2_000_000) / 20 for _ in range(500)]
    for name in ("number", "percent", "points", "duration", "size", "change", "duration_change"):
        expected = [getattr(formats, name)(value) for value in values]
        assert call(page, *[(name, value) for value in values]) == expected
    spans = [draw.randrange(10**6) for _ in range(500)]
    assert call(page, *[("span", span) for span in spans]) == [formats.span(span) for span in spans]
    amounts = ["12.30", "1234567.05", "-0.50", "0.00", "1200", None, "-0.00"]
    assert call(page, *[("money", amount, "EUR") for amount in amounts]) == [
        formats.money(amount, "EUR") for amount in amounts
    ]


def test_conditions_are_said_as_in_python(page: Page) -> None:
    said = page.evaluate(
        """(all) => import("/static/dashboard/conditions.js").then((it) => all.map(it.asSentence))""",
        [conditions for conditions, _ in CONDITIONS],
    )
    assert said == [text for _, text in CONDITIONS]


def test_faults_of_json_are_said_as_in_python(page: Page) -> None:
    draw = random.Random(0)  # noqa: S311
    whole = json.dumps({"a": [1, True, "b"], "c": {"d": {}, "e": None}}, indent=1)
    texts = [text for text, *_ in JSON_FAULTS]
    for _ in range(500):
        start = draw.randrange(len(whole))
        added = "".join(draw.choices('{}[]:,"a1.\\\n -', k=draw.randrange(3)))
        texts.append(whole[:start] + added + whole[start + draw.randrange(3) :])
    said = page.evaluate(
        """(texts) => import("/static/dashboard/jsonlines.js").then(({ linesOf }) => texts.map((text) => {
            try {
                return Object.fromEntries(linesOf(text));
            } catch (error) {
                return [error.row, error.message];
            }
        }))""",
        texts,
    )
    assert said == [read_or_say(text) for text in texts]


def read_or_say(text: str) -> dict[str, int] | list[int | str]:
    """Return the lines of a text, or the line and the words of its fault."""
    try:
        return read_lines(text)
    except JsonFault as error:
        return [error.line, str(error)]


def test_a_time_is_shown_as_in_python(page: Page) -> None:
    draw = random.Random(0)  # noqa: S311
    now = NOW.timestamp() * 1000
    for _ in range(300):
        at = NOW + dt.timedelta(seconds=round(draw.choice([-1, 1]) * 10 ** draw.uniform(0, 8)))
        iso = at.isoformat()
        expected = [
            formats.ago(at, now=NOW),
            formats.ago(at, now=NOW, zone=_BERLIN),
            formats.exact_time(at),
        ]
        assert call(page, ("ago", iso, now, "UTC"), ("ago", iso, now), ("when", iso, "UTC")) == expected


def test_the_reader_chooses_the_zone(page: Page) -> None:
    at = "2026-11-24T23:34:10.123Z"
    both = "2026-11-24 23:34:10 UTC\n2026-11-25 00:34:10 Europe/Berlin"
    assert call(page, ("when", at), ("inBothZones", at)) == ["2026-11-25 00:34:10 CET", both]
    call(page, ("chooseUtc", True))
    assert call(page, ("when", at), ("zone",)) == ["2026-11-24 23:34:10 UTC", "UTC"]
    call(page, ("chooseUtc", False))
    assert call(page, ("zone",)) == ["Europe/Berlin"]
    assert call(page, ("when", "no time"), ("inBothZones", None)) == ["no time", ""]
    assert call(page, ("when", "0033-01-02T03:04:00Z", "UTC")) == ["0033-01-02 03:04:00 UTC"]
