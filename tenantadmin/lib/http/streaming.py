"""Responses with lists of any length, in bounded memory: rows are sent as they are read."""

from __future__ import annotations

from functools import partial
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, Final

from django.http import StreamingHttpResponse

from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.http.hal import link

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tenantadmin.lib.core.structs import JsonStruct

#: Items that are rendered at a time.
_BATCH: Final = 500
#: Bytes of items that are kept in memory; more are kept in a temporary file.
_MAX_SPOOLED: Final = 1 << 20


def stream_links(
    *,
    self_href: str,
    parent: str,
    items: Iterable[JsonStruct],
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
    *, self_href: str, parent: str, items: Iterator[JsonStruct], more: Mapping[str, Any]
) -> Iterator[bytes]:
    yield b"{" + _links_head(self_href, parent)
    separator = b""
    while batch := list(islice(items, _BATCH)):
        yield separator + dump_json(batch)[1:-1]
        separator = b","
    yield _links_tail(more)


def stream_documents(
    name: str,
    documents: Iterable[tuple[JsonStruct, JsonStruct | Mapping[str, Any]]],
    *,
    self_href: str,
    parent: str,
    more: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> StreamingHttpResponse:
    """Return a response ``{<name>: [document], _links: {self, parent, items: [item]}, …more}``.

    ``documents`` are pairs of item and document. They are read while the response is sent.
    """
    return StreamingHttpResponse(
        _write_documents(name, iter(documents), self_href=self_href, parent=parent, more=more or {}),
        content_type="application/json",
        headers=dict(headers or {}),
    )


def _write_documents(
    name: str,
    documents: Iterator[tuple[JsonStruct, JsonStruct | Mapping[str, Any]]],
    *,
    self_href: str,
    parent: str,
    more: Mapping[str, Any],
) -> Iterator[bytes]:
    # The items wait here until the documents are sent, so that both are from one reading of the database.
    with SpooledTemporaryFile(max_size=_MAX_SPOOLED) as items:
        yield b"{" + dump_json(name) + b":["
        separator = b""
        while batch := list(islice(documents, _BATCH)):
            yield separator + dump_json([document for _, document in batch])[1:-1]
            items.write(separator + dump_json([one for one, _ in batch])[1:-1])
            separator = b","
        yield b"]," + _links_head(self_href, parent)
        items.seek(0)
        yield from iter(partial(items.read, _MAX_SPOOLED), b"")
        yield _links_tail(more)


def _links_head(self_href: str, parent: str) -> bytes:
    return b'"_links":' + dump_json({"self": link(self_href), "parent": link(parent)})[:-1] + b',"items":['


def _links_tail(more: Mapping[str, Any]) -> bytes:
    return b"]}" + (b"," if more else b"") + dump_json(dict(more))[1:]
