"""Lists as CSV files that spreadsheets open."""

from __future__ import annotations

import datetime as dt
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from django.http import StreamingHttpResponse

from tenantadmin.lib.core.spreadsheets import csv_bytes
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
        yield csv_bytes(piece, for_people=True, as_text=_text)


def _text(value: object) -> str:
    return format_timestamp(value) if isinstance(value, dt.datetime) else str(value)
