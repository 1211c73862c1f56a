"""Responses with lists of any length, in bounded memory: rows are sent as they are read."""

from __future__ import annotations

from functools import partial
from itertools import chain, islice
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, Final

from django.http import StreamingHttpResponse
from django.utils.cache import patch_vary_headers
from django.utils.text import compress_sequence

from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.http.negotiation import accepts_gzip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rest_framework.request import Request

    from tenantadmin.lib.core.structs import JsonStruct

#: A list of this many items is compressed.
_COMPRESSED_FROM: Final = 20
#: Number of items that are rendered at a time.
_BATCH: Final = 500
#: Bytes of items that are kept in memory; more are kept in a temporary file.
_MAX_SPOOLED: Final = 1 << 20
_ITEMS: Final = b'"items":['
#: Only the member of the links can have this text: in a JSON string, quotation marks are escaped.
_NO_ITEMS: Final = _ITEMS + b"]"


def stream_links(
    request: Request,
    answer: JsonStruct,
    items: Iterable[JsonStruct],
    *,
    headers: Mapping[str, str] | None = None,
) -> StreamingHttpResponse:
    """Return a response with ``answer``, and add ``items`` to its links while it is sent.

    A long list is compressed if the caller takes gzip. A short one, as of most polls, takes more time than it
    saves.
    """
    items = iter(items)
    first = list(islice(items, _COMPRESSED_FROM))
    content = _write(answer, chain(first, items))
    is_compressed = len(first) == _COMPRESSED_FROM and accepts_gzip(request)
    response = StreamingHttpResponse(
        compress_sequence(content) if is_compressed else content,
        content_type="application/json",
        headers=dict(headers or {}),
    )
    patch_vary_headers(response, ["Accept-Encoding"])
    if is_compressed:
        response["Content-Encoding"] = "gzip"
        if "ETag" in response:
            # The compressed bytes differ.
            response["ETag"] = f"W/{response['ETag']}"
    return response


def _write(answer: JsonStruct, items: Iterator[JsonStruct]) -> Iterator[bytes]:
    head, tail = dump_json(answer).split(_NO_ITEMS, 1)
    yield head + _ITEMS
    separator = b""
    while batch := list(islice(items, _BATCH)):
        yield separator + dump_json(batch)[1:-1]
        separator = b","
    yield b"]" + tail


def stream_documents(
    answer: Any,
    name: str,
    documents: Iterable[tuple[JsonStruct, JsonStruct | Mapping[str, Any]]],
    *,
    headers: Mapping[str, str] | None = None,
) -> StreamingHttpResponse:
    """Return a response with ``answer``, whose links have no items and whose list ``name`` is empty.

    Both lists are filled with ``documents``, pairs of item and document, which are read while the response is
    sent. The first member of ``answer`` is ``_links``.
    """
    return StreamingHttpResponse(
        _write_documents(answer, name, iter(documents)),
        content_type="application/json",
        headers=dict(headers or {}),
    )


def _write_documents(
    answer: Any, name: str, documents: Iterator[tuple[JsonStruct, JsonStruct | Mapping[str, Any]]]
) -> Iterator[bytes]:
    head, tail = dump_json(answer).split(_NO_ITEMS, 1)
    member = dump_json(name) + b":["
    before, after = tail.split(b"," + member + b"]", 1)
    # Keep the items until the documents are sent, so that both come from one read of the database.
    with SpooledTemporaryFile(max_size=_MAX_SPOOLED) as items:
        yield b"{" + member
        separator = b""
        while batch := list(islice(documents, _BATCH)):
            yield separator + dump_json([document for _, document in batch])[1:-1]
            items.write(separator + dump_json([one for one, _ in batch])[1:-1])
            separator = b","
        yield b"]," + head.removeprefix(b"{") + _ITEMS
        items.seek(0)
        yield from iter(partial(items.read, _MAX_SPOOLED), b"")
        yield b"]" + before + after
