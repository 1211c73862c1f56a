"""The raw log tree and SQL over the log. Contract: "Raw logs", "SQL over the log"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.http import HttpResponse, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.permissions import AppView
from logs.audit import Reader
from logs.queries import run_query
from logs.sql.results import csv_pieces, json_pieces, ndjson_pieces, parquet_pieces
from logs.tree import list_level, read_object
from tenantadmin.core.addresses import client_address
from tenantadmin.http.fields import StrictCharField
from tenantadmin.http.negotiation import preferred_media_type
from tenantadmin.http.parsers import AnyTextJsonParser
from tenantadmin.http.reading import read_body, read_query
from tenantadmin.http.serializers import StrictSerializer
from tenantadmin.objectstore import default_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from uuid import UUID

    from django.http import HttpResponseBase
    from rest_framework.request import Request

    from logs.sql.protocol import QueryResult

_TAGS: Final = ["Raw logs"]


def _segment(name: str, pattern: str) -> OpenApiParameter:
    return OpenApiParameter(
        name, {"type": "string", "pattern": f"^{pattern}$"}, OpenApiParameter.PATH, description="Zero-padded."
    )


YEAR: Final = _segment("year", "[0-9]{4}")
MONTH: Final = _segment("month", "(0[1-9]|1[0-2])")
DAY: Final = _segment("day", "(0[1-9]|[12][0-9]|3[01])")
HOUR: Final = _segment("hour", "([01][0-9]|2[0-3])")


class LogLink(serializers.Serializer[Any]):
    href = serializers.CharField()


class LogItem(serializers.Serializer[Any]):
    name = serializers.CharField()
    href = serializers.CharField()


class LogLinks(serializers.Serializer[Any]):
    self = LogLink()
    parent = LogLink()
    items = LogItem(many=True)


class LogListing(serializers.Serializer[Any]):
    """The immediate children of a level that have data."""

    tenantId = serializers.UUIDField()  # noqa: N815
    _links = LogLinks()


class _LevelView(AppView):
    """A level of the tree; the path's numbers name it."""

    def list(self, request: Request, tenant: UUID, *path: str) -> Response:
        read_query(None, request)
        return Response(list_level(default_store(), tenant=tenant, path=path, reader=reader_of(self)))


