"""The result of a replay, as it is stored and sent. docs/replay.md defines every number."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from analytics.replay.sample import Sample
from rules.dialects.text import WITHOUT_SCHEMA
from tenantadmin.lib.core.structs import Count, JsonStruct


class Caveat(StrEnum):
    """Codes of what limits a result. Contract: docs/replay.md."""

    WRITES_PAST_GATEWAY = "writes-past-gateway-invisible"
    LITERALS_HIDDEN = "literals-hidden"
    GATEWAY_UNKNOWN = "gateway-unknown"
    KEYS_PER_USER = "keys-per-user"
    COMMENTS_VARY = "comments-vary"
    DAYS_LEFT_OUT = "days-left-out"
    COLUMNS_ABSENT = "columns-absent"
    COLD_START = "cold-start"
    CALIBRATION_FAIR = "calibration-fair"
    CALIBRATION_POOR = "calibration-poor"
    CACHE_DISABLED = "cache-disabled"
    WITHOUT_SCHEMA = WITHOUT_SCHEMA
    SESSIONS_INVISIBLE = "session-settings-invisible"
    SAMPLED = "sampled"


ReplayGrade: TypeAlias = Literal["good", "fair", "poor"]


class Bounds(JsonStruct):
    """What is certain, what is likely, and what is possible where the log hides literals."""

    low: Count
    likely: Count | None
    high: Count


class LoggedReplayed(JsonStruct):
    logged: Count
    replayed: Count


class CalibratedRule(JsonStruct):
    rule_id: str
    hits: LoggedReplayed
    misses: LoggedReplayed


class CalibrationCause(JsonStruct):
    logged: str
    replayed: str
    count: Count
    why: str


class Calibration(JsonStruct):
    """The log compared with the replay of the ruleset that was in force."""

    rows: Count
    equal: Count
    share: float | None
    grade: ReplayGrade
    rules: list[CalibratedRule]
    causes: list[CalibrationCause]
    requests: Annotated[
        LoggedReplayed | None,
        Meta(description="Hits, misses and not cached, of `rows`. Absent in replays of earlier releases."),
    ] = None


class MovedRequests(JsonStruct):
    """Requests whose status changes from the current ruleset to the replayed one."""

    from_: str
    to: str
    count: Annotated[Count, Meta(description="Where the log hides literals, as if all of them differed.")]
    examples: Annotated[list[str], Meta(description="`logId`s, at most three.")]
    bounds: Annotated[
        Bounds | None, Meta(description="Of the count, as of hits. Absent in replays of earlier releases.")
    ] = None


class ReplayLeak(JsonStruct):
    """A rule under which several users get the same result of a statement that depends on the user."""

    rule_id: str
    rule_name: str
    statements: Count
    users: Annotated[Count, Meta(description="The most users who get the results of one statement.")]
    words: Annotated[
        tuple[str, ...],
        Meta(description="The words on which these results depend, such as `CURRENT_USER`, at most 10."),
    ] = ()


class ReplayLeaks(JsonStruct):
    """Statements that leak under one of two rulesets only, by rule."""

    ended: Annotated[list[ReplayLeak], Meta(description="They leak under the current ruleset.")]
    begun: Annotated[list[ReplayLeak], Meta(description="They leak under the replayed ruleset.")]


class SampledRange(JsonStruct):
    """Two values. That of the replay of all entries lies between them in 95 % of samples."""

    low: int
    high: int


#: In a sampled replay, the ranges of counts, by the name of their member.
SampledRanges: TypeAlias = Annotated[
    dict[str, SampledRange] | None,
    Meta(
        description="The bounds of counts at 95 %, by the name of the count. They allow for hidden literals. "
        "Absent if all entries were replayed."
    ),
]


class HourCost(JsonStruct):
    hour: Annotated[int, Meta(ge=0, le=23)]
    extra_misses: Count
    extra_ms: Count
    sampled: SampledRanges = None


class PublishCost(JsonStruct):
    """What leaving the cache behind costs, by hour of the day (UTC)."""

    by_hour: list[HourCost]
    best: HourCost
    now: HourCost


class BilledRange(JsonStruct):
    """Two values: if hidden literals all differ, and if they are equal. The lower one is first."""

    low: int
    high: int


class MoneyRange(JsonStruct):
    """What the billed time costs, with all digits of the currency, as `12.30`."""

    currency: str
    low: str
    high: str


class Billed(JsonStruct):
    """What the warehouse bills for the days of the window."""

    billed_ms: BilledRange
    money: Annotated[MoneyRange | None, Meta(description="Null without a price.")]


class ReplayBilled(JsonStruct):
    """Billed time and money of the replayed ruleset, of the current one, and the first less the second."""

    total: Billed
    against: Billed
    gain: Billed


class EvidenceQuery(JsonStruct):
    name: str
    sql: str


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
    sampled: SampledRanges = None


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
    absent_columns: Annotated[
        Sequence[str] | None,
        Meta(description="Of an assessment: columns that the rules read and its history has not."),
    ] = None
    text: Annotated[str | None, Meta(description="The counted days, in words.")] = None


class LearnedGateway(JsonStruct):
    """What the Gateway does by itself; null: not known.

    Whether it declines requests is then within the bounds; that it keeps users apart is not assumed.
    """

    nocache: bool | None
    non_deterministic: bool | None
    keys_per_user: bool | None


class SampledChange(JsonStruct):
    """By how much the counts of a rule change from the current to the replayed ruleset, at 95 %."""

    rule_id: Annotated[str | None, Meta(description="Null: requests without a rule.")]
    changes: dict[str, SampledRange]


class SampledTotals(JsonStruct):
    total: dict[str, SampledRange]
    rules: list[SampledChange]


#: How the changes of a sampled replay are bounded.
SampledChanges: TypeAlias = Annotated[
    SampledTotals | None,
    Meta(
        description="The bounds of changes at 95 %, of all and by rule. Absent if all entries were replayed."
    ),
]


class ReplayInput(JsonStruct):
    window: ReplayWindow
    rows: ReplayRows
    gateway: LearnedGateway
    sample: Annotated[
        Sample | None,
        Meta(description="What was replayed of a large log. Absent if it is all."),
    ] = None


class ReplayResult(ReplayInput):
    calibration: Calibration
    total: ReplayCounts
    rules: list[ReplayRuleCounts]
    against: ReplayRuleset
    billed: Annotated[ReplayBilled | None, Meta(description="Absent in a sampled replay.")] = None
    moved: list[MovedRequests]
    leaks: ReplayLeaks
    publish_cost: PublishCost
    caveats: list[str]
    evidence: list[EvidenceQuery]
    names: Annotated[
        dict[str, str] | None,
        Meta(description="The names of the rules by id. Absent in replays of earlier releases."),
    ] = None
    sampled_changes: SampledChanges = None
