"""Tests of beat's schedule."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

from tenantadmin.celery import app

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
