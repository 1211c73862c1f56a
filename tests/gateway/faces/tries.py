"""How often a driver asks, if a Gateway refuses in a way that `refusals` does not."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

_REFUSED: Final = re.compile(rb"SELECT '(\w+)' AS refused", re.IGNORECASE)


class Tries:
    """Counts statements that name a status (``SELECT '503' AS refused``). The first is refused so."""

    def __init__(self) -> None:
        self.counts = Counter[str]()

    def take(self, sent: bytes) -> str | None:
        """Return the status with which to refuse a request; None: answer it."""
        if (found := _REFUSED.search(sent)) is None:
            return None
        status = found[1].decode()
        self.counts[status] += 1
        return status if self.counts[status] == 1 else None
