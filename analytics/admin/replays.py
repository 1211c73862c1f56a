"""Replays of a draft or a revision: its counts, and how they differ from those of the live rules."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q

from analytics.models import ReplayRun
from analytics.replay.figures import figures_of_replay
from analytics.replay.judgement import judge
from analytics.replay.left_out import say_days
from analytics.replay.notes import say_notes
from analytics.replay.outdated import find_outdated, normalize
from analytics.replay.runs import list_replays, rows_of_run
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from analytics.replay.by_rule import ReplayRow
    from analytics.replay.figures import Figure
    from analytics.replay.judgement import ReplayJudgement
    from analytics.replay.outdated import Outdated

_SHOWN: Final = 3


@dataclass(frozen=True)
class ShownReplay:
    """A replay of a draft. ``outdated``: what has changed since."""

    run: ReplayRun
    outdated: Outdated | None = None

    @property
    def is_under_way(self) -> bool:
        """True while the replay is queued or running."""
        return self.run.state in ReplayRun.UNDER_WAY

    @property
    def is_poor(self) -> bool:
        """True if the replay of the rules in force differs much from the log."""
        return self.run.result is not None and self.run.result["calibration"]["grade"] == "poor"

    @property
    def figures(self) -> list[Figure]:
        """What the draft changes."""
        return [] if self.run.result is None else figures_of_replay(self.run.result)

    @property
    def judgement(self) -> ReplayJudgement | None:
        """What the replay says about publishing the draft."""
        return None if self.run.result is None else (judge(self.run.result, outdated=self.outdated))

    @property
    def rows(self) -> list[ReplayRow]:
        """All requests, then each rule whose counts the draft changes."""
        return [row for row in self._rows if row.is_changed or row is self._rows[0]]

    @property
    def unchanged(self) -> list[ReplayRow]:
        """The rules whose counts stay the same."""
        return [row for row in self._rows[1:] if not row.is_changed]

    @cached_property
    def _rows(self) -> list[ReplayRow]:
        return rows_of_run(self.run)

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


def replays_of_rules(
    tenant_id: UUID, rules: Sequence[Any], *, draft_id: UUID | None = None
) -> list[ShownReplay]:
    """Return the newest replays of the rules of a revision or a draft, under whatever name.

    ``draft_id`` adds replays of other texts of this draft.
    """
    replayed = normalize(rules)
    subjects = Q(pk__in=()) if replayed is None else Q(rules=replayed)
    if draft_id is not None:
        subjects |= Q(subject={"draftId": str(draft_id)})
    # Unlike lists of all replays, this reads the results.
    runs = list(list_replays(tenant_id=tenant_id).filter(subjects).defer(None)[:_SHOWN])
    return [ShownReplay(*each) for each in zip(runs, find_outdated(runs, rules=rules), strict=True)]


def newest_done(replays: Sequence[ShownReplay]) -> ShownReplay | None:
    """Return the newest replay of the draft as it is now against the rules in force, or None."""
    done = (shown for shown in replays if not shown.outdated and shown.run.state == ReplayRun.State.DONE)
    return next(done, None)
