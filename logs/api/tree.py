"""The raw log tree. Contract: Raw logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework.response import Response

from accounts.access.scopes import Level, Scope
from accounts.routes import route
from accounts.viewsets import AppViewSet
from logs.audit import Reader
from logs.serializers import DAY, FILE, HOUR, MONTH, YEAR
from logs.tree import JSON, NDJSON, OCTETS, list_names, read_object
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.http.hal import HalLinks, hrefs, item, links
from tenantadmin.lib.http.viewsets import operation
from tenantadmin.lib.objectstore import default_store

if TYPE_CHECKING:
    from django.http import HttpResponseBase
    from rest_framework.request import Request


class LogListing(JsonStruct):
    """The immediate children of a level that have data."""

    tenant_id: UUID
    links: HalLinks = msgspec.field(name="_links")


class LogTreeViewSet(AppViewSet):
    """A tenant's raw logs: years, months, days and hours down to the stored objects."""

    tag = "Raw logs"
    prefix = "tenants/<uuid:tenant>/logs"

    @route("GET", "", Level.TENANT, Scope.LOGS_READ, name="log-years")
    @operation(summary="The years with logs", responses={200: LogListing})
    def list_log_years(self, request: Request, **address: Any) -> Response:
        """Lists the years in which there are logs."""
        return self._list(
            parent="tenant", above={"tenant": address["tenant"]}, child="log-months", year="2000"
        )

    @route("GET", "/<year:year>", Level.TENANT, Scope.LOGS_READ, name="log-months")
    @operation(
        summary="The months with logs",
        path=[YEAR],
        responses={200: LogListing},
        examples=[
            OpenApiExample(
                "One month",
                value={
                    "tenantId": "11111111-2222-4333-8444-555555555555",
                    "_links": {
                        "self": {"href": "/tenants/11111111-2222-4333-8444-555555555555/logs/2026"},
                        "parent": {"href": "/tenants/11111111-2222-4333-8444-555555555555/logs"},
                        "items": [
                            {
                                "name": "03",
                                "href": "/tenants/11111111-2222-4333-8444-555555555555/logs/2026/03",
                            }
                        ],
                    },
                },
            )
        ],
    )
    def list_log_months(self, request: Request, **address: Any) -> Response:
        """Lists the months of a year in which there are logs."""
        return self._list(parent="log-years", child="log-days", month="12")

    @route("GET", "/<year:year>/<month:month>", Level.TENANT, Scope.LOGS_READ, name="log-days")
    @operation(summary="The days with logs", path=[YEAR, MONTH], responses={200: LogListing})
    def list_log_days(self, request: Request, **address: Any) -> Response:
        """Lists the days of a month on which there are logs."""
        return self._list(parent="log-months", child="log-hours", day="31")

    @route("GET", "/<year:year>/<month:month>/<day:day>", Level.TENANT, Scope.LOGS_READ, name="log-hours")
    @operation(summary="The hours with logs", path=[YEAR, MONTH, DAY], responses={200: LogListing})
    def list_log_hours(self, request: Request, **address: Any) -> Response:
        """Lists the hours of a day (UTC) in which there are logs."""
        return self._list(parent="log-days", child="log-files", hour="23")

    @route(
        "GET",
        "/<year:year>/<month:month>/<day:day>/<hour:hour>",
        Level.TENANT,
        Scope.LOGS_READ,
        name="log-files",
    )
    @operation(
        summary="The log objects of an hour", path=[YEAR, MONTH, DAY, HOUR], responses={200: LogListing}
    )
    def list_log_files(self, request: Request, **address: Any) -> Response:
        """Lists the log objects delivered in an hour."""
        return self._list(parent="log-hours", child="log-object", file="any.json")

    @route(
        "GET",
        "/<year:year>/<month:month>/<day:day>/<hour:hour>/<logfile:file>",
        Level.TENANT,
        Scope.LOGS_READ,
        name="log-object",
    )
    @operation(
        summary="One log object, byte for byte",
        path=[YEAR, MONTH, DAY, HOUR, FILE],
        responses={
            # The first, because generators of clients take the first type that they know.
            (200, OCTETS): OpenApiResponse(OpenApiTypes.BINARY, description="The stored bytes."),
            (200, JSON): OpenApiTypes.ANY,
            (200, NDJSON): OpenApiTypes.STR,
        },
    )
    def get_log_object(self, request: Request, tenant: UUID, file: str, **level: str) -> HttpResponseBase:
        """Sends a log object as it is stored. Every read is recorded before any data is sent.

        The type is `application/json` if the object is one JSON value, and `application/x-ndjson` if it has
        entries as lines. A request with `Accept: application/octet-stream` gets that type.
        """
        raw = read_object(
            default_store(), tenant=tenant, path=tuple(level.values()), file=file, reader=self._reader
        )
        answer = HttpResponse if isinstance(raw.body, bytes) else StreamingHttpResponse
        # `Accept` does not change the bytes.
        wants_octets = request.headers.get("Accept", "").strip() == OCTETS
        return answer(
            raw.body,
            content_type=OCTETS if wants_octets else raw.media_type,
            headers={"Content-Length": str(raw.size)},
        )

    def _list(
        self, *, parent: str, child: str, above: dict[str, Any] | None = None, **sample: str
    ) -> Response:
        """Answer with the children of the level in the path.

        ``parent`` and ``child`` are names of routes. ``above`` are the parameters of ``parent``, by default
        all of this route but the last. ``sample`` is the last parameter of ``child``.
        """
        tenant, *path = self.kwargs.values()
        names = list_names(default_store(), tenant=tenant, path=tuple(path), reader=self._reader)
        href = hrefs(child, **self.kwargs, **sample)
        hal_links = links(
            self_href=self.request.path,
            parent=reverse(parent, kwargs=above or dict(list(self.kwargs.items())[:-1])),
            items=[item(name, href(name)) for name in names],
        )
        return Response(LogListing(tenant_id=tenant, links=hal_links))

    @property
    def _reader(self) -> Reader:
        """Return the caller for the audit."""
        return Reader.of_request(self.principal.email)
