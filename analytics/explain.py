"""Explain a logged request: the rule that decides it, and the reason of a miss.

Contract: "Query log entry and ``proxy_logs``". Audited queries read the log.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from analytics.miss_reasons import MissExplanation, explain_miss
from logs.audit import REQUEST_KEY, record_read, storable
from logs.columns import CACHE_STATUSES
from logs.definitions import DECIDED, STORED_MISS
from logs.models import Partition
from logs.queries import query_rows
from logs.quoting import quote_value
from rules.explain import RequestExplanation, explain
from rules.in_force import choose_rules
from rules.language import read_rules
from tenantadmin.lib.core.errors import NotFound
from tenantadmin.lib.core.structs import JsonStruct, one_of
from tenantadmin.lib.core.timestamps import now, time_of

if TYPE_CHECKING:
    from uuid import UUID

    from logs.audit import Reader
    from tenantadmin.lib.objectstore import ObjectStore

#: The number of days with a log in which an entry is searched whose day is not given.
SEARCHED_DAYS: Final = 31


class LoggedRequestNotFound(NotFound):
    message = "The log has no entry with this logId on this day."


class LoggedRequest(JsonStruct):
    """What the log says of the request; columns of `proxy_logs`."""

    log_id: str
    timestamp: int | None
    cache_status: Annotated[
        Annotated[str, one_of(CACHE_STATUSES)] | None,
        Meta(description="A value outside the twelve statuses is shown as it was logged."),
    ]
    miss_reason: str | None
    matched_rule: str | None
    matched_rule_name: str | None
    cache_key: str | None
    cache_age_seconds: int | None
    cache_ttl_seconds: int | None
    warehouse_execution_time_ms: int | None
    standardized_sql: str | None
    status_code: Annotated[int | None, Meta(description="What the consumer got.")] = None
    query_id: Annotated[str | None, Meta(description="The warehouse's own id of the query.")] = None
    tables: Annotated[str | None, Meta(description="A JSON array as text, as the log has it.")] = None


class Disagreement(JsonStruct):
    """The rule that the log names is not the one that decides. Null means no rule."""

    logged: str | None
    traced: str | None


class LoggedExplanationAnswer(RequestExplanation):
    """What the rules do with a logged request, beside what the log says of it."""

    logged: LoggedRequest
    disagreement: Disagreement | None
    miss: Annotated[MissExplanation | None, Meta(description="Null if the entry is no `MISS`.")]


def explain_logged(
    store: ObjectStore,
    *,
    tenant: UUID,
    log_id: str,
    reader: Reader,
    day: dt.date | None = None,
    seq: int | None = None,
    draft_id: UUID | None = None,
) -> LoggedExplanationAnswer:
    """Explain a logged request by the rules in force at its timestamp, or by a revision or a draft.

    The read of the request, and each query of the log, are audited under the name of ``reader`` before.

    Args:
        day: default: the newest of the last `SEARCHED_DAYS` days of the log that has the entry.

    Raises:
        LoggedRequestNotFound: no such day has the entry.
        ValidationFailed: there is no such revision or draft, or the draft has lint errors.
        TenantNotFound: the tenant is deleted, and its history has no rules for this moment.
    """
    days = f"day = '{day}'" if day is not None else f"day >= '{_first_searched_day(tenant)}'"
    statement = (
        f"SELECT * FROM proxy_logs WHERE {days} AND logId = {quote_value(log_id)} ORDER BY day DESC LIMIT 1"  # noqa: S608
    )
    record_read(reader, tenant=tenant, key=storable(f"{REQUEST_KEY}{log_id}")[:1024])
    rows = query_rows(store, tenant=tenant, statement=statement, reader=reader)
    if not rows:
        raise LoggedRequestNotFound
    entry = rows[0]
    day = dt.date.fromisoformat(entry["day"])
    moment = time_of(entry["timestamp"])
    chosen = choose_rules(tenant, seq=seq, draft_id=draft_id, at=moment)
    miss = None
    if entry["cacheStatus"] in STORED_MISS and moment is not None:
        of_log = chosen if seq is None and draft_id is None else choose_rules(tenant, at=moment)
        varying = [rule.vary_by or () for rule in read_rules(of_log.rules) if rule.id == entry["matchedRule"]]
        key = ("queryHash", *(varying[0] if varying else ()))
        miss = explain_miss(store, tenant, entry, key, day=day, moment=moment, reader=reader)
    explanation = explain(read_rules(chosen.rules), entry)
    traced, logged = explanation.decision.rule_id, entry["matchedRule"]
    disagreement = None
    if entry["cacheStatus"] in DECIDED and logged != traced:
        disagreement = Disagreement(logged=logged, traced=traced)
    return LoggedExplanationAnswer(
        ruleset=chosen.ruleset,
        decision=explanation.decision,
        rules=explanation.rules,
        logged=msgspec.convert(entry, LoggedRequest),
        disagreement=disagreement,
        miss=miss,
    )


def _first_searched_day(tenant: UUID) -> dt.date:
    """Return the first of the newest `SEARCHED_DAYS` days with a log; today if there is none."""
    days = (
        Partition.objects.filter(tenant_id=tenant)
        .exclude(file="")
        .order_by("-day")
        .values_list("day", flat=True)
    )
    return min(days[:SEARCHED_DAYS], default=now().date())
