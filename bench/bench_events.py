"""Appending and reading events while the table grows: milliseconds, and rows that a page reads.

Twelve months of events of 20,000 people and 2,000 tenants. One person, a Gateway's, has every fifth event.
One tenant was busy in the oldest month and silent since. ``BENCH_SCALE=0.1`` fills a tenth.
"""

from __future__ import annotations

import datetime as dt
import os
import statistics
import time
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from bench import harness

if TYPE_CHECKING:
    from collections.abc import Callable

_SIZES: Final = [0, 100_000, 1_000_000, 5_000_000]
_SCALE: Final = float(os.environ.get("BENCH_SCALE", "1"))
_MONTHS: Final = 12
_QUIET: Final = uuid.UUID(int=99_999)
_FILL: Final = """
    INSERT INTO accounts_event (at, kind, actor, subject, tenant_id, reason, request_id, address, after)
    SELECT %(start)s + random() * (%(end)s - %(start)s), kind, actor, actor, tenant_id, '', md5(n::text),
           '192.0.2.1', '{"pat": 1, "scopes": ["config:read", "cache-admin"]}'
      FROM (SELECT n,
                   CASE WHEN n %% 50 = 0 THEN 'membership.added' WHEN n %% 7 = 0 THEN 'sign-in.succeeded'
                        ELSE 'token.minted' END AS kind,
                   CASE WHEN n %% 5 = 0 THEN 'gateway@example.org'
                        ELSE format('person-%%s@example.org', (random() * 20000)::int) END AS actor,
                   CASE WHEN n %% 50 = 0 THEN lpad(to_hex((random() * 2000)::int), 32, '0')::uuid
                        WHEN n %% 50 = 1 AND %(oldest)s THEN %(quiet)s END AS tenant_id
              FROM generate_series(1, %(rows)s) n) rows
"""


def main() -> None:
    with harness.environment():
        from accounts.access.principal import Claims, Principal  # noqa: PLC0415  # needs Django
        from accounts.access.rights import rights_of  # noqa: PLC0415
        from accounts.access.scopes import ALL_SCOPES  # noqa: PLC0415
        from accounts.event_pages import EventFilter, read_events  # noqa: PLC0415
        from accounts.events import record_event  # noqa: PLC0415
        from accounts.models import Event, Membership, Tenant, User  # noqa: PLC0415
        from accounts.models.events import EventKind  # noqa: PLC0415
        from tests import factories  # noqa: PLC0415

        account = factories.make_account(plan="enterprise")
        people = {
            "platform admin": factories.make_user("root@example.org", role="admin"),
            "owner of 1 tenant": factories.make_user("person-1@example.org"),
            "owner of 100 tenants": factories.make_user("person-2@example.org"),
            "owner of a silent tenant": factories.make_user("person-3@example.org"),
            "the Gateway's": factories.make_user("gateway@example.org"),
        }
        ids = [*(uuid.UUID(int=number) for number in range(100)), _QUIET]
        Tenant.objects.bulk_create(
            Tenant(id=it, account=account, name=str(it), name_key=str(it)) for it in ids
        )
        for name, owned in (
            ("owner of 1 tenant", ids[7:8]),
            ("owner of 100 tenants", ids[:100]),
            ("owner of a silent tenant", [_QUIET]),
        ):
            for tenant_id in owned:
                Membership.objects.create(user=people[name], tenant_id=tenant_id, role="owner")

        def principal(user: User) -> Principal:
            rights = rights_of(user)
            claims = Claims(
                subject=user.email,
                epoch=user.epoch,
                token_id="",
                expires_at=0,
                role=user.role,
                scopes=ALL_SCOPES,
                tenants=frozenset(rights.memberships),
                accounts=frozenset(),
                has_wildcard=False,
                session=None,
                personal_access_token=None,
                tos_required=False,
            )
            return Principal(claims=claims, rights=rights)

        asked = {
            "platform admin: all": ("platform admin", EventFilter()),
            "platform admin: an actor": ("platform admin", EventFilter(actor="person-5@example.org")),
            "platform admin: the Gateway's": ("platform admin", EventFilter(actor="gateway@example.org")),
            "platform admin: a kind": ("platform admin", EventFilter(kind="membership.added")),
            "platform admin: no event of a kind": ("platform admin", EventFilter(kind="terms.published")),
            "platform admin: a tenant": ("platform admin", EventFilter(tenant=uuid.UUID(int=7))),
            "platform admin: a silent tenant": ("platform admin", EventFilter(tenant=_QUIET)),
            **{name: (name, EventFilter()) for name in list(people)[1:]},
        }

        def append() -> None:
            record_event(EventKind.ROLES_CHANGED, actor="a@example.org", subject="b@example.org")

        columns = []
        filled = 0
        for size in (int(size * _SCALE) for size in _SIZES):
            fill(size - filled, Event)
            filled = size
            cells = [f"{median_ms(append, 300):.2f} ({plan_of(append)['Shared Hit Blocks']})"]
            for name, question in asked.values():
                read = partial(read_events, principal(people[name]), question, limit=50, cursor=None)
                cells.append(f"{median_ms(read, 9):.1f} ({read_rows(plan_of(read)):,})")
            columns.append(cells)
    harness.show(
        "Milliseconds by the number of events (blocks that an append touches, rows that a page reads)",
        ["", *(f"{int(size * _SCALE):,}" for size in _SIZES)],
        [[title, *cells] for title, *cells in zip(["append", *asked], *columns, strict=True)],
    )


def fill(count: int, model: Any) -> None:
    """Add events, spread over the months."""
    from django.db import connection  # noqa: PLC0415  # needs Django

    month = dt.datetime.now(dt.UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    for age in range(_MONTHS):
        end = min((month + dt.timedelta(days=31)).replace(day=1), dt.datetime.now(dt.UTC))
        # Makes the partition.
        model(at=month, kind="user.created", actor="", subject="", request_id="-").save()
        values: dict[str, Any] = {
            "start": month,
            "end": end,
            "rows": count // _MONTHS,
            "oldest": age == _MONTHS - 1,
            "quiet": _QUIET,
        }
        with connection.cursor() as cursor:
            cursor.execute(_FILL, values)
        month = (month - dt.timedelta(days=1)).replace(day=1)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE accounts_event")
        cursor.execute("CHECKPOINT")


def median_ms(call: Callable[[], object], times: int) -> float:
    """Return the median time of a call in milliseconds."""
    spent = []
    for _ in range(times):
        started = time.perf_counter()
        call()
        spent.append((time.perf_counter() - started) * 1000)
    return statistics.median(spent)


def plan_of(call: Callable[[], object]) -> dict[str, Any]:
    """Return the plan of the last query of a call, as executed once more."""
    from django.db import connection  # noqa: PLC0415  # needs Django
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415

    with CaptureQueriesContext(connection) as captured:
        call()
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {captured[-1]['sql']}")
        ((plan,),) = cursor.fetchall()
    found: dict[str, Any] = plan[0]["Plan"]
    return found


def read_rows(plan: dict[str, Any]) -> int:
    """Return how many rows the scans of a plan read, those that a filter removed included."""
    total, nodes = 0, [plan]
    while nodes:
        node = nodes.pop()
        nodes += node.get("Plans", [])
        if "Relation Name" in node:
            removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
            total += round((node["Actual Rows"] + removed) * node["Actual Loops"])
    return total


if __name__ == "__main__":
    main()
