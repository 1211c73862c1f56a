"""Explain a logged request: which rule decides it and why, and why a miss was a miss.

Contract: "Query log entry and ``proxy_logs``", "Cache status". The log is read by audited queries.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from hashlib import md5
from typing import TYPE_CHECKING, Any, Final

from accounts.models import Revision
from accounts.models.history import RevisionKind
from logs.queries import query_rows
from logs.quoting import quote_text, quote_value
from rules.explain import Explanation, explain
from rules.in_force import ChosenRules, choose_rules
from rules.language import read_rules
from rules.models import Marker
from tenantadmin.lib.core.errors import NotFound
from tenantadmin.lib.core.timestamps import format_timestamp, from_epoch_ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from logs.audit import Reader
    from tenantadmin.lib.objectstore import ObjectStore

#: How far back the stores of a key are searched.
HISTORY_DAYS: Final = 7
_HISTORY_MS: Final = HISTORY_DAYS * 86_400_000
#: A longer statement is found by its hash.
_MAX_QUOTED_BYTES: Final = 16 << 10
#: The statuses that rules decide.
_DECIDED: Final = frozenset(
    {"HIT", "MISS", "BYPASS", "PASSTHROUGH", "BLOCKED", "HOLD", "ERROR", "INVALIDATION_ERROR"}
)
_ENTRY_COLUMNS: Final = (
    "timestamp, logId, cacheStatus, queryHash, parameterValues, warehouseExecutionTimeMs, cacheKeyVersion, "
    "cacheTtlSeconds, cacheExpiresAt"
)
_SHOWN_COLUMNS: Final = (
    *("logId", "timestamp", "cacheStatus", "missReason", "matchedRule", "matchedRuleName", "cacheKey"),
    *("cacheAgeSeconds", "cacheTtlSeconds", "warehouseExecutionTimeMs", "standardizedSql"),
)


class LoggedRequestNotFound(NotFound):
    message = "The day has no log entry with this logId."


@dataclass(frozen=True, slots=True)
class LoggedExplanation:
    """The explanation of a logged request, beside what the log says of it."""

    entry: Mapping[str, Any]
    chosen: ChosenRules
    explanation: Explanation
    miss: Mapping[str, Any] | None

    def as_json(self) -> dict[str, Any]:
        """Return the contract's answer."""
        traced = self.explanation.decision.rule_id
        logged = self.entry["matchedRule"]
        is_decided = self.entry["cacheStatus"] in _DECIDED
        return {
            "logged": {name: self.entry[name] for name in _SHOWN_COLUMNS},
            "ruleset": self.chosen.as_json(),
            "disagreement": {"logged": logged, "traced": traced} if is_decided and logged != traced else None,
            "miss": self.miss,
            **self.explanation.as_json(),
        }


def explain_logged(
    store: ObjectStore,
    *,
    tenant: UUID,
    day: dt.date,
    log_id: str,
    reader: Reader,
    seq: int | None = None,
    draft_id: UUID | None = None,
) -> LoggedExplanation:
    """Explain the request of a log entry by the rules in force at its timestamp, or by a revision or a draft.

    Each query of the log is audited as one of ``reader`` before it runs.

    Raises:
        LoggedRequestNotFound: the day has no such entry.
        ValidationFailed: there is no such revision or draft, or the draft has lint errors.
        TenantNotFound: the tenant is deleted, and its history has no rules for this moment.
    """
    statement = f"SELECT * FROM proxy_logs WHERE day = {quote_text(day)} AND logId = {quote_text(log_id)}"  # noqa: S608
    found = query_rows(store, tenant=tenant, statement=statement, reader=reader)
    if not found:
        raise LoggedRequestNotFound
    entry = found[0]
    moment = time_of(entry["timestamp"])
    chosen = choose_rules(tenant, seq=seq, draft_id=draft_id, at=moment)
    miss = None
    if entry["cacheStatus"] == "MISS" and moment is not None:
        miss = _explain_miss(store, tenant, entry, day=day, moment=moment, reader=reader)
    return LoggedExplanation(entry, chosen, explain(read_rules(chosen.rules), entry), miss)


def time_of(timestamp: int | None) -> dt.datetime | None:
    """Return a timestamp of the log (epoch ms); None if it is null or outside of the years 1 to 9999."""
    if timestamp is None:
        return None
    try:
        return from_epoch_ms(timestamp)
    except OverflowError:
        return None


def _explain_miss(
    store: ObjectStore,
    tenant: UUID,
    entry: Mapping[str, Any],
    *,
    day: dt.date,
    moment: dt.datetime,
    reader: Reader,
) -> dict[str, Any]:
    """Return why a MISS was one: ``{reason, reconstructed, …}`` with the evidence for that reason.

    The first of these that applies: ``restart``, ``ttl-expired``, ``invalidation-marker``, ``not-stored``,
    ``no-cache-entry``. If the log gives a reason, only those count that it can mean.
    """
    statement = _earlier_entries(entry, day=day)
    earlier = query_rows(store, tenant=tenant, statement=statement, reader=reader)
    own = [row for row in earlier if row["queryHash"] == entry["queryHash"]]
    stored = next((row for row in own if row["cacheStatus"] == "MISS"), None)
    logged = entry["missReason"]
    findings = {}
    if stored is not None:
        born = stored["timestamp"] + (stored["warehouseExecutionTimeMs"] or 0)
        findings = {
            "restart": _find_restart(tenant, entry, stored, moment=moment),
            "ttl-expired": _find_expiry(entry, stored, born=born),
            "invalidation-marker": _find_marker(tenant, entry, born=born, moment=moment),
        }
    findings["not-stored"] = (
        {"lastExecution": _reference(own[0])} if own and own[0]["cacheStatus"] == "ERROR" else None
    )
    possible = _MEANINGS.get(logged, tuple(findings))
    for reason, evidence in findings.items():
        if reason in possible and evidence is not None:
            return {"reason": reason, "reconstructed": logged is None, **evidence}
    # The log may know of a marker or a store that is not on record here.
    reason = logged or "no-cache-entry"
    nearest = next((row for row in earlier if row["queryHash"] != entry["queryHash"]), None)
    return {
        "reason": reason,
        "reconstructed": logged is None,
        "firstInDays": HISTORY_DAYS if stored is None else None,
        **({} if stored is None else {"lastStore": _reference(stored)}),
        "nearest": None
        if nearest is None
        else {**_reference(nearest), "parameterValues": nearest["parameterValues"]},
    }


