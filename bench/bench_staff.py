"""Pages of staff and lists of the API with 100,000 tenants and a million revisions, markers, events and days.

A page is compared with an empty page of the admin site, the list of a model without rows; an answer of the
API with a bare view that sends the same JSON from memory. All run in this process.
"""

from __future__ import annotations

import json
import tracemalloc
from functools import partial
from pathlib import Path
from urllib.parse import urlencode
from uuid import UUID

from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from accounts.admin.base import TABS
from bench.bench_http import write_rules
from bench.harness import Compared, p95, show, times_in_turn
from tenantadmin.lib.core.timestamps import days_before, now
from tests import factories

_WHOLE_LISTS = {"all tenants": "/config/tenants", "whole manifest": "/config/tenants/manifest"}
_LISTS = ("accounts_tenant", "accounts_revision", "rules_marker", "accounts_tenantconfig", "rules_ruleset")
#: Filters of the list of tenants that find less than a page, so that no list ends early.
_FILTERS = {"Late": "late", "None yet": "none"}
_RARE = 50
_FILL = (
    """
    INSERT INTO accounts_tenant (id, account_id, name, name_key, created_at, modified_at)
    SELECT gen_random_uuid(), %(account)s, 'Tenant ' || n, 'tenant ' || n, moment, moment
    FROM (
        SELECT n,
            date_trunc('milliseconds', now()) - interval '30 days' + n * interval '20 milliseconds' AS moment
        FROM generate_series(1, %(tenants)s) AS n
    ) AS numbered
    """,
    """
    INSERT INTO accounts_tenantconfig (tenant_id, document, seq, modified_at)
    SELECT id, jsonb_build_object('tenantName', name, 'fqdns', '[]'::jsonb), 0, modified_at
    FROM accounts_tenant ON CONFLICT DO NOTHING
    """,
    """
    INSERT INTO rules_ruleset (tenant_id, rules, seq, cache_bust, modified_at)
    SELECT id, '[]', 0, lpad(to_hex(1), 20, '0'), modified_at FROM accounts_tenant ON CONFLICT DO NOTHING
    """,
    """
    INSERT INTO accounts_revision (kind, tenant_id, account_id, seq, action, "user", changed_at, summary,
        document)
    SELECT 'config', id, account_id, n, 'update', 'u' || n || '@example.org',
        modified_at + n * interval '1 hour', '{"changedFields": 1}', '{"tenantName": "x"}'
    FROM accounts_tenant CROSS JOIN generate_series(1, 10) AS n
    """,
    """
    INSERT INTO rules_marker (tenant_id, marker_id, target_rule_id, ttl_seconds, invalidated_at, expires_at,
        created_at, metadata, invalidated_by)
    SELECT id, 'm' || n, 'r' || n %% 3, 86400, modified_at, modified_at + interval '1 day',
        modified_at, '{}', '{}'
    FROM accounts_tenant CROSS JOIN generate_series(1, 10) AS n
    """,
    """
    INSERT INTO accounts_event (at, kind, actor, subject, tenant_id, reason, request_id, address, after)
    SELECT now() - random() * (now() - date_trunc('month', now())), 'token.minted',
        'u' || n || '@example.org', '', id, '', '-', '192.0.2.1', '{"pat": 1}'
    FROM accounts_tenant CROSS JOIN generate_series(1, 10) AS n
    """,
    # The last tenants have no log, and the log of those before them is late.
    """
    INSERT INTO analytics_tenanthealth (tenant_id, last_day, rate_7, requests_7, misses_7, warehouse_ms_7,
        stale_days, quarantined, updated_at)
    SELECT id, current_date - CASE WHEN number > %(tenants)s - 2 * %(rare)s THEN 9 ELSE 1 END,
        random(), 1000, 100, 90000, 0, 0, now()
    FROM (SELECT id, row_number() OVER (ORDER BY name, id) AS number FROM accounts_tenant) AS numbered
    WHERE number <= %(tenants)s - %(rare)s
    """,
    # One tenant has a year of days.
    """
    INSERT INTO analytics_dayrollup (tenant_id, day, build, version, files, bytes, hits, misses, warehouse_ms,
        not_cached, hit_bytes, hit_time_sum, hit_time_count, miss_time_sum, miss_time_count, built_at)
    SELECT id, current_date - n, 'b', 1, '{}', 1, 900 + n, 100, 90000, 10, 1e6, 9000, 900, 50000, 100, now()
    FROM accounts_tenant
    CROSS JOIN LATERAL generate_series(1, CASE WHEN id = %(logged)s THEN 366 ELSE 10 END) AS n
    """,
)


