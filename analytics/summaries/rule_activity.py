"""What each rule did in some days. Contract: Analytics."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated

from django.db.models import Max
from msgspec import Meta

from analytics.models import DayRollup
from analytics.summaries.activity import Range
from analytics.summaries.documents.rules import RuleRecord
from analytics.summaries.engine import shared_engine
from analytics.summaries.ranges import find_range, rules_of
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from uuid import UUID

    from tenantadmin.lib.objectstore import ObjectStore


class RuleActivity(JsonStruct):
    """What each rule did in some days, both ends included (UTC)."""

    from_: date
    to: date
    rules: Annotated[list[RuleRecord], Meta(description="The rule with the most hits and misses first.")]


def read_rule_activity(
    store: ObjectStore, *, tenant: UUID, first: date | None = None, last: date | None = None
) -> RuleActivity:
    """Return what each rule did from ``first`` to ``last``. The default is that of `read_activity`.

    Raises:
        StoreError, duckdb.Error: the rollups cannot be read.
    """
    if last is None:
        last = DayRollup.objects.filter(tenant_id=tenant).aggregate(last=Max("day"))["last"]
    chosen = Range.of(first, last)
    files = find_range(tenant=tenant, first=chosen.first, last=chosen.last)
    with shared_engine(store) as engine:
        return RuleActivity(
            from_=chosen.first, to=chosen.last, rules=rules_of(engine.connection, store, files)
        )
