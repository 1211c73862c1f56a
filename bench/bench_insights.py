"""Explain a logged request, verify a day, and search for recommendations, each beside what it is made of.

Goals: explain takes at most 1.5 times as long as the point read, verify at most 1.3 times its own queries. A
search takes at most 8 times the processor time of one replay of the same days.
"""

from __future__ import annotations

import argparse
import statistics
import time
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

from bench import harness

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from tenantadmin.lib.objectstore import ObjectStore

_LAST: Final = date(2026, 3, 8)
_DAYS: Final = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=50_000, help="entries of eight days")
    parser.add_argument("--runs", type=int, default=15, help="runs of each step, in turn; the median counts")
    options = parser.parse_args()
    with harness.environment():
        from tenantadmin.lib.objectstore import default_store  # noqa: PLC0415  # needs Django

        store = default_store()
        tenant = make_tenant(store, entries=options.entries)
        rows = measure(store, tenant, runs=options.runs)
        rows.append(measure_search(store, tenant))
    harness.show(
        f"Insights: {options.entries:,} entries of {_DAYS} days; the search in processor time",
        ["work", "ms", "beside", "ms", "ratio", "goal"],
        rows,
    )


def make_tenant(store: ObjectStore, *, entries: int) -> UUID:
    """Make a tenant with the rules and the log of the demo, and build its days."""
    from django.core.management import call_command  # noqa: PLC0415  # needs Django

    from analytics.demo.reading import read_demo  # noqa: PLC0415
    from analytics.demo.seed import seed_demo  # noqa: PLC0415

    demo = read_demo()
    share = 30 * entries / _DAYS / demo.profiles[0].entries
    for _ in seed_demo(store, demo, today=_LAST + timedelta(days=1), days=_DAYS, share=share):
        pass
    from accounts.models import Tenant  # noqa: PLC0415

    tenant: UUID = Tenant.objects.get(name=demo.profiles[0].name).pk
    call_command("rebuild", tenant=tenant)
    return tenant


def measure(store: ObjectStore, tenant: UUID, *, runs: int) -> list[list[object]]:
    from analytics.explain import explain_logged  # noqa: PLC0415  # needs Django
    from analytics.models import Kind  # noqa: PLC0415
    from analytics.published.verify import DocumentKey, verify_document  # noqa: PLC0415
    from logs.audit import Reader  # noqa: PLC0415
    from logs.queries import query_rows  # noqa: PLC0415

    reader = Reader("bench@example.org", "192.0.2.1")

    def read(statement: str) -> list[dict[str, Any]]:
        return query_rows(store, tenant=tenant, statement=statement, reader=reader)

    rows: list[list[object]] = []
    for status in ("HIT", "MISS"):
        (entry,) = read(
            f"SELECT logId FROM proxy_logs WHERE day = '{_LAST}' AND cacheStatus = '{status}'"
            " ORDER BY 1 LIMIT 1"
        )
        log_id = entry["logId"]
        point = f"SELECT * FROM proxy_logs WHERE day = '{_LAST}' AND logId = '{log_id}'"

        def explain(log_id: str = log_id) -> None:
            explain_logged(store, tenant=tenant, day=_LAST, log_id=log_id, reader=reader)

        def read_point(statement: str = point) -> None:
            read(statement)

        whole, part = in_turn(explain, read_point, runs=runs)
        rows.append([f"explain a {status}", whole, "point read of its day", part, whole / part, 1.5])
    shares, wholes, parts = [], [], []
    key = DocumentKey(tenant, Kind.DAY, _LAST.isoformat())
    for _ in range(runs):
        start = time.perf_counter()
        verification = verify_document(store, key=key, reader=reader)
        wholes.append(1000 * (time.perf_counter() - start))
        parts.append(float(sum(query.ms for query in verification.queries)))
        shares.append(wholes[-1] / parts[-1])
    ratio = statistics.median(shares)
    rows.append(
        ["verify a day", statistics.median(wholes), "its queries", statistics.median(parts), ratio, 1.3]
    )
    return rows


def measure_search(store: ObjectStore, tenant: UUID) -> list[object]:
    """Return the row of a search for recommendations beside a replay of the current rules."""
    from analytics.advice.mine import mine  # noqa: PLC0415  # needs Django
    from analytics.replay.inputs import Request, collect_input  # noqa: PLC0415
    from analytics.replay.replay import replay  # noqa: PLC0415
    from analytics.summaries.engine import replay_engine  # noqa: PLC0415
    from rules.ruleset import read_ruleset  # noqa: PLC0415

    rules = read_ruleset(tenant).rules
    first = _LAST - timedelta(days=_DAYS - 2)
    collected = collect_input(Request(tenant, rules, first, _LAST, 1, {}))
    job = collected.as_job(store)

    def search() -> None:
        with replay_engine(store) as engine:
            mine(engine.connection, job, collected.current, dismissed={})

    def replay_once() -> None:
        with replay_engine(store) as engine:
            replay(engine.connection, job)

    searched, replayed = in_turn(search, replay_once, runs=3, clock=time.process_time)
    return ["search for recommendations", searched, "replay of its days", replayed, searched / replayed, 8]


def in_turn(
    *steps: Callable[[], None], runs: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the median time of each step in ms."""
    taken: list[list[float]] = [[] for _ in steps]
    for _ in range(runs):
        for step, times in zip(steps, taken, strict=True):
            start = clock()
            step()
            times.append(1000 * (clock() - start))
    return [statistics.median(times) for times in taken]


if __name__ == "__main__":
    main()
