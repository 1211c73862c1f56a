"""The guides in the folder `docs` as pages, to which the page of the API links."""

from __future__ import annotations

import itertools
import re
from functools import cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http import Http404
from django.shortcuts import render
from django.urls import reverse
from django.utils.safestring import mark_safe
from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.http import HttpRequest, HttpResponse
    from django.utils.safestring import SafeString
    from markdown_it.token import Token

#: The guides for people who use the service, by the name of their file, in the order of the links.
GUIDES: Final[Mapping[str, str]] = {
    "tour": "A tour",
    "connect": "Connect a program",
    "rules": "Rules",
    "replay": "Replay",
    "sql": "SQL",
    "savings": "Savings",
    "insights": "Recommendations",
    "digests": "Digests",
    "alerts": "Alerts",
    "analytics": "Summaries",
    "tenants": "Tenants",
    "signing-in": "Signing in",
    "events": "Events",
    "clients": "Clients",
    "pipelines": "Pipelines",
}
#: The content policy refuses images of other hosts, and the pictures of the guides are not served.
_MARKDOWN: Final = MarkdownIt("js-default").disable("image")


def show_guide(request: HttpRequest, name: str) -> HttpResponse:
    """Answer ``GET /docs/guides/{name}``."""
    if name not in GUIDES:
        raise Http404
    return render(request, "guide.html", {"title": GUIDES[name], "guides": GUIDES, "html": _render(name)})


@cache
def _render(name: str) -> SafeString:
    text = (settings.BASE_DIR / "docs" / f"{name}.md").read_text(encoding="utf-8")
    tokens = _MARKDOWN.parse(text)
    for token, following in itertools.pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", _anchor(following.content))
    for token in tokens:
        _aim(token.children or ())
    html: str = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    return mark_safe(html)  # noqa: S308  # files of this repository, in which HTML is escaped


def _anchor(heading: str) -> str:
    """Return the name of a heading in an address, as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _aim(tokens: Iterable[Token]) -> None:
    """Let links between files lead to the pages of the guides. Other files have no page: no link remains."""
    for token in tokens:
        if token.type != "link_open":
            continue
        address = urlsplit(str(token.attrs["href"]))
        if address.scheme or not address.path:
            continue
        name = address.path.removesuffix(".md")
        if name in GUIDES:
            anchor = f"#{address.fragment}" if address.fragment else ""
            token.attrs["href"] = f"{reverse('guide', args=[name])}{anchor}"
        else:
            del token.attrs["href"]
