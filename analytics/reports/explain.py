"""Explain logged requests: the rule that decides one, why it was a miss, and what can be done.

Contract: "Query log entry and ``proxy_logs``", "Cache status". Audited queries read the log.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from accounts.models import Revision
from accounts.models.history import RevisionKind
from logs.audit import REQUEST_KEY, Reader, record_read, storable
from logs.columns import CACHE_STATUSES
from logs.definitions import DECIDED, FAILED, STORED_MISS, Statuses, hash_sql, hash_statement
from logs.models import Partition
from logs.programs import name_program
from logs.queries import query_rows
from logs.quoting import quote_value
from rules.explain import RequestExplanation, explain
from rules.in_force import choose_rules
from rules.language import read_rules
from rules.models import Marker
from tenantadmin.lib.core.errors import NotFound
from tenantadmin.lib.core.formats import duration, span
from tenantadmin.lib.core.rendering import is_storable
from tenantadmin.lib.core.structs import Count, JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp, days_before, format_timestamp, now, show_time, time_of

if TYPE_CHECKING:
    from tenantadmin.lib.objectstore import ObjectStore


#: What each reason means for one request. `describe_reason` adds how long the result was kept.
_MEANINGS: Final[Mapping[str, str]] = {
    "restart": "The cache was emptied after the result was stored, for example when rules were published.",
    "ttl-expired": "The stored result had expired",
    "invalidation-marker": "An invalidation had ended the stored result.",
    "not-stored": "The last execution failed, so nothing was stored.",
    "no-cache-entry": "The cache had no result for this request.",
}
_UNKNOWN: Final = "The log gives no reason. Open a request: its page finds the reason from earlier requests."
#: What the reason of many requests means for the rule.
_ADVICE: Final[Mapping[str, str]] = {
    "ttl-expired": "A longer lifetime makes more of these hits, with results that are less fresh.",
    "invalidation-marker": "A table that it reads had changed, so a hit would have been stale.",
    "no-cache-entry": "It was the first with its values, or the cache was emptied since, as publishing does. "
    "A longer lifetime changes nothing here.",
}


def describe_reason(reason: str, *, kept: tuple[int, int] | None = None, needed: int | None = None) -> str:
    """Return what the reason of a miss means.

    Args:
        kept: the least and the most seconds that the results were kept.
        needed: the least seconds with which the request would have been a hit.
    """
    text = _MEANINGS.get(reason, reason)
    if reason != "ttl-expired":
        return text
    if kept is not None:
        text += ": it was fresh for " + " to ".join(dict.fromkeys(map(span, kept)))
    if needed is None:
        return f"{text}."
    return f"{text}. It would have been a hit if the result had stayed fresh for {duration(1000 * needed)}."


def describe_reasons(reason: str | None, *, kept: tuple[int, int] | None) -> str:
    """Return what it means that many misses have this reason, and what can be done."""
    if reason is None:
        return _UNKNOWN
    return f"{describe_reason(reason, kept=kept)} {_ADVICE.get(reason, '')}".rstrip()


#: The number of days in which to search for earlier stores of a key.
HISTORY_DAYS: Final = 7
_HISTORY_MS: Final = HISTORY_DAYS * 86_400_000
#: A longer statement is searched by its hash.
_MAX_QUOTED_BYTES: Final = 16 << 10
_ENTRY_COLUMNS: Final = (
    "timestamp, logId, cacheStatus, queryHash, parameterValues, warehouseExecutionTimeMs, cacheKeyVersion, "
    "cacheTtlSeconds, cacheExpiresAt"
)

MissReason: TypeAlias = Literal[
    "restart", "ttl-expired", "invalidation-marker", "not-stored", "no-cache-entry"
]
#: The reasons that each reason of the log may stand for. A restart empties the cache, so the Gateway finds no
#: entry.
_POSSIBLE_REASONS: Final[Mapping[str | None, Sequence[str]]] = {
    "no-cache-entry": ("restart", "not-stored"),
    "ttl-expired": ("ttl-expired",),
    "invalidation-marker": ("invalidation-marker",),
}


class EntryReference(JsonStruct):
    log_id: str | None
    at: Timestamp | None


class NearestEntry(EntryReference):
    parameter_values: str | None


class RestartRevision(JsonStruct):
    seq: Count
    changed_at: Timestamp


class MissMarker(JsonStruct):
    marker_id: str
    invalidated_at: Timestamp
    invalidated_by: dict[str, Any]


class MissExplanation(JsonStruct):
    """Why a `MISS` was one, with the evidence for this reason."""

    reason: MissReason
    reconstructed: Annotated[bool, Meta(description="True if the log gives no reason.")]
    last_store: Annotated[
        EntryReference | None, Meta(description="The last entry that stored this result.")
    ] = None
    stored_at: Annotated[
        Timestamp | None, Meta(description="When its execution ended. From then on the result was fresh.")
    ] = None
    revision: Annotated[
        RestartRevision | None, Meta(description="The write of the rules that emptied the cache.")
    ] = None
    cache_key_version: Annotated[
        int | None, Meta(description="The version of cache keys that emptied the cache.")
    ] = None
    expired_at: Timestamp | None = None
    ttl_seconds: Count | None = None
    ttl_needed: Annotated[
        Count | None, Meta(description="The shortest TTL, in seconds, that would have been a hit.")
    ] = None
    marker: MissMarker | None = None
    last_execution: Annotated[EntryReference | None, Meta(description="It failed, and stored nothing.")] = (
        None
    )
    first_in_days: Annotated[
        Count | UnsetType | None, Meta(description="The number of days in which no earlier store was found.")
    ] = UNSET
    nearest: Annotated[
        NearestEntry | UnsetType | None,
        Meta(description="The last store of the same statement and rule with other values."),
    ] = UNSET
    text: Annotated[str, Meta(description="What the reason means, in plain words.")] = ""


def explain_miss(
    store: ObjectStore,
    tenant: UUID,
    entry: Mapping[str, Any],
    key: Sequence[str],
    *,
    day: dt.date,
    moment: dt.datetime,
    reader: Reader,
) -> MissExplanation:
    """Return the reason of a MISS, with evidence.

    The first of these that applies: ``restart``, ``ttl-expired``, ``invalidation-marker``, ``not-stored``,
    ``no-cache-entry``. If the log gives a reason, only its possible meanings are considered. ``key`` are the
    columns in which requests for the same result agree.
    """
    statement = _earlier_entries(entry, key, day=day)
    earlier = query_rows(store, tenant=tenant, statement=statement, reader=reader)
    found = _find_reason(tenant, entry, earlier, moment=moment)
    kept = None if found.ttl_seconds is None else (found.ttl_seconds, found.ttl_seconds)
    return msgspec.structs.replace(
        found, text=describe_reason(found.reason, kept=kept, needed=found.ttl_needed)
    )


def _find_reason(
    tenant: UUID, entry: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]], *, moment: dt.datetime
) -> MissExplanation:
    """Return the reason of a MISS with its evidence, from the entries of `_earlier_entries`."""
    own = [row for row in earlier if row["isOwn"]]
    stored = next((row for row in own if row["cacheStatus"] in STORED_MISS), None)
    logged = entry["missReason"]
    findings: dict[MissReason, MissExplanation | None] = {}
    if stored is not None:
        born = stored["timestamp"] + (stored["warehouseExecutionTimeMs"] or 0)
        findings = {
            "restart": _find_restart(tenant, entry, stored, born=born, moment=moment),
            "ttl-expired": _find_expiry(entry, stored, born=born),
            "invalidation-marker": _find_marker(tenant, entry, born=born, moment=moment),
        }
    findings["not-stored"] = None
    if own and own[0]["cacheStatus"] in FAILED:
        findings["not-stored"] = MissExplanation(
            reason="not-stored", reconstructed=logged is None, last_execution=_reference(own[0])
        )
    possible = _POSSIBLE_REASONS.get(logged, tuple(findings))
    for reason, explanation in findings.items():
        if reason in possible and explanation is not None:
            return explanation
    nearest = next((row for row in earlier if not row["isOwn"]), None)
    return MissExplanation(
        # The log may refer to a marker or a store that is not stored here.
        reason=logged or "no-cache-entry",
        reconstructed=logged is None,
        first_in_days=HISTORY_DAYS if stored is None else None,
        last_store=None if stored is None else _reference(stored),
        nearest=None
        if nearest is None
        else NearestEntry(
            log_id=nearest["logId"],
            at=show_time(nearest["timestamp"]),
            parameter_values=nearest["parameterValues"],
        ),
    )


def _earlier_entries(entry: Mapping[str, Any], key: Sequence[str], *, day: dt.date) -> str:
    """Return the query for the newest earlier entries of the same rule and statement.

    It returns the newest entry of each status with the same key, and with other keys; the newest first.
    """
    first = days_before(day, HISTORY_DAYS)
    timestamp = int(entry["timestamp"])
    is_own = " AND ".join(f"{name} IS NOT DISTINCT FROM {quote_value(entry[name])}" for name in key)
    return (
        f"SELECT {_ENTRY_COLUMNS}, {is_own} AS isOwn FROM proxy_logs"  # noqa: S608  # quoted values
        f" WHERE day BETWEEN '{first}' AND '{day}'"
        f" AND timestamp BETWEEN {timestamp - _HISTORY_MS} AND {timestamp - 1}"
        f" AND {Statuses(*STORED_MISS, *FAILED)} AND {_has_statement(entry['standardizedSql'])}"
        f" AND matchedRule IS NOT DISTINCT FROM {quote_value(entry['matchedRule'])}"
        " QUALIFY row_number() OVER"
        f" (PARTITION BY {is_own}, cacheStatus ORDER BY timestamp DESC, logId) = 1"
        " ORDER BY timestamp DESC, logId"
    )


def _has_statement(statement: str | None) -> str:
    """Return the SQL condition for entries with this statement."""
    if statement is None:
        return "standardizedSql IS NULL"
    if len(statement.encode()) <= _MAX_QUOTED_BYTES:
        return f"standardizedSql = {quote_value(statement)}"
    # This is slower, but a query may not be as long as a statement.
    return f"{hash_sql()} = '{hash_statement(statement)}'"


def _find_restart(
    tenant: UUID, entry: Mapping[str, Any], stored: Mapping[str, Any], *, born: int, moment: dt.datetime
) -> MissExplanation | None:
    """Return what emptied the cache since the last store: a write of the rules or a new key version."""
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
    has_new_keys = (entry["cacheKeyVersion"] or 0) > (stored["cacheKeyVersion"] or 0) > 0
    if revision is None and not has_new_keys:
        return None
    return MissExplanation(
        reason="restart",
        reconstructed=entry["missReason"] is None,
        revision=None
        if revision is None
        else RestartRevision(seq=revision[0], changed_at=format_timestamp(revision[1])),
        cache_key_version=entry["cacheKeyVersion"] if revision is None else None,
        last_store=_reference(stored),
        stored_at=show_time(born),
    )


def _find_expiry(entry: Mapping[str, Any], stored: Mapping[str, Any], *, born: int) -> MissExplanation | None:
    """Return when the last stored result expired, and the shortest TTL that would have been a hit."""
    ttl = stored["cacheTtlSeconds"] or entry["cacheTtlSeconds"]
    if ttl is None or entry["timestamp"] < born + 1000 * ttl:
        return None
    return MissExplanation(
        reason="ttl-expired",
        reconstructed=entry["missReason"] is None,
        last_store=_reference(stored),
        stored_at=show_time(born),
        expired_at=show_time(born + 1000 * ttl),
        ttl_seconds=ttl,
        ttl_needed=(entry["timestamp"] - born) // 1000 + 1,
    )


def _find_marker(
    tenant: UUID, entry: Mapping[str, Any], *, born: int, moment: dt.datetime
) -> MissExplanation | None:
    """Return the newest marker on the rule that was made after the result and before the request."""
    rule, born_at = entry["matchedRule"] or "", time_of(born)
    if born_at is None or not is_storable(rule):
        return None
    marker = (
        Marker.objects.filter(
            tenant=tenant,
            target_rule_id=rule,
            invalidated_at__gt=born_at,
            invalidated_at__lte=moment,
        )
        .order_by("-invalidated_at", "-pk")
        .first()
    )
    if marker is None:
        return None
    return MissExplanation(
        reason="invalidation-marker",
        reconstructed=entry["missReason"] is None,
        marker=MissMarker.of(marker),
    )


def _reference(entry: Mapping[str, Any]) -> EntryReference:
    return EntryReference(log_id=entry["logId"], at=show_time(entry["timestamp"]))


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
    program: Annotated[str | None, Meta(description="Who asked, by `userAgent`.")] = None


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
        logged=msgspec.convert({**entry, "program": name_program(entry["userAgent"])}, LoggedRequest),
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
