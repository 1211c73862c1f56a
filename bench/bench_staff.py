"""Measure the pages of staff with 100,000 tenants, 1,000,000 revisions and 1,000,000 markers.

Goal: the 95th percentile of each page is at most 10 times that of an empty admin page, the list of a model
without rows. ``BENCH_SCALE=0.01`` makes everything a hundred times smaller.
"""

from __future__ import annotations

import os
import time
from statistics import quantiles
from typing import TYPE_CHECKING

from bench import harness
from bench.bench_admin import fill, write_rules

if TYPE_CHECKING:
    from tests.factories import World

#: Rounds of a page and the empty one, in turn. PostgreSQL may change its plan after the fifth.
_ROUNDS = 60
_LISTS = ("accounts_tenant", "accounts_revision", "rules_marker", "accounts_tenantconfig", "rules_ruleset")


def main() -> None:
    os.environ["STAFF_SECOND_FACTOR"] = "false"
    with harness.environment():
        from django.core.management import call_command  # noqa: PLC0415  # needs Django

        from tests import factories  # noqa: PLC0415  # needs Django

        call_command("collectstatic", interactive=False, verbosity=0)
        world = factories.make_world()
        fill(world.account.pk)
        write_rules(world.tenant.pk, 20)
        measure(world)


def measure(world: World) -> None:
    """Ask for each page and for the empty one in turn, in this process."""
    from django.core.cache import cache  # noqa: PLC0415  # needs Django
    from django.test import Client  # noqa: PLC0415  # needs Django
    from django.urls import reverse  # noqa: PLC0415  # needs Django

    from accounts.admin.tabs import TABS  # noqa: PLC0415  # needs Django

    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(world.platform_admin)
    empty = reverse("admin:logs_supersededfile_changelist")
    pages = {name: reverse(f"admin:{name}") for name in ("index", "system", "terms", "audit")}
    pages |= {name: reverse(f"admin:{name}", args=[world.tenant.pk]) for _, name in TABS.values()}
    for name in _LISTS:
        pages[name] = reverse(f"admin:{name}_changelist")
        pages[f"{name}, search"] = f"{pages[name]}?q=Tenant+54321"
    pages["palette"] = "/admin/search/?s=tenant+543"

    def seconds(address: str) -> float:
        cache.clear()
        began_at = time.perf_counter()
        answer = client.get(address)
        took = time.perf_counter() - began_at
        assert answer.status_code == 200, (address, answer.status_code)
        return took

    rows = []
    for name, address in pages.items():
        seconds(address)
        pairs = [(seconds(address), seconds(empty)) for _ in range(_ROUNDS)]
        # The last of 19 cuts into 20 parts.
        real, bare = (
            quantiles(values, n=20, method="inclusive")[-1] * 1000 for values in zip(*pairs, strict=True)
        )
        rows.append([name, real, bare, real / bare])
    harness.show("Pages of staff", ["page", "p95 ms", "empty p95 ms", "ratio"], rows)


if __name__ == "__main__":
    main()
