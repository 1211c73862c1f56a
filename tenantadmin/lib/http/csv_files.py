"""Lists as CSV files that spreadsheets open."""

from __future__ import annotations

import csv
import datetime as dt
import io
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from django.http import StreamingHttpResponse

from tenantadmin.lib.core.spreadsheets import harmless
from tenantadmin.lib.core.timestamps import format_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_PIECE_ROWS: Final = 500


def stream_csv(name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> StreamingHttpResponse:
    """Return a response with the file ``name``. It reads ``rows`` while it is sent."""
    return StreamingHttpResponse(
        _pieces(chain([header], rows)),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _pieces(rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    left = iter(rows)
    while piece := list(islice(left, _PIECE_ROWS)):
        text = io.StringIO()
        csv.writer(text).writerows([harmless(_text(value)) for value in row] for row in piece)
        yield text.getvalue().encode()


def _text(value: object) -> str:
    """Return a value as the text of a cell; None is empty."""
    if isinstance(value, dt.datetime):
        return format_timestamp(value)
    return "" if value is None else str(value)
