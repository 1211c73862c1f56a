"""Tests of beat's schedule."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from celery.beat import PersistentScheduler

from tenantadmin.celery import app
from tenantadmin.run.beat import SteadyScheduler

if TYPE_CHECKING:
    from celery.beat import Scheduler

ROOT = Path(__file__).parents[2]
OURS = ("accounts.", "analytics.", "logs.", "rules.", "tosapp.")


def test_beat_starts_exactly_the_tasks_without_arguments() -> None:
    app.loader.import_default_modules()
    periodic = {
        name
        for name, task in app.tasks.items()
        if name.startswith(OURS) and not inspect.signature(task.run).parameters
    }
    assert {entry["task"] for entry in app.conf.beat_schedule.values()} == periodic
    assert "accounts.tasks.remove_tombstones" in periodic


@pytest.mark.slow
def test_a_process_that_answers_requests_sends_tasks_to_the_broker() -> None:
    code = (
        "import django; django.setup(); from celery import current_app; "
        "print(current_app.main, current_app.conf.broker_url.partition(':')[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["tenantadmin", app.conf.broker_url.partition(":")[0]]


def next_runs(scheduler: Scheduler) -> dict[str, float]:
    """Return the seconds until the next run of each task with an interval; 0 if it is due."""
    waits = {name: entry.is_due() for name, entry in scheduler.schedule.items()}
    return {
        name: 0.0 if is_due else seconds
        for name, (is_due, seconds) in waits.items()
        if isinstance(app.conf.beat_schedule.get(name, {}).get("schedule"), float)
    }


def interval_of(name: str) -> float:
    return float(app.conf.beat_schedule[name]["schedule"])


def scheduler_of_an_hour_ahead(kind: type[PersistentScheduler], path: Path) -> PersistentScheduler:
    """Store last runs of an hour ahead, as before the clock was set back, and start the scheduler anew."""
    earlier = PersistentScheduler(app, schedule_filename=str(path))
    for entry in earlier.schedule.values():
        entry.last_run_at = app.now() + timedelta(hours=1)
    earlier.close()
    return kind(app, schedule_filename=str(path))


def test_tasks_run_although_their_stored_last_run_is_in_the_future(tmp_path: Path) -> None:
    scheduler = scheduler_of_an_hour_ahead(SteadyScheduler, tmp_path / "schedule")
    assert all(seconds <= interval_of(name) for name, seconds in next_runs(scheduler).items())
    scheduler.close()
    # Celery's own scheduler waits.
    scheduler = scheduler_of_an_hour_ahead(PersistentScheduler, tmp_path / "other")
    assert min(next_runs(scheduler).values()) > 3_500
    scheduler.close()


def test_tasks_run_after_the_clock_was_set_back_under_a_running_beat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = SteadyScheduler(app, schedule_filename=str(tmp_path / "schedule"))
    monkeypatch.setattr(scheduler, "apply_entry", lambda *_, **__: None)
    scheduler.tick()
    for entry in scheduler.schedule.values():
        entry.last_run_at = app.now() + timedelta(hours=1)
    scheduler._ticked_at += 3_600
    scheduler.tick()
    assert all(seconds <= interval_of(name) for name, seconds in next_runs(scheduler).items())
    scheduler.close()
