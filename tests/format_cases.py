"""Values, conditions and faults with their texts (`tests/*.json`), for Python and for the dashboard."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Final

CASES: Final = json.loads(Path(__file__).with_name("formats.json").read_text())
CONDITIONS: Final = json.loads(Path(__file__).with_name("conditions.json").read_text())
#: Texts that are not JSON, the line at fault, and what is wrong.
JSON_FAULTS: Final = json.loads(Path(__file__).with_name("json_faults.json").read_text())
NOW: Final = dt.datetime(2026, 11, 25, 9, 0, tzinfo=dt.UTC)
