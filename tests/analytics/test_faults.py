"""Builds that end at any write: readers see old or new documents whole, and the next run converges."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from analytics.days import find_stale_days, rebuild_day
from analytics.models import Build, DayRollup, Kind, MergedRollup, SummaryDocument
from analytics.rebuild import find_stale_periods, rebuild_period
from logs.models import Partition, SupersededFile
from tenantadmin.objectstore import ObjectStore, StoreError, default_store
from tests.analytics import oracle
from tests.analytics.pipeline import TENANT
from tests.analytics.test_rebuild import DAY, LATER, NEXT, document, entry, put, rebuild_all, rows_of

ROOT = Path(__file__).resolve().parents[2]

#: Of what a late object sets going: its day (log, five tables, document), its month, its year, and the
#: documents of the year after and of all users.
WRITES = 7 + 6 + 8 + 3 + 1


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every document is large enough to be an object of its own."""
    monkeypatch.setattr("analytics.store.INLINE_BYTES", 0)


class Killed(BaseException):
    """The process ends here."""


class EndingStore:
    """A store that fails, as a full disk does, or whose process is killed, at the write numbered ``last``."""

    def __init__(self, store: ObjectStore, *, last: int, error: BaseException, done: bool = False) -> None:
        self._store, self._last, self._error, self._done = store, last, error, done
        self.numbers = count(1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, key: str, content: Any) -> None:
        is_last = next(self.numbers) == self._last
        if not is_last or self._done:
            self._store.write(key, content)
        if is_last:
            raise self._error


def refresh(store: ObjectStore) -> None:
    for day in find_stale_days(store, tenant=TENANT):
        rebuild_day(store, tenant=TENANT, day=day)
    for period in find_stale_periods(tenant=TENANT):
        rebuild_period(store, tenant=TENANT, period=period)


def expected(rows: list[oracle.Row]) -> dict[tuple[Kind, str], Any]:
    tenant = str(TENANT)
    of_day = [row for row in rows if row["day"] == "2025-12-31"]
    return {
        (Kind.DAY, "2025-12-31"): oracle.day_document(of_day),
        (Kind.MONTH, "2025-12"): oracle.month_document(of_day, 12),
        (Kind.YEAR, "2025"): oracle.year_document(rows, tenant=tenant, year=2025),
        (Kind.RULES, "2025"): oracle.rules_document(of_day),
        (Kind.YEAR, "2026"): oracle.year_document(rows, tenant=tenant, year=2026),
        (Kind.USERS, ""): oracle.users_document(rows, tenant=tenant)["users"],
    }


SHOWN = (
    (Kind.DAY, "2025-12-31"),
    (Kind.MONTH, "2025-12"),
    (Kind.YEAR, "2025"),
    (Kind.RULES, "2025"),
    (Kind.YEAR, "2026"),
    (Kind.USERS, ""),
)


def shown() -> dict[tuple[Kind, str], Any]:
    documents = {(kind, period): document(kind, period) for kind, period in SHOWN}
    documents[Kind.USERS, ""] = documents[Kind.USERS, ""]["users"]
    return documents


def assert_every_object_is_named() -> None:
    named = set(Partition.objects.values_list("file", flat=True))
    named |= set(SupersededFile.objects.values_list("key", flat=True))
    named |= set(SummaryDocument.objects.exclude(file="").values_list("file", flat=True))
    for model in (DayRollup, MergedRollup):
        for files in model.objects.values_list("files", flat=True):
            named |= set(files.values())
    kept = {
        item.key
        for prefix in ("compacted", "rollups")
        for item in default_store().list(f"{TENANT}/{prefix}/")
    }
    assert kept == named


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("error", "done"),
    [(StoreError("No space left on device"), False), (Killed(), False), (Killed(), True)],
    ids=["full", "before", "after"],
)
def test_ended_at_every_write_old_or_new_is_whole_and_the_last_run_converges(
    error: BaseException, done: bool
) -> None:
    for day in (DAY, NEXT, LATER):
        put("00/a.json", entry(day, matchedRule="r"), day=day)
    rebuild_all()
    old = expected(rows_of(DAY, NEXT, LATER))
    assert shown() == old
    put("01/late.json", entry(DAY, userName="Bo", standardizedSql="SELECT 2"))
    new = expected(rows_of(DAY, NEXT, LATER))

    # Each period is begun anew as often as it has writes, and ended at the next of them.
    ended, last, built = 0, 1, Build.objects.filter(state="done").count()
    while True:
        try:
            refresh(EndingStore(default_store(), last=last, error=error, done=done))
        except type(error):
            ended += 1
        else:
            break
        for name, seen in shown().items():
            assert seen in (old[name], new[name]), (ended, name)
        before, built = built, Build.objects.filter(state="done").count()
        last = last + 1 if built == before else 2

    assert ended == WRITES
    assert shown() == new
    assert_every_object_is_named()


KILLED_AT_A_WRITE = """
import itertools, os, signal, sys
import django
from django.conf import settings

last, settings.DATABASES["default"]["NAME"], settings.OBJECT_STORE_URL = sys.argv[1:]
django.setup()

from django.core.management import call_command
from tenantadmin.objectstore import LocalStore

write, numbers = LocalStore.write, itertools.count(1)

def dying_write(self, key, content):
    if next(numbers) == int(last):
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, key, content)

LocalStore.write = dying_write
call_command("rebuild")
"""


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("last", [3, 9, 16], ids=["day", "month", "year"])
def test_a_killed_process_leaves_no_lock_and_nothing_that_stays(last: int, settings: Any) -> None:
    for day in (DAY, NEXT, LATER):
        put("00/a.json", entry(day), day=day)
    rebuild_all()
    put("01/late.json", entry(DAY, userName="Bo"))

    arguments = [str(last), str(connection.settings_dict["NAME"]), settings.OBJECT_STORE_URL]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_AT_A_WRITE, *arguments],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        check=False,
        timeout=300,
    )
    assert killed.returncode == -signal.SIGKILL
    assert Build.objects.filter(state="running").count() == 1

    refresh(default_store())
    assert shown() == expected(rows_of(DAY, NEXT, LATER))
    assert_every_object_is_named()
    assert set(Build.objects.values_list("state", flat=True)) == {"done", "failed"}
