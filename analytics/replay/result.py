"""The result of a replay, as it is stored and sent. docs/replay.md defines every number."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from analytics.replay.billed import ReplayBilled
from analytics.replay.calibration import Bounds, Calibration, MovedRequests
from analytics.replay.caveats import find_days_left_out
from analytics.replay.evidence import EvidenceQuery
from analytics.replay.leaks import ReplayLeaks
from analytics.replay.publish_cost import PublishCost
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from analytics.replay.job import Gateway, Job
    from analytics.replay.window import LoadedRequests


class RiskCount(JsonStruct):
    """Hits that may have been stale. Writes past the Gateway are invisible."""

    low: Count
    high: Count


class ReplayCounts(JsonStruct):
    """What a ruleset does with the requests of a replay. Times in ms, sizes in bytes."""

    hits: Bounds
    saved_ms: Bounds
    misses: Count
    spent_ms: Count
    hit_bytes: Count
    risk: RiskCount
    requests: Annotated[Count, Meta(description="Log entries of any status.")]
    stale_hits: Count
    miss_reasons: dict[str, Count]
    holds: Count
    bypassed: Count
    blocked: Count
    passed: Count
    errors: Count
    invalidation_errors: Count
    revalidations: Count
    fired: Count
    markers: Count


class ReplayRuleCounts(ReplayCounts):
    """What one rule does with the requests of a replay."""

    rule_id: Annotated[str | None, Meta(description="Null: requests without a rule.")]


class ReplayRuleset(JsonStruct):
    seq: Annotated[
        Count | None, Meta(description="The revision of the rules. Absent in replays of earlier releases.")
    ] = None
    total: ReplayCounts
    rules: list[ReplayRuleCounts]


class ReplayRows(JsonStruct):
    decidable: Count
    outside: Count
    exact: Count
    known: Count
    open: Count


class ReplayWindow(JsonStruct):
    from_: dt.date
    to: dt.date
    warmup_days: Count
    days_left_out: list[dt.date] | None = None
    empty_columns: Annotated[
        dict[str, list[str]] | None,
        Meta(
            description="Of days left out: columns that the rules read and no request has. "
            "Absent in replays of earlier releases."
        ),
    ] = None
    text: Annotated[str | None, Meta(description="The counted days, in words.")] = None


class LearnedGateway(JsonStruct):
    """What the Gateway does by itself; null: not known.

    Whether it declines requests is then within the bounds; that it keeps users apart is not assumed.
    """

    nocache: bool | None
    non_deterministic: bool | None
    keys_per_user: bool | None


class ReplayInput(JsonStruct):
    window: ReplayWindow
    rows: ReplayRows
    gateway: LearnedGateway


class ReplayResult(ReplayInput):
    calibration: Calibration
    total: ReplayCounts
    rules: list[ReplayRuleCounts]
    against: ReplayRuleset
    billed: ReplayBilled
    moved: list[MovedRequests]
    leaks: ReplayLeaks
    publish_cost: PublishCost
    caveats: list[str]
    evidence: list[EvidenceQuery]
    names: Annotated[
        dict[str, str] | None,
        Meta(description="The names of the rules by id. Absent in replays of earlier releases."),
    ] = None


def describe_input(job: Job, loaded: LoadedRequests, gateway: Gateway) -> ReplayInput:
    """Describe the loaded requests and what was learned of the Gateway."""
    return ReplayInput(
        window=ReplayWindow(
            from_=job.first_day,
            to=job.last_day,
            warmup_days=job.warmup_days,
            days_left_out=find_days_left_out(job, loaded),
            empty_columns={day.isoformat(): names for day, names in loaded.empty_columns.items()},
        ),
        rows=ReplayRows(
            decidable=loaded.decidable,
            outside=loaded.outside,
            exact=loaded.exact,
            known=loaded.known,
            open=loaded.open,
        ),
        gateway=LearnedGateway(
            nocache=gateway.nocache,
            non_deterministic=gateway.non_deterministic,
            keys_per_user=gateway.keys_per_user,
        ),
    )


def complete_gateway(stored: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a stored result or report. Earlier releases did not learn ``gateway.keysPerUser``: null."""
    if stored is None or "gateway" not in stored:
        return stored
    return {**stored, "gateway": {"keysPerUser": None, **stored["gateway"]}}
