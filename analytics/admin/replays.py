"""Replays of a draft: counts under the live rules, under the draft, and the difference."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q

from analytics.models import ReplayRun
from analytics.replay.figures import figures_of_replay
from analytics.replay.judgement import (
    NOT_CACHED,
    UNCOUNTED,
    bound_misses,
    count_not_cached,
    count_requests,
    judge,
    middle,
)
from analytics.replay.left_out import say_days
from analytics.replay.notes import say_notes
from analytics.replay.outdated import find_outdated, normalize
from analytics.replay.runs import list_replays
from rules.models import RuleDraft
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from analytics.replay.figures import Figure
    from analytics.replay.judgement import ReplayJudgement
    from analytics.replay.outdated import Outdated

_SHOWN: Final = 3
_NOTHING: Final = {"low": 0, "likely": 0, "high": 0}
#: Counts for a rule that a ruleset does not have.
_NO_COUNTS: Final = {
    **dict.fromkeys(("hits", "savedMs", "risk"), _NOTHING),
    **dict.fromkeys(("requests", "misses", "spentMs", "hitBytes", *NOT_CACHED, *UNCOUNTED), 0),
}


@dataclass(frozen=True, slots=True)
class ComparedRule:
    """The counts of one rule, or of all, under the live rules and under the draft. No id: no rule decided."""

    rule_id: str | None
    now: Mapping[str, Any]
    draft: Mapping[str, Any]
    #: At the time of the replay; None if it is not known.
    name: str | None = None

    @property
    def counts(self) -> list[tuple[str, str, Mapping[str, Any], Mapping[str, Any] | None]]:
        """What the page compares: label, unit, under the draft, and before it if that differs.

        Hits, misses and requests that are not cached are the requests.
        """
        return [
            (label, unit, draft, None if _ends(draft) == _ends(live) else _exactly(middle(live)))
            for label, unit, (draft, live) in (
                ("requests", "whole", self._both(count_requests)),
                ("hits", "whole", (self.draft["hits"], self.now["hits"])),
                ("misses", "whole", (bound_misses(self.draft), bound_misses(self.now))),
                ("not cached", "whole", self._both(count_not_cached)),
                ("warehouse time saved", "duration", (self.draft["savedMs"], self.now["savedMs"])),
                ("hits at risk of being stale", "whole", (self.draft["risk"], self.now["risk"])),
            )
        ]

    def _both(self, count: Callable[[Mapping[str, Any]], int]) -> tuple[dict[str, float], dict[str, float]]:
        return _exactly(count(self.draft)), _exactly(count(self.now))

    @property
    def differs(self) -> bool:
        """True if a count of the rule differs."""
        return any(was is not None for *_, was in self.counts)


def _ends(bounds: Mapping[str, Any]) -> tuple[float, float, float]:
    return bounds["low"], middle(bounds), bounds["high"]


def _exactly(value: float) -> dict[str, float]:
    return {"low": value, "high": value}


@dataclass(frozen=True, slots=True)
class ShownReplay:
    """A replay of a draft. ``outdated``: what has changed since."""

    run: ReplayRun
    outdated: Outdated | None = None
    #: What the recommendation of these rules is good for.
    purpose: str = ""

    @property
    def is_under_way(self) -> bool:
        """True while the replay is queued or running."""
        return self.run.state in ReplayRun.UNDER_WAY

    @property
    def is_poor(self) -> bool:
        """True if the replay of the rules in force differs much from the log."""
        return self.run.result is not None and self.run.result["calibration"]["grade"] == "poor"

    @property
    def total(self) -> ComparedRule | None:
        result = self.run.result
        if result is None:
            return None
        return ComparedRule(None, result["against"]["total"], result["total"])

    @property
    def figures(self) -> list[Figure]:
        """What the draft changes."""
        return [] if self.run.result is None else figures_of_replay(self.run.result)

    @property
    def judgement(self) -> ReplayJudgement | None:
        """What the replay says about publishing the draft."""
        return (
            None
            if self.run.result is None
            else (judge(self.run.result, purpose=self.purpose, outdated=self.outdated))
        )

    @property
    def parts(self) -> list[list[ComparedRule]]:
        """The rules in two parts: rules whose counts the draft changes, and the others."""
        return [[rule for rule in self.rules if rule.differs is differs] for differs in (True, False)]

    @property
    def rules(self) -> list[ComparedRule]:
        """The rules of the draft, then live rules that it lacks."""
        result = self.run.result or {"rules": [], "against": {"rules": []}}
        live, draft = (
            {counts["ruleId"]: counts for counts in side["rules"]} for side in (result["against"], result)
        )
        # Results of earlier releases have no names.
        names: Mapping[str, str] = result.get("names") or {it["id"]: it["name"] for it in self.run.rules}
        return [
            ComparedRule(
                rule_id,
                live.get(rule_id, _NO_COUNTS),
                draft.get(rule_id, _NO_COUNTS),
                name=names.get(rule_id),
            )
            for rule_id in {**draft, **live}
        ]

    @property
    def days(self) -> str:
        """The days that it counts."""
        # Reading the result of a replay that is polled would be a query.
        result = None if self.is_under_way else self.run.result
        days = {"from": str(self.run.first_day), "to": str(self.run.last_day)}
        return say_days(days if result is None else result["window"])

    @property
    def before(self) -> str:
        """The rules that the draft is compared with."""
        seq = (self.run.result or {})["against"].get("seq")
        return "the live rules" if seq is None else f"the rules of revision {seq}"

    @property
    def notes(self) -> list[str]:
        """What to keep in mind."""
        return say_notes(self.run.result or {})

    @property
    def has_examples(self) -> bool:
        """True if a request that ends differently is known by its id."""
        return any(moved["examples"] for moved in (self.run.result or {})["moved"])

    @property
    def cost_now(self) -> Mapping[str, Any]:
        """The cost of publishing in this hour of the day."""
        hours: list[Mapping[str, Any]] = (self.run.result or {})["publishCost"]["byHour"]
        return hours[now().hour]

    @property
    def best_at(self) -> datetime:
        """The next start of the hour in which publishing costs the least warehouse time."""
        hour: int = (self.run.result or {})["publishCost"]["best"]["hour"]
        at = now().replace(hour=hour, minute=0, second=0, microsecond=0)
        return at if at > now() else at + timedelta(days=1)


def replays_of_draft(draft: RuleDraft) -> list[ShownReplay]:
    """Return the newest replays of a draft, including replays of the same rules under another name."""
    rules = normalize(draft)
    subjects = Q(subject={"draftId": str(draft.pk)})
    if rules is not None:
        subjects |= Q(rules=rules)
    # Unlike lists of all replays, this reads the results.
    runs = list(list_replays(tenant_id=draft.tenant_id).filter(subjects).defer(None)[:_SHOWN])
    return [ShownReplay(*each) for each in zip(runs, find_outdated(runs, draft=draft), strict=True)]


def newest_done(replays: Sequence[ShownReplay]) -> ShownReplay | None:
    """Return the newest replay of the draft as it is now against the rules in force, or None."""
    done = (shown for shown in replays if not shown.outdated and shown.run.state == ReplayRun.State.DONE)
    return next(done, None)


def replays_of_rules(tenant_id: UUID, rules: list[Any]) -> list[ShownReplay]:
    """Return the newest replays of the rules of a revision."""
    return replays_of_draft(RuleDraft(tenant_id=tenant_id, rules=rules))
