"""HAL-style lists: ``_links`` with ``self``, ``parent`` and ``items``. Contract: General conventions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def path(*segments: str) -> str:
    """Return an absolute path of percent-encoded ``segments``: each is one segment whatever it holds."""
    return "/" + "/".join(quote(segment, safe="@:+,;=!$&'()*~") for segment in segments)


def link(href: str) -> dict[str, str]:
    return {"href": href}


def item(name: str, href: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "href": href, **more}


def links(
    *, self_href: str, parent: str, items: Iterable[Mapping[str, Any]], **more: Mapping[str, str]
) -> dict[str, Any]:
    """Return the ``_links`` of a list; ``more`` adds relations such as ``next``."""
    return {"self": link(self_href), "parent": link(parent), **more, "items": list(items)}
