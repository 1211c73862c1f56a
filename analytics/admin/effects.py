"""What each rule did lately, for the list of rules."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

import duckdb

from analytics.summaries.engine import shared_engine
from analytics.summaries.ranges import find_range, rules_of
from tenantadmin.lib.objectstore import StoreError, default_store

if TYPE_CHECKING:
    import datetime as dt
    from uuid import UUID

    from analytics.summaries.documents.rules import RuleRecord

logger = logging.getLogger(__name__)


class RuleEffect(NamedTuple):
    """What a rule did: requests that it decided, their hit rate, and warehouse time saved."""

    requests: int = 0
    rate: float | None = None
    saved_ms: int = 0


def read_effects(tenant_id: UUID, *, first: dt.date, last: dt.date) -> dict[str, RuleEffect] | None:
    """Return what rules did in a range of days, by their ids, or None if the rollups cannot be read."""
    store = default_store()
    try:
        with shared_engine(store) as engine:
            rules = rules_of(engine.connection, store, find_range(tenant=tenant_id, first=first, last=last))
    except (StoreError, duckdb.Error) as error:
        logger.warning("The rollups of %s to %s cannot be read: %s", first, last, error)
        return None
    return {rule.rule_id: _effect_of(rule) for rule in rules}


def _effect_of(rule: RuleRecord) -> RuleEffect:
    rate = rule.cache_hits / rule.total_executions if rule.total_executions else None
    return RuleEffect(rule.total_executions, rate, rule.warehouse_time_saved_ms)
