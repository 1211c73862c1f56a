"""Celery workers and child processes for tests."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from threading import Timer
from typing import Final, Self

import pytest
from django.db import transaction

from logs.models import PendingBuild
from tenantadmin.lib.core.timestamps import now

ROOT: Final = Path(__file__).resolve().parents[2]
#: If the child writes nothing for this many seconds, the test fails.
_TIMEOUT_SECONDS: Final = 120


class Child:
    """A module that runs with the settings of the tests. It is killed at the end.

    Args:
        environment: more environment variables.
    """

    def __init__(self, module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env={**os.environ, **(environment or {}), "DJANGO_SETTINGS_MODULE": "tests.settings"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send(self, line: object) -> None:
        assert self._process.stdin is not None
        print(line, file=self._process.stdin, flush=True)

    def read(self) -> str:
        """Return the next line of its output."""
        assert self._process.stdout is not None
        watch = Timer(_TIMEOUT_SECONDS, self._process.kill)
        watch.start()
        try:
            line = self._process.stdout.readline()
        finally:
            watch.cancel()
        if not line:
            pytest.fail("the process ended, or wrote nothing for two minutes")
        return str(line).rstrip("\n")

    def kill(self) -> None:
        """Kill it with SIGKILL, and wait for its end."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            self._process.kill()


def read_until(worker: Child, wanted: str) -> None:
    while worker.read() != wanted:
        pass


def pending_days() -> list[date | None]:
    return list(PendingBuild.objects.order_by("day").values_list("day", flat=True))


def build_pending(worker: Child) -> None:
    """Let the worker send the tasks of all pending builds, as soon as they are due, until none is left."""
    while PendingBuild.objects.exists():
        with transaction.atomic():
            # Without those that a worker is changing: it may wait for others of them.
            free = PendingBuild.objects.select_for_update(skip_locked=True)
            due = list(free.filter(due_at__lte=now() + timedelta(minutes=2)).values_list("pk", flat=True))
            PendingBuild.objects.filter(pk__in=due).update(due_at=now())
        worker.send("queue")
        read_until(worker, "analytics.tasks.queue_builds SUCCESS")
        time.sleep(0.2)
