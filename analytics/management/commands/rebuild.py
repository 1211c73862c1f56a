"""``manage.py rebuild``: bring partitions, rollups and summaries up to date."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from datetime import date
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from analytics.days import find_stale_days, rebuild_day
from analytics.rebuild import find_stale_periods, rebuild_period
from logs.listing import find_tenants
from logs.locks import Busy
from logs.models import Partition
from tenantadmin.objectstore import StoreError, default_store

if TYPE_CHECKING:
    from tenantadmin.objectstore import ObjectStore


class Command(BaseCommand):
    help = "Compacts the days whose raw logs changed and brings their summaries up to date. May be stopped."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", type=UUID, metavar="ID", help="one tenant; default: all")
        parser.add_argument("--from", type=_day, dest="first", metavar="DAY", help="YYYY-MM-DD")
        parser.add_argument("--to", type=_day, dest="last", metavar="DAY", help="YYYY-MM-DD")

    def handle(self, *, tenant: UUID | None, first: date | None, last: date | None, **_: Any) -> None:
        if first and last and first > last:
            raise CommandError(f"--from {first} is after --to {last}.")
        console = Console(stderr=True, highlight=False)
        store = default_store()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        try:
            with Progress(*columns, console=console) as progress:
                built = sum(
                    _rebuild_tenant(store, progress, tenant=one, first=first, last=last)
                    for one in ([tenant] if tenant else find_tenants(store))
                )
        except (StoreError, OperationalError, InterfaceError, Busy) as error:
            raise CommandError(f"{error}. What was built stays; run the command again.") from error
        self.stdout.write(f"{built} days and periods rebuilt." if built else "Everything is current.")


def _rebuild_tenant(
    store: ObjectStore, progress: Progress, *, tenant: UUID, first: date | None, last: date | None
) -> int:
    """Rebuild what is stale of one tenant; returns how much that was."""
    task = progress.add_task(f"{tenant} listing", total=None)
    days = find_stale_days(store, tenant=tenant, first=first, last=last)
    progress.update(task, description=f"{tenant} days", total=len(days))
    for day in days:
        rebuild_day(store, tenant=tenant, day=day, wait=True)
        progress.advance(task)
    built = len(days)
    for is_last in (False, True):
        periods = find_stale_periods(tenant=tenant)
        progress.update(task, total=built + len(periods), completed=built)
        for period in periods:
            progress.update(task, description=f"{tenant} {period or 'users'}")
            try:
                built += rebuild_period(store, tenant=tenant, period=period, wait=True)
            except Busy:
                # A worker published another day meanwhile.
                if is_last:
                    raise
            progress.advance(task)
    rows = sum(Partition.objects.filter(tenant_id=tenant).values_list("rows", flat=True))
    progress.update(task, description=f"{tenant} done, {rows} rows")
    return built


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no day; write it like 2026-03-01") from None
