"""What each rule did lately, for the list of rules."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb

from analytics.summaries.rule_activity import read_rule_activity
from tenantadmin.lib.objectstore import StoreError, default_store

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping
    from uuid import UUID

logger = logging.getLogger(__name__)


class RuleEffect(NamedTuple):
    """What a rule did: requests that it decided, their hit rate, time saved, and what did not run."""

    requests: int = 0
    rate: float | None = None
    saved_ms: int | None = None
    refused: int = 0


def read_effects(
    tenant_id: UUID, *, first: dt.date, last: dt.date, savings: Mapping[str, Any] | None
) -> dict[str, RuleEffect] | None:
    """Return what rules did in a range of days, by their ids, or None if the rollups cannot be read.

    Args:
        savings: the members of `Savings` of these days; without them, the time saved is estimated.
    """
    try:
        rules = read_rule_activity(default_store(), tenant=tenant_id, first=first, last=last).rules
    except (StoreError, duckdb.Error) as error:
        logger.warning("The rollups of %s to %s cannot be read: %s", first, last, error)
        return None
    if savings is None:
        saved = {rule.rule_id: rule.warehouse_time_saved_ms for rule in rules}
    else:
        saved = {rule["ruleId"]: rule["busyMs"] for rule in savings["rules"]}
    return {
        rule.rule_id: RuleEffect(
            rule.total_executions,
            rule.cache_hits / rule.total_executions if rule.total_executions else None,
            saved.get(rule.rule_id),
            rule.others,
        )
        for rule in rules
    }
