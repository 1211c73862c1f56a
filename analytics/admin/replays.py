"""What the replay of a recommendation says, for the page that decides it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from analytics.replay.judgement import judge
from analytics.replay.left_out import say_days
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from analytics.models import ReplayRun
    from analytics.replay.judgement import ReplayJudgement


@dataclass(frozen=True)
class ShownReplay:
    """A replay that is done. ``purpose``: what the recommendation of its rules is good for."""

    run: ReplayRun
    purpose: str

    @property
    def judgement(self) -> ReplayJudgement:
        """What the replay says about publishing."""
        return judge(self._result, purpose=self.purpose)

    @property
    def days(self) -> str:
        """The days that it counts."""
        return say_days(self._result["window"])

    @property
    def cost_now(self) -> Mapping[str, Any]:
        """The cost of publishing in this hour of the day."""
        hours: list[Mapping[str, Any]] = self._result["publishCost"]["byHour"]
        return hours[now().hour]

    @property
    def best_at(self) -> datetime:
        """The next start of the hour in which publishing costs the least warehouse time."""
        hour: int = self._result["publishCost"]["best"]["hour"]
        at = now().replace(hour=hour, minute=0, second=0, microsecond=0)
        return at if at > now() else at + timedelta(days=1)

    @property
    def _result(self) -> dict[str, Any]:
        return self.run.result or {}
