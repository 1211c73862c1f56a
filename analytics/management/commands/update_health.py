"""``manage.py update_health``: update the health of tenants, which staff see on the admin site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from accounts.management.arguments import tenant_id
from analytics.models import DayRollup, TenantHealth
from analytics.numbers.state import backfill_health
from tenantadmin.lib.objectstore import StoreError, default_store
from tenantadmin.lib.terminal import visible

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from uuid import UUID


class Command(BaseCommand):
    help = "Writes the health of tenants whose logs were built by an earlier release. Can be repeated."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", type=tenant_id, metavar="ID", help="one tenant; default: all")

    def handle(self, *, tenant: UUID | None, **_: Any) -> None:
        store = default_store()
        days = tenants = 0
        try:
            for each in [tenant] if tenant else _tenants():
                days += backfill_health(store, tenant=each)
                tenants += 1
        except StoreError as error:
            raise CommandError(f"{visible(str(error))}. Run the command again.") from error
        self.stdout.write(f"{tenants} tenants, {days} days filled.")


def _tenants() -> list[UUID]:
    """Return the tenants with built days or with a row of `TenantHealth`."""
    built = DayRollup.objects.order_by().values_list("tenant_id", flat=True).distinct()
    return sorted({*built, *TenantHealth.objects.values_list("tenant_id", flat=True)})
