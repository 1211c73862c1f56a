"""Log entries of days, the digests made of them, and the check of every fact against its SQL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from django.core.management import call_command

from analytics.jobs.digests import make_digest
from analytics.watch.facts import DigestPeriod
from analytics.words.digests import render_digest
from logs.audit import Reader
from logs.layout import day_start_ms
from logs.queries import query_rows
from tenantadmin.lib.objectstore import default_store
from tests.objects import save_entries

if TYPE_CHECKING:
    from analytics.models import Digest
    from tests.factories import World

#: A Tuesday, long ago: digests of such days are made by request only.
DAY = dt.date(2026, 3, 31)
HOUR = 3_600_000
_numbers = count()
_READER = Reader("test", "")


def at(day: dt.date, *, hour: int = 12) -> int:
    return day_start_ms(day) + hour * HOUR


def entries(number: int, *, at: int, **fields: Any) -> list[dict[str, Any]]:
    """Return some entries, a second apart."""
    return [
        {"logId": f"l{next(_numbers)}", "timestamp": at + 1_000 * index, **fields} for index in range(number)
    ]


def served(day: dt.date, *, hits: int, misses: int, hour: int = 12, **fields: Any) -> list[dict[str, Any]]:
    """Return hits and misses of a rule, mixed within the hour."""
    fields = {"matchedRule": "sales", "responseTimeMs": 10, **fields}
    return [
        *entries(hits, at=at(day, hour=hour), cacheStatus="HIT", **fields),
        *entries(misses, at=at(day, hour=hour) + 1, cacheStatus="MISS", **fields),
    ]


def put(world: World, day: dt.date, *groups: Sequence[dict[str, Any]]) -> None:
    """Store the raw log of a day, in place of what it had."""
    save_entries(world.tenant.pk, day, chain(*groups))


def rebuild(world: World) -> None:
    call_command("rebuild", tenant=world.tenant.pk)


def earlier(day: dt.date = DAY) -> list[dt.date]:
    """Return the same weekdays of the four weeks before."""
    return [day - dt.timedelta(weeks=week) for week in range(1, 5)]


def make(world: World, period: DigestPeriod | dt.date = DAY) -> Digest:
    """Make a digest. Assert that each fact equals its SQL."""
    if isinstance(period, dt.date):
        period = DigestPeriod.of_day(period)
    digest = make_digest(default_store(), tenant=world.tenant.pk, period=period)
    assert digest is not None
    assert_facts(world, digest)
    return digest


def assert_facts(world: World, digest: Digest) -> None:
    assert digest.document["facts"]
    for fact in digest.document["facts"]:
        (row,) = query_rows(default_store(), tenant=world.tenant.pk, statement=fact["sql"], reader=_READER)
        (value,) = row.values()
        assert (value, type(value)) == (fact["value"], type(fact["value"])), fact


def lines(digest: Digest, section: str) -> list[str]:
    """Return the sentences of a section as plain text."""
    text = render_digest(digest, "text/plain")
    _, _, rest = text.partition(f"\n\n{section}\n\n")
    block, _, _ = rest.partition("\n\n")
    return [line.removeprefix("- ") for line in block.splitlines()]


def headings(digest: Digest) -> list[str]:
    return [section["heading"] for section in digest.document["sections"]]
