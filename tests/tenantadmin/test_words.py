"""Staff pages, dashboard and `docs/words.md` explain statuses in the same words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from logs.definitions import STATUSES

if TYPE_CHECKING:
    from django.test import Client

ROOT: Final = Path(__file__).parents[2]
SCRIPT: Final = ROOT / "tenantadmin/static/dashboard/statuses.js"


def test_each_status_has_one_name_and_meaning(client: Client) -> None:
    page = client.get("/dashboard/").content.decode()
    found = re.search(r'<script id="statuses" type="application/json">(.*?)</script>', page)
    assert found is not None
    assert json.loads(found[1]) == {status: list(told) for status, told in STATUSES.items()}
    assert len({name for name, _ in STATUSES.values()}) == len(STATUSES)
    rows = re.findall(
        r"^\| ([^|]+) \| `(\w+)` \| ([^|]+) \|$", (ROOT / "docs/words.md").read_text(), re.MULTILINE
    )
    documented = {status: (name, meaning) for name, status, meaning in rows}
    assert documented == STATUSES
    colours = re.search(r"^const COLOURS = {(.*?)^};$", SCRIPT.read_text(), re.MULTILINE | re.DOTALL)
    assert colours is not None
    assert re.findall(r"(\w+):", colours[1]) == [*documented]
