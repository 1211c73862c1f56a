"""Write CSV (RFC 4180): exact for machines, or for people, who open it in a spreadsheet."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

#: What `Accept` asks for.
CSV: Final = "text/csv"
CSV_FOR_PEOPLE: Final = "text/csv; for=people"
#: A spreadsheet runs a cell that begins like this. Some skip what is not visible before it, and full-width
#: signs are the same to them. Where the list separator is a semicolon, a cell may begin inside of a text.
_FORMULA: Final = re.compile(
    r"\A(?=[\s\x00-\x1f\u200b-\u200f\u2060\ufeff]*[=+\-@＝＋－＠]|[\t\r])"
    # What is not visible there holds no separator: many of them in a row would take the square of the time.
    r"|(?<=[;\t\r\n])(?=(?:[^\S\t\r\n]|[\x00-\x08\x0e-\x1f\u200b-\u200f\u2060\ufeff])*[=+\-@＝＋－＠])"
)


def csv_bytes(rows: Iterable[Sequence[Any]], *, for_people: bool, as_text: Callable[[Any], str]) -> bytes:
    """Return lines of CSV. None is an empty field, and ``as_text`` writes what is no text.

    ``for_people`` writes ``'`` where a spreadsheet would take text for a formula: rows hold text of unknown
    clients.
    """

    def field(value: Any) -> str | None:
        if isinstance(value, str):
            return harmless(value) if for_people else value
        return None if value is None else as_text(value)

    lines = io.StringIO()
    csv.writer(lines).writerows([field(value) for value in row] for row in rows)
    return lines.getvalue().encode()


def harmless(value: str) -> str:
    """Return the text in a form of which no spreadsheet runs a part."""
    return _FORMULA.sub("'", value)
