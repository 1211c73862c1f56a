"""The counts of a replayed ruleset, with the bounds that hidden settings, literals and samples leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, floor, inf
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from analytics.replay.count import (
    MISS_REASONS,
    margins_of,
)
from analytics.replay.result import (
    Bounds,
    ReplayCounts,
    ReplayRuleCounts,
    ReplayRuleset,
    RiskCount,
    SampledChange,
    SampledRange,
    SampledTotals,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from analytics.replay.count import Counts
    from analytics.replay.load import Gateway
    from analytics.replay.play import Outcome
    from analytics.reports.savings_sql import Bill
    from rules.language import Rule


@dataclass(frozen=True, slots=True)
class Played:
    """The outcomes of rulesets, and their counts, under each possible setting of the Gateway."""

    #: The last of the rulesets.
    rules: Sequence[Rule]
    outcomes: Mapping[Gateway, Outcome]
    #: The counts of the outcomes, in the same order.
    runs: Sequence[Counts]

    @property
    def outcome(self) -> Outcome:
        """The first outcome."""
        return next(iter(self.outcomes.values()))

    @property
    def bills(self) -> list[Bill]:
        """All bills that the settings of the Gateway and hidden literals allow."""
        return [bill for counts in self.runs for bill in counts.bills]


def render_counts(played: Played, position: float | None) -> ReplayRuleset:
    """Return ``total`` and ``rules``: the rules of the ruleset in order, then requests without a rule."""
    runs = played.runs
    ids: list[str | None] = [rule.id for rule in played.rules]
    every: Sequence[str | None] = [*ids, *(key for key in runs[0].rules if key not in {*ids, None}), None]
    return ReplayRuleset(
        total=_render_counts(runs, every, position),
        rules=[
            ReplayRuleCounts(
                **msgspec.structs.asdict(_render_counts(runs, [rule_id], position)), rule_id=rule_id
            )
            for rule_id in every
        ],
    )


def _render_counts(
    runs: Sequence[Counts], rule_ids: Sequence[str | None], position: float | None
) -> ReplayCounts:
    counts: Counter[str] = Counter()
    for rule_id in rule_ids:
        counts.update(runs[0].rules.get(rule_id, {}))
    rendered = ReplayCounts(
        hits=_bound_counts(runs, rule_ids, "hits", position),
        saved_ms=_bound_counts(runs, rule_ids, "saved_ms", position),
        risk=RiskCount(low=counts["risk_low"], high=counts["risk_high"]),
        miss_reasons={reason: counts[reason] for reason in MISS_REASONS},
        **{name: counts[name] for name in _SIMPLE_COUNTS},
        sampled=None,
    )
    margins = [run.margins for run in runs if run.margins is not None]
    if not margins:
        return rendered
    # All rules together are given as several, one alone as itself.
    is_total = len(rule_ids) > 1

    def margin_of(name: str) -> float:
        return max(one.total.get(name, 0.0) if is_total else one.of(rule_ids[0], name) for one in margins)

    sampled = _widen_all(_list_bounds(rendered), margin_of, least=0)
    return msgspec.structs.replace(rendered, sampled=sampled)


class _Bounded(NamedTuple):
    """A count with its bounds where literals are hidden; ``high_name`` is the name of its upper bound."""

    name: str
    high_name: str
    low: int
    high: int


def bound_changes(connection: DuckDBPyConnection, current: Played, subject: Played) -> SampledTotals:
    """Return the bounds of how counts change, from what each unit of the sample changes."""
    margins = margins_of(connection, (subject.outcome, 1), (current.outcome, -1))
    after, before = (
        {counts.rule_id: _list_bounds(counts) for counts in render_counts(one, None).rules}
        for one in (subject, current)
    )
    none = [one._replace(low=0, high=0) for one in after[None]]

    def is_same(rule_id: str | None) -> bool:
        return after.get(rule_id, none) == before.get(rule_id, none)

    changes = {
        rule_id: [
            # A rule that counts the same does the same, whatever the hidden literals are.
            new._replace(low=0, high=0)
            if new == old
            else new._replace(low=new.low - old.high, high=new.high - old.low)
            for new, old in zip(after.get(rule_id, none), before.get(rule_id, none), strict=True)
        ]
        for rule_id in {**after, **before}
    }
    total = [
        parts[0]._replace(low=sum(one.low for one in parts), high=sum(one.high for one in parts))
        for parts in zip(*changes.values(), strict=True)
    ]
    return SampledTotals(
        total=_widen_all(
            total,
            _no_margin if all(map(is_same, changes)) else lambda name: margins.total.get(name, 0.0),
        ),
        rules=[
            SampledChange(
                rule_id=rule_id,
                changes=_widen_all(bounds, _no_margin if is_same(rule_id) else partial(margins.of, rule_id)),
            )
            for rule_id, bounds in changes.items()
        ],
    )


def _list_bounds(counts: ReplayCounts) -> list[_Bounded]:
    """Return the counts that a sample estimates."""
    return [
        _Bounded("hits", "high_hits", counts.hits.low, counts.hits.high),
        _Bounded("saved_ms", "high_saved_ms", counts.saved_ms.low, counts.saved_ms.high),
        _Bounded("risk", "risk_high", counts.risk.low, counts.risk.high),
        *(_Bounded(name, name, getattr(counts, name), getattr(counts, name)) for name in _SAMPLED_COUNTS),
    ]


def _widen_all(
    bounds: Sequence[_Bounded], margin_of: Callable[[str], float], *, least: float = -inf
) -> dict[str, SampledRange]:
    """Return the bounds of a sample by the name of the count in JSON."""
    return {
        _JSON_NAMES[one.name]: widen(
            one.low, one.high, max(margin_of(one.name), margin_of(one.high_name)), least=least
        )
        for one in bounds
    }


def _no_margin(_: str) -> float:
    return 0.0


def widen(low: int, high: int, margin: float, *, least: float = -inf) -> SampledRange:
    """Return the whole numbers from ``low`` to ``high``, wider by a margin but not below ``least``."""
    return SampledRange(low=floor(max(low - margin, least)), high=ceil(high + margin))


def _bound_counts(
    runs: Sequence[Counts], rule_ids: Sequence[str | None], name: str, position: float | None
) -> Bounds:
    low, high = (
        choose(sum(run.rules[rule_id][key] for rule_id in rule_ids if rule_id in run.rules) for run in runs)
        for choose, key in ((min, name), (max, f"high_{name}"))
    )
    likely = None if position is None else int(low + position * (high - low) + 0.5)
    return Bounds(low=low, likely=likely, high=high)


#: The counts without bounds.
_SIMPLE_COUNTS: Final = {*ReplayCounts.__struct_fields__} - {
    *("hits", "saved_ms", "risk", "miss_reasons", "sampled")
}
#: Those that a sample only estimates: what fires is in every sample.
_SAMPLED_COUNTS: Final = sorted(_SIMPLE_COUNTS - {"fired", "markers"})
_JSON_NAMES: Final = dict(
    zip(ReplayCounts.__struct_fields__, ReplayCounts.__struct_encode_fields__, strict=True)
)
