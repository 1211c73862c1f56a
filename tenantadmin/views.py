"""The contract, its page for people, the guides as pages, and the page of the dashboard."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.safestring import mark_safe
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.views import SpectacularSwaggerSplitView
from markdown_it import MarkdownIt

from accounts.access.scopes import Level
from accounts.dashboard import PAGES
from accounts.routes import route
from accounts.viewsets import AppViewSet
from logs.definitions import PAGE_DEFINITIONS, STATUSES
from rules.contract import rule_words
from tenantadmin.lib.http.bodies import accepts_gzip
from tenantadmin.lib.http.hal import ETAG, IF_NONE_MATCH, not_modified
from tenantadmin.lib.http.handler import wants_page
from tenantadmin.lib.http.published_contract import compressed_contract, published_contract
from tenantadmin.lib.http.schema import NOT_MODIFIED
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from django.utils.safestring import SafeString
    from markdown_it.token import Token
    from rest_framework.request import Request
    from rest_framework.response import Response

#: The guides for people who use the service, by the name of their file, in the order of the links.
GUIDES: Final[Mapping[str, str]] = {
    "tour": "A tour",
    "connect": "Connect a program",
    "rules": "Rules",
    "replay": "Replay",
    "assess": "Try it on your own history",
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


class DocsView(SpectacularSwaggerSplitView):
    """``GET /docs``: the contract in Swagger UI, without inline scripts.

    A sign-in may lead here with tokens in the query, so the page sends no referrer.
    """

    authentication_classes = ()  # The page is the same for all users; bearer tokens are for the API.

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        if isinstance(response.data, dict):
            response.data["guides"] = GUIDES
        answer: Response = super().finalize_response(request, response, *args, **kwargs)
        answer["Referrer-Policy"] = "no-referrer"
        return answer


def show_dashboard(request: HttpRequest) -> HttpResponse:
    """Answer ``GET /dashboard/``: the page of the dashboard, whose scripts call the API.

    A sign-in leads here with tokens in the query, which the page removes from the address. In development it
    names the folder of mails, which has the mailed link as a file.
    """
    is_in_files = settings.DEBUG and settings.EMAIL_BACKEND == "tenantadmin.mail.PrivateFileBackend"
    context = {
        "mail_folder": settings.EMAIL_FILE_PATH if is_in_files else "",
        "staff_pages": reverse("admin:index"),
        "statuses": STATUSES,
        "definitions": PAGE_DEFINITIONS,
        "rule_words": rule_words(),
        "pages": [page._asdict() for page in PAGES],
    }
    page = render(request, "dashboard/index.html", context)
    page["Referrer-Policy"] = "no-referrer"
    page["Cache-Control"] = "no-cache"
    return page


class ContractViewSet(AppViewSet):
    """The OpenAPI document."""

    tag = "Discovery"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer machines. A browser opens the dashboard, which asks for the sign-in."""
        if wants_page(request):
            answer: HttpResponseBase = HttpResponseRedirect(settings.DASHBOARD_URL)
        else:
            answer = super().dispatch(request, *args, **kwargs)
        patch_vary_headers(answer, ["Accept"])
        return answer

    @route("GET", "", Level.PUBLIC, name="contract")
    @operation(
        summary="The contract of this service (OpenAPI 3.0.3)",
        headers=[IF_NONE_MATCH, ETAG],
        responses={200: OpenApiTypes.OBJECT, 304: NOT_MODIFIED},
    )
    def get_contract(self, request: Request) -> HttpResponse | Response:
        """Serves the OpenAPI document, compressed if the caller takes gzip."""
        text, etag = published_contract()
        if (unchanged := not_modified(request, etag)) is not None:
            return unchanged
        response = HttpResponse(text, content_type="application/json", headers={"ETag": etag})
        patch_vary_headers(response, ["Accept-Encoding"])
        if accepts_gzip(request):
            response.content = compressed_contract()
            # The compressed bytes differ, so the entity tag becomes a weak one.
            response["Content-Encoding"], response["ETag"] = "gzip", f"W/{etag}"
        return response
