"""Write the published queries into the documentation of summaries.

``make contract`` rewrites with it each block of SQL in docs/analytics.md and docs/savings.md that starts with
the name of a query. A test fails if a page is out of date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from analytics.published.queries import QUERIES

BLOCK: Final = re.compile(r"(?<=```sql\n)-- (\S+)\n.*?(?=```)", re.DOTALL)


def render(page: str) -> str:
    """Return a page with up-to-date queries.

    Raises:
        KeyError: the page names a query that does not exist.
    """
    return BLOCK.sub(lambda block: f"-- {block[1]}\n{QUERIES[block[1]].text}\n", page)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(render(path.read_text()))
