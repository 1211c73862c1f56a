"""Builds that fail or are killed at any write leave whole documents, and the next run completes."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from analytics.models import Build, Kind
from analytics.numbers.tables import TABLES
from tenantadmin.lib.objectstore import LocalStore, StoreError
from tests.analytics.builds import (
    DAY,
    LATER,
    NEXT,
    TENANT,
    assert_no_orphans,
    entry,
    expected,
    find_stale,
    put,
    rebuild_all,
    refresh,
    rows_of,
    stored_documents,
)
from tests.analytics.workers import Child

pytestmark = pytest.mark.slow

#: The writes after a late object: the log of its day and its executions, the rollups of its day, month and
#: year, one document of each kind, and the documents of the next year, which include days of the year before.
WRITES = 2 + 3 * len(TABLES) + len(Kind) + len((Kind.YEAR, Kind.RULES, Kind.OPPORTUNITIES))


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every document becomes an object of its own."""
    monkeypatch.setattr("analytics.numbers.store.INLINE_BYTES", 0)


class FailingStore(LocalStore):
    """A store that fails at write number ``last`` and later, like a full disk."""

    def __init__(self, location: Path, *, last: int) -> None:
        super().__init__(location)
        self._last, self._numbers = last, count(1)

    def save(self, name: str | None, content: Any, max_length: int | None = None) -> str:
        if next(self._numbers) == self._last:
            raise StoreError("No space left on device")
        return super().save(name, content, max_length)


@pytest.mark.django_db
def test_a_store_that_fails_at_any_write_leaves_whole_documents_and_the_last_run_completes(
    object_store: Path,
) -> None:
    for day in (DAY, NEXT, LATER):
        put("00/a.json", entry(day, matchedRule="r"), day=day)
    rebuild_all()
    old = expected(rows_of(DAY, NEXT, LATER))
    assert stored_documents() == old
    put("01/late.json", entry(DAY, userName="Bo", standardizedSql="SELECT 2"))
    new = expected(rows_of(DAY, NEXT, LATER))

    # Each period is built once for each of its writes, and fails one write later each time.
    ended, last, built = 0, 1, Build.objects.filter(state="done").count()
    while True:
        try:
            refresh(FailingStore(object_store, last=last))
        except StoreError:
            ended += 1
        else:
            break
        for name, seen in stored_documents().items():
            assert seen in (old[name], new[name]), (ended, name)
        before, built = built, Build.objects.filter(state="done").count()
        last = last + 1 if built == before else 2

    assert ended == WRITES
    assert stored_documents() == new
    assert_no_orphans()


@pytest.mark.django_db(transaction=True)
def test_a_build_killed_at_any_write_leaves_whole_documents_and_the_last_run_completes(
    object_store: Path, tmp_path: Path
) -> None:
    for day in (DAY, NEXT, LATER):
        put("00/a.json", entry(day, matchedRule="r"), day=day)
    rebuild_all()
    old = expected(rows_of(DAY, NEXT, LATER))
    put("01/late.json", entry(DAY, userName="Bo", standardizedSql="SELECT 2"))
    new = expected(rows_of(DAY, NEXT, LATER))

    # Each day and period is killed before its first write, its second and so on.
    ends: list[str] = []
    stale, last = find_stale(), 1
    database = str(connection.settings_dict["NAME"])
    # Working directories of killed builds are left in the test's own directory.
    environment = {"TMPDIR": str(tmp_path)}
    arguments = ("tests.analytics.killed_builds", database, object_store.as_uri())
    with Child(*arguments, environment=environment) as builder:
        while True:
            builder.send(last)
            if (place := builder.read()) == "done":
                break
            ends.append(place)
            for name, seen in stored_documents().items():
                assert seen in (old[name], new[name]), place
            before, stale = stale, find_stale()
            last = last + 1 if stale == before else 1

    assert stale == find_stale() == ([], [])
    assert stored_documents() == new
    assert_no_orphans()
    rows = {place for place in ends if not place.startswith(str(TENANT))}
    objects = {re.sub(r"/[0-9a-f]{32}\.", "/", place) for place in {*ends} - rows}
    assert len(objects) == WRITES
    assert rows == {
        "INSERT INTO analytics_build",
        "UPDATE analytics_build",
        "UPDATE logs_partition",
        "DELETE FROM logs_quarantinedentry",
        "INSERT INTO logs_supersededfile",
        "UPDATE analytics_dayrollup",
        "UPDATE analytics_mergedrollup",
        "UPDATE analytics_summarydocument",
        "UPDATE analytics_tenanthealth",
    }
