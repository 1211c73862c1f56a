"""Run the command, and read its report."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

from django.core.management import call_command


def assess(*arguments: Any) -> dict[str, Any]:
    """Return the report of the command."""
    out, err = StringIO(), StringIO()
    call_command("assess", *map(str, arguments), "--json", stdout=out, stderr=err)
    report: dict[str, Any] = json.loads(out.getvalue())
    return report
