"""A log of one day, and addresses of a tenant's pages, for the tests of staff's pages."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from django.core.management import call_command
from django.urls import reverse

from logs.layout import day_start_ms
from tests.objects import save_entries

if TYPE_CHECKING:
    from accounts.models import Tenant

DAY = dt.date(2026, 3, 1)
START = day_start_ms(DAY)
RULE: dict[str, Any] = {
    "id": "orders",
    "conditions": {"tables": {"containsAny": ["sales.orders"]}},
    "ttlSeconds": 60,
}
ENTRY = {
    "userName": "ana",
    "tables": '["sales.orders"]',
    "standardizedSql": "SELECT <b>",
    "cacheStatus": "HIT",
}


def put_log(tenant: Tenant, *entries: dict[str, Any]) -> None:
    """Store entries, a second apart, and build their day."""
    numbered = [
        {"logId": f"log-{number}", "timestamp": START + 1000 * number, "cacheStatus": "PASSTHROUGH"} | entry
        for number, entry in enumerate(entries)
    ]
    save_entries(tenant.pk, DAY, numbered)
    call_command("rebuild", tenant=tenant.pk)


def to(name: str, tenant: Tenant, **more: Any) -> str:
    """Return the address of a page of a tenant."""
    return reverse(f"admin:{name}", kwargs={"tenant": tenant.pk, **more})
