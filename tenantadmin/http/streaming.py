"""Responses with lists of any length, in bounded memory: rows are sent as they are read."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from django.http import StreamingHttpResponse

from tenantadmin.core.rendering import dump_json
from tenantadmin.http.hal import link

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

#: Items that are rendered at a time.
_BATCH: Final = 500


def stream_links(
    *,
    self_href: str,
    parent: str,
    items: Iterable[Mapping[str, Any]],
    more: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> StreamingHttpResponse:
    """Return a response ``{_links: {self, parent, items}, …more}`` that reads ``items`` while it is sent."""
    return StreamingHttpResponse(
        _write(self_href=self_href, parent=parent, items=iter(items), more=more or {}),
        content_type="application/json",
        headers=dict(headers or {}),
    )


def _write(
    *, self_href: str, parent: str, items: Iterator[Mapping[str, Any]], more: Mapping[str, Any]
) -> Iterator[bytes]:
    head = dump_json({"self": link(self_href), "parent": link(parent)})
    yield b'{"_links":' + head[:-1] + b',"items":['
    separator = b""
    while batch := list(islice(items, _BATCH)):
        yield separator + dump_json(batch)[1:-1]
        separator = b","
    tail = dump_json(dict(more))[1:]
    yield b"]}" + (b"," if more else b"") + tail