#: What each reason of the log can mean. A restart leaves the cache behind, which the Gateway sees as empty.
_MEANINGS: Final[Mapping[str | None, Sequence[str]]] = {
    "no-cache-entry": ("restart", "not-stored"),
    "ttl-expired": ("ttl-expired",),
    "invalidation-marker": ("invalidation-marker",),
}


def _earlier_entries(entry: Mapping[str, Any], *, day: dt.date) -> str:
    """Return the query for the newest earlier entries of the same rule and statement.

    There is at most one of each status, of the own key and of other keys. The newest entry comes first.
    """
    first = day - dt.timedelta(days=min(HISTORY_DAYS, day.toordinal() - 1))
    timestamp = int(entry["timestamp"])
    is_own = f"queryHash IS NOT DISTINCT FROM {quote_value(entry['queryHash'])}"
    return (
        f"SELECT {_ENTRY_COLUMNS} FROM proxy_logs"  # noqa: S608  # quoted values
        f" WHERE day BETWEEN '{first}' AND '{day}'"
        f" AND timestamp BETWEEN {timestamp - _HISTORY_MS} AND {timestamp - 1}"
        f" AND cacheStatus IN ('MISS', 'ERROR') AND {_has_statement(entry['standardizedSql'])}"
        f" AND matchedRule IS NOT DISTINCT FROM {quote_value(entry['matchedRule'])}"
        " QUALIFY row_number() OVER"
        f" (PARTITION BY {is_own}, cacheStatus ORDER BY timestamp DESC, logId) = 1"
        " ORDER BY timestamp DESC, logId"
    )


def _has_statement(statement: str | None) -> str:
    """Return the SQL condition for entries of this statement."""
    if statement is None:
        return "standardizedSql IS NULL"
    text = statement.encode()
    if len(text) <= _MAX_QUOTED_BYTES:
        return f"standardizedSql = {quote_value(statement)}"
    # Slower, but a statement may be longer than a query may be.
    return f"md5(standardizedSql) = '{md5(text, usedforsecurity=False).hexdigest()}'"


def _find_restart(
    tenant: UUID, entry: Mapping[str, Any], stored: Mapping[str, Any], *, moment: dt.datetime
) -> dict[str, Any] | None:
    """Return what left the cache behind since the last store: a write of the rules or a new key version."""
    revision = (
        Revision.objects.filter(
            kind=RevisionKind.RULES,
            tenant_id=tenant,
            changed_at__gt=time_of(stored["timestamp"]),
            changed_at__lte=moment,
        )
        .order_by("-seq")
        .values_list("seq", "changed_at")
        .first()
    )
    if revision is not None:
        return {
            "revision": {"seq": revision[0], "changedAt": format_timestamp(revision[1])},
            "lastStore": _reference(stored),
        }
    if (entry["cacheKeyVersion"] or 0) > (stored["cacheKeyVersion"] or 0) > 0:
        return {"cacheKeyVersion": entry["cacheKeyVersion"], "lastStore": _reference(stored)}
    return None


def _find_expiry(entry: Mapping[str, Any], stored: Mapping[str, Any], *, born: int) -> dict[str, Any] | None:
    """Return when the last stored result expired, and the shortest TTL that would have been a hit."""
    ttl = stored["cacheTtlSeconds"] or entry["cacheTtlSeconds"]
    if ttl is None or entry["timestamp"] < born + 1000 * ttl:
        return None
    return {
        "lastStore": _reference(stored),
        "expiredAt": _show(born + 1000 * ttl),
        "ttlSeconds": ttl,
        "ttlNeeded": (entry["timestamp"] - born) // 1000 + 1,
    }


def _find_marker(
    tenant: UUID, entry: Mapping[str, Any], *, born: int, moment: dt.datetime
) -> dict[str, Any] | None:
    """Return the newest marker on the rule that was made after the result and before the request."""
    marker = (
        Marker.objects.filter(
            tenant=tenant,
            target_rule_id=entry["matchedRule"] or "",
            invalidated_at__gt=time_of(born),
            invalidated_at__lte=moment,
        )
        .order_by("-invalidated_at", "-pk")
        .first()
    )
    if marker is None:
        return None
    return {
        "marker": {
            "markerId": marker.marker_id,
            "invalidatedAt": format_timestamp(marker.invalidated_at),
            "invalidatedBy": marker.invalidated_by,
        }
    }


def _reference(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"logId": entry["logId"], "at": _show(entry["timestamp"])}


def _show(timestamp: int) -> str | None:
    moment = time_of(timestamp)
    return None if moment is None else format_timestamp(moment)
