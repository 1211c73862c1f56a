"""The statuses that the dashboard explains are the contract's, and `docs/words.md` says the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from logs.columns import CACHE_STATUSES

ROOT: Final = Path(__file__).parents[2]


def test_each_status_has_one_name_and_meaning() -> None:
    script = (ROOT / "tenantadmin/static/dashboard/statuses.js").read_text()
    found = {name: json.loads(value) for name, value in re.findall(r"^  (\w+): (\[.*\]),$", script, re.M)}
    assert sorted(found) == sorted(CACHE_STATUSES)
    assert len({name for name, *_ in found.values()}) == len(found)
    documented = re.findall(r"^\| ([^|]+) \| `(\w+)` \| ([^|]+) \|$", (ROOT / "docs/words.md").read_text(), re.M)
    assert documented == [(name, status, meaning) for status, (name, _, meaning) in found.items()]
