"""The scheduler of beat: Celery's own, which keeps working after the clock was set back."""

from __future__ import annotations

import time
from typing import Any

from celery.beat import PersistentScheduler


class SteadyScheduler(PersistentScheduler):
    """Forgets last runs that are in the future.

    Celery waits until a task's interval has passed since its last run. After the clock was set back by an
    hour, no task would run for an hour, even after a restart, because the last runs are stored in a file.
    """

    _ticked_at = 0.0

    def setup_schedule(self) -> None:
        super().setup_schedule()
        self._forget_future_runs()

    def tick(self, *args: Any, **options: Any) -> Any:
        now = time.time()
        if now < self._ticked_at:
            self._forget_future_runs()
        self._ticked_at = now
        return super().tick(*args, **options)

    def _forget_future_runs(self) -> None:
        now = self.app.now()
        for entry in self.schedule.values():
            entry.last_run_at = min(entry.last_run_at or now, now)
        # Celery computes the order of the next runs again.
        self._heap = None
