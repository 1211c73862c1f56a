"""Generate the tables of docs/sql.md. ``make contract`` rewrites them."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Final

from logs.columns import COLUMNS, DAY_COLUMN
from logs.sql.grammar import ALLOWED_TABLE_FUNCTIONS, REFUSED_FUNCTIONS, REFUSED_TABLE_FUNCTIONS

_MARKED: Final = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def columns_table() -> str:
    """Return the columns of ``proxy_logs`` as Markdown, by group, then ``day``."""
    lines = ["| column | type | meaning |", "|---|---|---|"]
    for group, columns in groupby(COLUMNS, key=lambda column: column.group):
        lines.append(f"| **{group}** | | |")
        lines += [f"| `{column.name}` | {column.type} | {column.meaning} |" for column in columns]
    lines += [
        "| **partition** | | |",
        f"| `{DAY_COLUMN.name}` | {DAY_COLUMN.type} | {DAY_COLUMN.meaning} |",
    ]
    return "\n".join(lines)


def functions_table() -> str:
    """Return the functions that may not be called, and why, as Markdown."""
    allowed = ", ".join(f"`{name}`" for name in sorted(ALLOWED_TABLE_FUNCTIONS))
    return "\n".join(
        [
            f"Table functions that may be called: {allowed}.",
            "",
            "| a function that … | for instance |",
            "|---|---|",
            *_reasons({**REFUSED_TABLE_FUNCTIONS}),
            *_reasons(
                {key: names for key, names in REFUSED_FUNCTIONS.items() if key not in REFUSED_TABLE_FUNCTIONS}
            ),
        ]
    )


def _reasons(refused: Mapping[str, frozenset[str]]) -> list[str]:
    return [f"| {reason} | {_examples(names)} |" for reason, names in refused.items()]


def _examples(names: frozenset[str]) -> str:
    shortest = sorted(names, key=lambda name: (len(name), name))[:5]
    return ", ".join(f"`{name}`" for name in shortest)


def render(text: str) -> str:
    """Return a page with up-to-date generated parts."""
    parts = {"columns": columns_table, "functions": functions_table}
    return _MARKED.sub(lambda match: match[1] + parts[match[2]]() + "\n" + match[3], text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        page.write_text(render(page.read_text()))
