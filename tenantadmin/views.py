"""The contract, its page for people, and the page of the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.views import SpectacularSwaggerSplitView

from accounts.access.policy import Level
from accounts.dashboard import PAGES
from accounts.routes import route
from accounts.viewsets import AppViewSet
from logs.definitions import PAGE_DEFINITIONS
from logs.statuses import STATUSES
from rules.completion import rule_words
from tenantadmin.guides import GUIDES
from tenantadmin.lib.http.etags import not_modified
from tenantadmin.lib.http.negotiation import accepts_gzip
from tenantadmin.lib.http.pages import wants_page
from tenantadmin.lib.http.parameters import ETAG, IF_NONE_MATCH
from tenantadmin.lib.http.published_contract import compressed_contract, published_contract
from tenantadmin.lib.http.schema import NOT_MODIFIED
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request
    from rest_framework.response import Response


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
