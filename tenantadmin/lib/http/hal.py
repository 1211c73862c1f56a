"""HAL-style lists: ``_links`` with ``self``, ``parent`` and ``items``. Contract: General conventions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode
from uuid import UUID

from django.urls import reverse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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


def link(href: str) -> dict[str, str]:
    return {"href": href}


def item(name: str, href: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "href": href, **more}


def next_page(request: Request, cursor: str | None) -> dict[str, dict[str, str]]:
    """Return the relation ``next``: the same request with the cursor. Without a cursor there is none."""
    if cursor is None:
        return {}
    query = urlencode({**request.query_params.dict(), "cursor": cursor})
    return {"next": link(f"{request.path}?{query}")}


def links(
    *, self_href: str, parent: str, items: Iterable[Mapping[str, Any]], **more: Mapping[str, str]
) -> dict[str, Any]:
    """Return the ``_links`` of a list. ``more`` adds relations such as ``next``."""
    return {"self": link(self_href), "parent": link(parent), **more, "items": list(items)}
