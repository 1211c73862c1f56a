"""A log in which a rule saves warehouse time, and searches for recommendations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.advice.recommend import accept_recommendation, queue_mining
from analytics.advice.search import run_mining
from analytics.models import Recommendation
from analytics.summaries.days import find_stale_days, rebuild_day
from tenantadmin.lib.objectstore import default_store
from tests.analytics.advice.logs import Arrival, make_log, read
from tests.analytics.replay.streams import DAYS
from tests.objects import save_entries

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID


MINUTE = 60_000
DAY_MS = 1440 * MINUTE
#: On each of three days, 20 requests for one result of an expensive statement.
ADS = [
    read("SELECT sum(x) FROM m.ads WHERE c = ?", "m.ads", at=day * DAY_MS + number * 20 * MINUTE, ms=5000)
    for day in range(3)
    for number in range(20)
]
#: As many of another one, each for another result.
RARE = [
    read(
        "SELECT * FROM m.rare WHERE id = ?",
        "m.rare",
        at=day * DAY_MS + n * MINUTE,
        value=day * 50 + n,
    )
    for day in range(3)
    for n in range(20)
]


def put_log(tenant: UUID, arrivals: Iterable[Arrival], rules: Any = ()) -> None:
    """Store and build the log that a Gateway with these rules makes."""
    rows = make_log(arrivals, (0, rules))
    for day in DAYS:
        if of_day := [row for row in rows if row["day"] == day.isoformat()]:
            save_entries(tenant, day, of_day)
    for stale in find_stale_days(default_store(), tenant=tenant):
        rebuild_day(default_store(), tenant=tenant, day=stale)


def search(tenant: UUID) -> list[Recommendation]:
    queue_mining(tenant_id=tenant, actor="system")
    found = run_mining(default_store(), tenant_id=tenant)
    assert found is not None
    assert (found.state, found.error) == ("done", "")
    return list(Recommendation.objects.filter(tenant_id=tenant, state="open").order_by("rank"))


def accept(found: Recommendation) -> Any:
    return accept_recommendation(
        tenant_id=found.tenant_id,
        recommendation_id=found.pk,
        actor="ada@example.org",
    )
