"""Write the published queries as one file of SQL.

``make contract`` writes docs/queries.sql with it. A test fails if the file is out of date.
"""

from __future__ import annotations

import sys

from analytics.published.queries import QUERIES


def queries_file() -> str:
    """Return the whole file: each query below its name and what it gives."""
    return "\n".join(f"-- {name}\n-- {query.about}\n{query.text};\n" for name, query in QUERIES.items())


if __name__ == "__main__":
    sys.stdout.write(queries_file())
