"""Lists and pages of the admin site read about a page of rows, however many there are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

import pytest
from django.contrib import admin
from django.core.cache import cache
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.admin.base import TABS
from accounts.models import Fqdn, Tenant, User
from tests.admin.filling import fill, our_models

if TYPE_CHECKING:
    from django.db.models import Model
    from django.test import Client

    from tests import factories

ROWS: Final = 1500
#: More than a page and what is looked up for it, or the rows in one of three states, and less than a table.
MOST_ROWS: Final = 600
#: What is allowed to: the count of users by the terms that they acknowledged, which an index alone answers,
#: and the sums over the queue of builds, which is short unless the service is in trouble.
ALLOWED: Final = ("Index Only Scan on accounts_user", "Seq Scan on logs_pendingbuild")
#: Filters of the list of tenants by what other tables hold, and their values. How many logs are late depends
#: on the day of the test.
TENANT_FILTERS: Final = {
    "findings": ("yes",),
    "rate": ("0", "25", "50", "75"),
    "plan": ("free", "team", "enterprise"),
}


def scans(plan: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield each scan of a plan, and how many rows it has read."""
    if "Relation Name" in plan:
        each = sum(
            plan.get(name, 0)
            for name in ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")
        )
        yield f"{plan['Node Type']} on {plan['Relation Name']}", each * plan["Actual Loops"]
    for part in plan.get("Plans", ()):
        yield from scans(part)


def large_reads(queries: list[dict[str, str]]) -> list[str]:
    """Return the scans of queries that read too many rows."""
    found = []
    with connection.cursor() as cursor:
        for sql in {query["sql"] for query in queries if query["sql"].startswith("SELECT")}:
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")
            plan = cursor.fetchone()[0]
            plan = json.loads(plan) if isinstance(plan, str) else plan
            found += [
                f"{scan}: {rows} rows: {sql}" for scan, rows in scans(plan[0]["Plan"]) if rows > MOST_ROWS
            ]
    return found


def show(model: type[Model], user: User, **query: str) -> Any:
    request = RequestFactory().get("/", query)
    request.user = user
    return admin.site._registry[model].get_changelist_instance(request)


def too_much_for_lists(user: User, terms: Sequence[str]) -> Iterator[str]:
    """Open the first and the second page of each list, and search it."""
    for model in our_models():
        with CaptureQueriesContext(connection) as captured:
            first = show(model, user)
            following = show(model, user, p=dict(parse_qsl(first.paginator.next[1:]))["p"])
            assert not {row.pk for row in first.result_list} & {row.pk for row in following.result_list}
            for term in terms:
                show(model, user, q=term)
            if model is Tenant:
                for name, values in TENANT_FILTERS.items():
                    for value in values:
                        show(model, user, **{name: value})
        yield from large_reads(captured.captured_queries)


def too_much_for_pages(staff: Client, tenant: Tenant) -> Iterator[str]:
    addresses = [reverse(f"admin:{name}") for name in ("index", "system", "terms", "audit")]
    addresses += [reverse(f"admin:{name}", args=[tenant.pk]) for _, name in TABS.values()]
    addresses += [
        reverse("admin:account", args=[tenant.account_id]),
        reverse("admin:person", args=[tenant.memberships.values_list("user_id", flat=True)[0]]),
        f"{reverse('admin:fqdns')}?q=nothing.example",
        "/admin/search/?s=nothing",
    ]
    for address in addresses:
        cache.clear()
        with CaptureQueriesContext(connection) as captured:
            assert staff.get(address).status_code == 200, address
        yield from large_reads(captured.captured_queries)


def health_of_live_tenants() -> None:
    """Give the rows of health ids of live tenants, because Home shows only live tenants."""
    numbered = "SELECT {0}, row_number() OVER () AS number FROM {1}"
    with connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_tenant SET deleted_at = NULL")
        # Pages of live tenants read their rules.
        cursor.execute("UPDATE rules_ruleset SET rules = '[]'")
        cursor.execute(
            "UPDATE analytics_tenanthealth SET tenant_id = tenant.id "
            f"FROM ({numbered.format('tenant_id', 'analytics_tenanthealth')}) AS health "
            f"JOIN ({numbered.format('id', 'accounts_tenant')}) AS tenant USING (number) "
            "WHERE analytics_tenanthealth.tenant_id = health.tenant_id"
        )
        cursor.execute("ANALYZE")


@pytest.mark.slow
def test_lists_and_pages_read_a_page_of_rows(staff: Client, world: factories.World) -> None:
    fill(our_models(), rows=ROWS)
    health_of_live_tenants()
    tenant = Tenant.objects.order_by("pk")[700]
    fqdn = Fqdn.objects.order_by("pk")[700]
    user = User.objects.exclude(pk=world.platform_admin.pk).order_by("pk")[700]
    terms = ("nothing like this", tenant.name, str(tenant.pk), fqdn.name, user.email, "2026-03-01")
    with connection.cursor() as cursor:
        # So many rows are few for a scan. A million are not.
        cursor.execute("SET LOCAL enable_seqscan = off")
    found = [*too_much_for_lists(world.platform_admin, terms), *too_much_for_pages(staff, world.tenant)]
    too_much = [item for item in found if not item.startswith(ALLOWED)]
    assert not too_much, "\n".join(too_much)
