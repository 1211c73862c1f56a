"""Times with seconds and time zone, to compare them with logs (FORMAT_MODULE_PATH)."""

from __future__ import annotations

from typing import Final

DATE_FORMAT: Final = "Y-m-d"
TIME_FORMAT: Final = "H:i:s e"
DATETIME_FORMAT: Final = "Y-m-d H:i:s e"
