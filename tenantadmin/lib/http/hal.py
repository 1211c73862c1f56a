"""HAL-style lists, shared parameters, and 304 for who has the document. Contract: General conventions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode
from uuid import UUID

import msgspec
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.response import Response

from tenantadmin.lib.core.rendering import names_etag
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from rest_framework.request import Request

#: The placeholder for `hrefs` of resources that have a UUID.
ANY_ID: Final = UUID(int=0)

#: Characters that `reverse` does not quote in a path segment.
_SAFE: Final = "~:@!$&'()*+,;="


def hrefs(route: str, **parameters: object) -> Callable[[object], str]:
    """Return a function that returns the address of a resource by its name, for long lists.

    The last of ``parameters`` is a placeholder, which the function replaces by the name. `reverse` runs only
    once, because it would take seconds for 100,000 tenants.
    """
    *_, placeholder = parameters.values()
    before, _, after = reverse(route, kwargs=parameters).rpartition(str(placeholder))
    return lambda name: f"{before}{quote(str(name), safe=_SAFE)}{after}"


class Link(JsonStruct):
    """An address, relative to this service."""

    href: str


class HalItem(JsonStruct):
    """An entry of a list."""

    name: str
    href: str


class ListLinks(JsonStruct):
    """The links of a list."""

    self_: Link
    parent: Link


class HalLinks(ListLinks):
    items: Sequence[HalItem]


class PageLinks(HalLinks):
    """The links of a page. ``next`` is absent on the last one."""

    next: Link | None = None


class ItemList(JsonStruct):
    """A list with the way to each of its entries."""

    links: HalLinks = msgspec.field(name="_links")


def link(href: str) -> Link:
    return Link(href=href)


def item(name: str, href: str) -> HalItem:
    return HalItem(name=name, href=href)


def links(*, self_href: str, parent: str, items: Iterable[HalItem]) -> HalLinks:
    """Return the ``_links`` of a list."""
    return HalLinks(self_=link(self_href), parent=link(parent), items=list(items))


def page_links(request: Request, *, parent: str, items: Iterable[HalItem], cursor: str | None) -> PageLinks:
    """Return the ``_links`` of a page. ``cursor`` is the cursor of the next page, or None."""
    return PageLinks(
        self_=link(request.get_full_path()),
        parent=link(parent),
        items=list(items),
        next=next_page(request, cursor),
    )


def next_page(request: Request, cursor: str | None) -> Link | None:
    """Return the link ``next``: the same request with the cursor. Without a cursor there is none."""
    if cursor is None:
        return None
    query = urlencode({**request.query_params.dict(), "cursor": cursor})
    return link(f"{request.path}?{query}")


#: A caller that has the current document gets 304.
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The ETag of the copy that the caller holds; 304 when it is still the present one.",
)

#: The caller sends this tag back in ``If-None-Match`` or ``If-Match``.
ETAG = OpenApiParameter(
    "ETag",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    required=True,
    response=[200, 201, 304],
    description="A strong entity tag of this state.",
)

#: The address of a new resource, or the next address of a browser.
LOCATION = OpenApiParameter(
    "Location",
    OpenApiTypes.URI_REF,
    OpenApiParameter.HEADER,
    required=True,
    response=[201, 202, 302, 303],
    description="The address to go on at.",
)

#: Why the caller does this, for the event.
REASON = OpenApiParameter(
    "X-Reason",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="Why, percent-encoded, at most 500 characters; the event keeps it. Platform admins must give "
    "it where the service requires a second factor of staff: 403 `second_factor_required` without it.",
)

#: The number of a revision.
SEQ = OpenApiParameter("seq", {"type": "integer", "minimum": 0}, OpenApiParameter.PATH)

#: Prevents a caller from overwriting a change that it has not seen.
IF_MATCH = OpenApiParameter(
    "If-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The ETag that the caller read; 409 when the document has changed since.",
)


def not_modified(request: Request, etag: str) -> Response | None:
    """Return 304 if ``If-None-Match`` has ``etag``: the caller has the current document. Otherwise None."""
    header = request.META.get("HTTP_IF_NONE_MATCH")
    if header is not None and names_etag(header, etag):
        return Response(status=304, headers={"ETag": etag})
    return None
