"""Run the command, and read its report."""

from __future__ import annotations

import json
from datetime import date
from io import StringIO
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.core.management import call_command

from analytics.replay.execution import run_next
from analytics.replay.runs import queue_replay
from tenantadmin.lib.objectstore import default_store

if TYPE_CHECKING:
    from analytics.models import ReplayRun


def assess(*arguments: Any) -> dict[str, Any]:
    """Return the report of the command."""
    out, err = StringIO(), StringIO()
    call_command("assess", *map(str, arguments), "--json", stdout=out, stderr=err)
    report: dict[str, Any] = json.loads(out.getvalue())
    return report


def replay(tenant: UUID, rules: list[dict[str, Any]], *, first: date, last: date) -> ReplayRun:
    """Return a finished replay over the log of an assessment."""
    run = queue_replay(
        tenant_id=tenant,
        rules=rules,
        first_day=first,
        last_day=last,
        warmup_days=0,
        gateway={},
        actor="test",
    )
    assert run_next(default_store(), tenant_id=tenant)
    run.refresh_from_db()
    return run
