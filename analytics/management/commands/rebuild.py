"""``manage.py rebuild``: rebuild stale partitions, rollups and summaries."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError

from accounts.management.arguments import day_argument, tenant_id
from analytics.management.printing import progress_bar
from analytics.numbers.days import find_stale_days, rebuild_day
from analytics.numbers.periods import find_stale_periods, rebuild_period, snapshot_days
from analytics.numbers.state import LostRollups, mark_missing_objects
from analytics.numbers.store import day_builds
from logs.layout import find_tenants
from logs.models import Partition
from tenantadmin.lib.database.connections import Busy
from tenantadmin.lib.objectstore import StoreError, default_store
from tenantadmin.lib.terminal import visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from analytics.numbers.merged import DayBuild
    from tenantadmin.lib.objectstore import ObjectStore


#: How often periods are built if workers build days meanwhile, or if days had to be rebuilt.
_ROUNDS: Final = 3
_AGAIN: Final = "Finished builds are kept. Run the command again."


class Command(BaseCommand):
    help = "Compacts days whose raw logs changed and rebuilds their summaries. Can be stopped and repeated."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", type=tenant_id, metavar="ID", help="one tenant; default: all")
        parser.add_argument("--from", type=day_argument, dest="first", metavar="DAY", help="YYYY-MM-DD")
        parser.add_argument("--to", type=day_argument, dest="last", metavar="DAY", help="YYYY-MM-DD")

    def handle(self, *, tenant: UUID | None, first: date | None, last: date | None, **_: Any) -> None:
        if first and last and first > last:
            raise CommandError(f"--from {first} is after --to {last}.")
        store = default_store()
        try:
            with progress_bar() as progress:
                run = _Run(store, progress)
                for each in [tenant] if tenant else find_tenants(store):
                    run.rebuild_tenant(each, first=first, last=last)
        except (StoreError, OperationalError, InterfaceError) as error:
            raise CommandError(f"{visible(str(error))}. {_AGAIN}") from error
        if run.failures:
            failures = "".join(f"\n{place}: {failure}" for place, failure in run.failures.items())
            raise CommandError(
                f"{run.built} days and periods rebuilt, {len(run.failures)} not:{failures}\n{_AGAIN}"
            )
        self.stdout.write(f"{run.built} days and periods rebuilt." if run.built else "Everything is current.")


class _Run:
    """Rebuilds one tenant after another. Prints and collects failures, and continues with the next build."""

    def __init__(self, store: ObjectStore, progress: Progress) -> None:
        self._store, self._progress = store, progress
        self.built = 0
        #: The message of each failed build, by tenant and period.
        self.failures: dict[str, str] = {}

    def rebuild_tenant(self, tenant: UUID, *, first: date | None, last: date | None) -> None:
        """Rebuild the stale days and periods of one tenant."""
        task = self._progress.add_task(f"{tenant} listing", total=None)
        days: list[date] = []
        with self._record_failure(f"{tenant} listing"):
            if first is last is None:
                mark_missing_objects(self._store, tenant=tenant)
            days = find_stale_days(self._store, tenant=tenant, first=first, last=last)
        self._progress.update(task, description=f"{tenant} days", total=len(days))
        for day in days:
            self._rebuild_day(tenant, day)
            self._progress.advance(task)
        self._rebuild_periods(tenant, task)
        rows = sum(Partition.objects.filter(tenant_id=tenant).values_list("rows", flat=True))
        self._progress.update(task, description=f"{tenant} done, {rows} rows")

    def _rebuild_day(self, tenant: UUID, day: date) -> None:
        with self._record_failure(f"{tenant} {day}"):
            self.built += rebuild_day(self._store, tenant=tenant, day=day, wait=True)

    def _rebuild_periods(self, tenant: UUID, task: TaskID) -> None:
        for number in range(_ROUNDS):
            lost: list[date] = []
            is_again, is_last = False, number == _ROUNDS - 1
            with snapshot_days(tenant=tenant, wait=True) as builds:
                periods = find_stale_periods(tenant=tenant, builds=builds)
                self._progress.update(task, total=len(periods), completed=0)
                for period in periods:
                    self._progress.update(task, description=f"{tenant} {period or 'users'}")
                    with self._record_failure(f"{tenant} {period or 'users'}"):
                        try:
                            self.built += rebuild_period(
                                self._store, tenant=tenant, period=period, builds=builds, wait=True
                            )
                        except (Busy, LostRollups) as error:
                            if is_last:
                                raise
                            # A rollup was lost, or a year waits for such a month.
                            is_again = True
                            lost += error.days if isinstance(error, LostRollups) else ()
                    self._progress.advance(task)
            for day in lost:
                self._rebuild_day(tenant, day)
            if not (is_again or self._has_other_days(tenant, builds)):
                return

    @staticmethod
    def _has_other_days(tenant: UUID, builds: Sequence[DayBuild]) -> bool:
        """Return True if a worker built a day meanwhile."""
        return [item.build for item in builds] != [item.build for item in day_builds(tenant=tenant)]

    @contextmanager
    def _record_failure(self, place: str) -> Iterator[None]:
        """Record a failure and continue. Failures of the database are raised."""
        try:
            yield
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:  # noqa: BLE001  # an unexpected error must not stop the other builds
            failure = visible(f"{type(error).__name__}: {error}")
            if self.failures.get(place) != failure:
                self._progress.console.print(f"{place}: {failure}", markup=False, soft_wrap=True)
            self.failures[place] = failure
        else:
            self.failures.pop(place, None)
