"""``manage.py update_health``: update the health of tenants, which staff see on the admin site."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand
from django.db import transaction

from accounts.management.arguments import tenant_id
from analytics.models import DayRollup, TenantHealth
from analytics.numbers.state import update_health


class Command(BaseCommand):
    help = "Computes the health of tenants again, from what is built. Can be repeated."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", type=tenant_id, metavar="ID", help="one tenant; default: all")

    def handle(self, *, tenant: UUID | None, **_: Any) -> None:
        tenants = [tenant] if tenant else _tenants()
        for each in tenants:
            with transaction.atomic():
                update_health(each)
        self.stdout.write(f"{len(tenants)} tenants.")


def _tenants() -> list[UUID]:
    """Return the tenants with built days or with a row of `TenantHealth`."""
    built = DayRollup.objects.order_by().values_list("tenant_id", flat=True).distinct()
    return sorted({*built, *TenantHealth.objects.values_list("tenant_id", flat=True)})