class MonthsView(_LevelView):
    """Lists the months of a year in which there are logs."""

    operations: ClassVar = {"GET": "listLogMonths"}

    @extend_schema(
        tags=_TAGS,
        summary="The months with logs",
        parameters=[YEAR],
        responses={200: LogListing},
        examples=[
            OpenApiExample(
                "One month",
                value={
                    "tenantId": "11111111-2222-4333-8444-555555555555",
                    "_links": {
                        "self": {"href": "/tenants/11111111-2222-4333-8444-555555555555/logs/2026"},
                        "parent": {"href": "/config/tenants/11111111-2222-4333-8444-555555555555"},
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
    def get(self, request: Request, tenant: UUID, year: int) -> Response:
        return self.list(request, tenant, f"{year:04}")


class DaysView(_LevelView):
    """Lists the days of a month on which there are logs."""

    operations: ClassVar = {"GET": "listLogDays"}

    @extend_schema(
        tags=_TAGS, summary="The days with logs", parameters=[YEAR, MONTH], responses={200: LogListing}
    )
    def get(self, request: Request, tenant: UUID, year: int, month: int) -> Response:
        return self.list(request, tenant, f"{year:04}", f"{month:02}")


class HoursView(_LevelView):
    """Lists the hours of a day (UTC) in which there are logs."""

    operations: ClassVar = {"GET": "listLogHours"}

    @extend_schema(
        tags=_TAGS, summary="The hours with logs", parameters=[YEAR, MONTH, DAY], responses={200: LogListing}
    )
    def get(self, request: Request, tenant: UUID, year: int, month: int, day: int) -> Response:
        return self.list(request, tenant, f"{year:04}", f"{month:02}", f"{day:02}")


class FilesView(_LevelView):
    """Lists the log objects delivered in an hour."""

    operations: ClassVar = {"GET": "listLogFiles"}

    @extend_schema(
        tags=_TAGS,
        summary="The log objects of an hour",
        parameters=[YEAR, MONTH, DAY, HOUR],
        responses={200: LogListing},
    )
    def get(self, request: Request, tenant: UUID, *, year: int, month: int, day: int, hour: int) -> Response:
        return self.list(request, tenant, f"{year:04}", f"{month:02}", f"{day:02}", f"{hour:02}")


class ObjectView(AppView):
    """Sends a log object as it is stored. Every read is recorded before any data is sent."""

    operations: ClassVar = {"GET": "getLogObject"}

    @extend_schema(
        tags=_TAGS,
        summary="One log object, byte for byte",
        parameters=[
            YEAR,
            MONTH,
            DAY,
            HOUR,
            OpenApiParameter("file", {"type": "string", "pattern": r"\.json$"}, OpenApiParameter.PATH),
        ],
        responses={
            (200, "application/json"): OpenApiResponse(OpenApiTypes.ANY, description="One JSON value."),
            (200, "application/x-ndjson"): OpenApiResponse(
                OpenApiTypes.STR, description="Anything else: entries as lines."
            ),
        },
    )
    def get(
        self, request: Request, tenant: UUID, *, year: int, month: int, day: int, hour: int, file: str
    ) -> HttpResponseBase:
        read_query(None, request)
        path = (f"{year:04}", f"{month:02}", f"{day:02}", f"{hour:02}")
        raw = read_object(default_store(), tenant=tenant, path=path, file=file, reader=reader_of(self))
        answer = HttpResponse if isinstance(raw.body, bytes) else StreamingHttpResponse
        return answer(raw.body, content_type=raw.media_type, headers={"Content-Length": str(raw.size)})


class StatementField(StrictCharField):
    """Any text: the guard tells what is wrong with it, and the audit keeps what was sent."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.validators = []


class QueryBody(StrictSerializer):
    sql = StatementField(
        trim_whitespace=False, allow_blank=True, help_text="One SELECT (or WITH … SELECT) over `proxy_logs`."
    )


class QueryColumn(serializers.Serializer[Any]):
    name = serializers.CharField()
    type = serializers.CharField(help_text="The engine's type, such as VARCHAR or BIGINT.")


class QueryAnswer(serializers.Serializer[Any]):
    tenantId = serializers.UUIDField()  # noqa: N815
    columns = QueryColumn(many=True)
    rows = serializers.ListField(child=serializers.DictField())
    rowCount = serializers.IntegerField(min_value=0)  # noqa: N815
    truncated = serializers.BooleanField(help_text="True when the cap cut the result.")


_JSON: Final = "application/json"
_FORMS: Final[Mapping[str, Callable[[QueryResult], Iterator[bytes]]]] = {
    "text/csv": csv_pieces,
    "application/x-ndjson": ndjson_pieces,
    "application/vnd.apache.parquet": parquet_pieces,
}


class QueryView(AppView):
    """Runs one SELECT over the tenant's log in a locked engine.

    A predicate on `day` decides what is read; without one a query reads the whole history.

    `Accept`, weights included, chooses JSON, CSV, NDJSON or Parquet; where none fits, the answer is JSON.
    """

    operations: ClassVar = {"POST": "queryLogs"}
    parser_classes = (AnyTextJsonParser,)

    @extend_schema(
        tags=["SQL"],
        summary="One read-only statement over proxy_logs",
        request=QueryBody,
        responses={
            200: QueryAnswer,
            (200, "text/csv"): OpenApiTypes.STR,
            (200, "application/x-ndjson"): OpenApiTypes.STR,
            (200, "application/vnd.apache.parquet"): OpenApiTypes.BINARY,
        },
        examples=[
            OpenApiExample(
                "Requests by status on one day",
                value={
                    "sql": "SELECT cacheStatus, count(*) AS n FROM proxy_logs "
                    "WHERE day = '2026-03-01' GROUP BY ALL ORDER BY n DESC"
                },
                request_only=True,
            )
        ],
    )
    def post(self, request: Request, tenant: UUID) -> StreamingHttpResponse:
        read_query(None, request)
        statement = read_body(QueryBody, request)["sql"]
        result = run_query(default_store(), tenant=tenant, statement=statement, reader=reader_of(self))
        media_type = preferred_media_type(request.headers.get("Accept", ""), (_JSON, *_FORMS))
        if media_type == _JSON:
            pieces = json_pieces(result, head={"tenantId": str(tenant)})
        else:
            pieces = _FORMS[media_type](result)
        return StreamingHttpResponse(
            pieces,
            content_type=media_type,
            headers={"X-Row-Count": str(result.row_count), "X-Truncated": str(result.truncated).lower()},
        )


def reader_of(view: AppView) -> Reader:
    """The caller of ``view``, as the audit names it."""
    return Reader(view.principal.email, client_address(view.request))
