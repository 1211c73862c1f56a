"""Staff pages, dashboard and `docs/words.md` explain statuses in the same words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from logs.statuses import STATUSES

ROOT: Final = Path(__file__).parents[2]
SCRIPT: Final = ROOT / "tenantadmin/static/dashboard/statuses.js"


def test_each_status_has_one_name_and_meaning() -> None:
    rows = re.findall(r"^  (\w+): (\[.*\]),$", SCRIPT.read_text(), re.MULTILINE)
    found = {name: json.loads(value) for name, value in rows}
    assert {status: (name, meaning) for status, (name, _, meaning) in found.items()} == STATUSES
    assert len({name for name, _ in STATUSES.values()}) == len(STATUSES)
    documented = re.findall(
        r"^\| ([^|]+) \| `(\w+)` \| ([^|]+) \|$", (ROOT / "docs/words.md").read_text(), re.MULTILINE
    )
    assert documented == [(name, status, meaning) for status, (name, _, meaning) in found.items()]
