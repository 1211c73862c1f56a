"""Tests of beat's schedule."""

from __future__ import annotations

import inspect

from tenantadmin.celery import app

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