def main(directory: Path, *, tenants: int = 100_000, rounds: int = 60) -> None:
    call_command("collectstatic", interactive=False, verbosity=0)
    world = factories.make_world()
    # It also makes this month's partition of events.
    scopes = ("config:read", "users:read", "analytics:read")
    token = factories.pat_token(world.platform_admin, *scopes, tenants=["*"])
    fill(world.account.pk, world.tenant.pk, tenants=tenants)
    write_rules(world.tenant.pk, 20)
    staff = Client(SERVER_NAME="127.0.0.1")
    staff.force_login(world.platform_admin)
    pages = staff_pages(world.tenant.pk).items()
    rows = [beside_empty_page(staff, title, path, rounds=rounds) for title, path in pages]
    show(f"p95 of pages of staff, {tenants:,} tenants", "ms", rows)
    api = Client(SERVER_NAME="127.0.0.1", headers={"Authorization": f"Bearer {token}"})
    rows = [
        beside_bare_view(api, directory, title, path, rounds=rounds)
        for title, path in requests(api, world.tenant.pk).items()
    ]
    show("p95 of answers of the API", "ms", rows)
    rows = [memory_of(api, title, path) for title, path in _WHOLE_LISTS.items()]
    show("Memory at most, and bytes sent", "MiB", rows)


def fill(account_id: UUID, logged: UUID, *, tenants: int) -> None:
    """Insert all rows, as the service would have stored them. The tenant ``logged`` has a year of days."""
    values: dict[str, UUID | int] = {
        "account": account_id,
        "tenants": tenants,
        "rare": _RARE,
        "logged": logged,
    }
    with connection.cursor() as cursor:
        for statement in _FILL:
            cursor.execute(statement, values)
        cursor.execute("VACUUM ANALYZE")


def staff_pages(tenant_id: UUID) -> dict[str, str]:
    pages = {name: reverse(f"admin:{name}") for name in ("index", "system", "terms", "audit")}
    pages |= {name: reverse(f"admin:{name}", args=[tenant_id]) for _, name in TABS.values()}
    for name in _LISTS:
        pages[name] = reverse(f"admin:{name}_changelist")
        pages[f"{name}, search"] = f"{pages[name]}?q=Tenant+54321"
    pages |= {
        f"tenants, {words}": f"{pages['accounts_tenant']}?log={value}" for words, value in _FILTERS.items()
    }
    return pages | {"search over everything": "/admin/search/?s=tenant+543"}


def requests(client: Client, logged: UUID) -> dict[str, str]:
    """Return the addresses of whole lists, of polls, of pages of history, events and weeks, and of a year."""
    today = now().date()
    year = {"from": days_before(today, 366), "to": days_before(today, 1)}
    since = json.loads(get(client, "/config/tenants/manifest"))["generatedAt"]
    second = json.loads(get(client, "/config/history"))["_links"]["next"]["href"]
    return _WHOLE_LISTS | {
        "manifest, since: no change": f"/config/tenants/manifest?since={since}",
        "history, first page": "/config/history",
        "history, second page": second,
        "history of one user": "/config/history?userId=u3@example.org",
        "events, first page": "/config/events",
        "events of one actor": "/config/events?actor=u3@example.org",
        "weeks, first page": "/tenants/weeks",
        "activity of 366 days": f"/tenants/{logged}/activity?{urlencode(year)}",
    }


def beside_empty_page(client: Client, title: str, path: str, *, rounds: int) -> Compared:
    empty = reverse("admin:logs_supersededfile_changelist")
    get_uncached(client, path)
    # PostgreSQL may change its plan after the fifth.
    real, limit = times_in_turn(
        partial(get_uncached, client, path), partial(get_uncached, client, empty), runs=rounds
    )
    return Compared(title, p95(real), "empty page", p95(limit), 10)


def beside_bare_view(client: Client, directory: Path, title: str, path: str, *, rounds: int) -> Compared:
    bare = title.replace(" ", "-")
    (directory / f"bare/{bare}.json").write_bytes(get(client, path))
    real, limit = times_in_turn(
        partial(get, client, path),
        partial(get, client, f"/bare/{bare}"),
        runs=5 if title in _WHOLE_LISTS else rounds,
    )
    return Compared(title, p95(real), "bare view", p95(limit))


def memory_of(client: Client, title: str, path: str) -> Compared:
    """Compare the memory that a streamed answer takes at most with its size."""
    tracemalloc.start()
    answer = client.get(path)
    size = sum(len(chunk) for chunk in answer)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return Compared(title, taken / 2**20, "bytes sent", size / 2**20)


def get_uncached(client: Client, path: str) -> bytes:
    cache.clear()
    return get(client, path)


def get(client: Client, path: str) -> bytes:
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code)
    return b"".join(answer)
