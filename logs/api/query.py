"""SQL over the log. Contract: "SQL over the log"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import msgspec
from django.http import StreamingHttpResponse
from django.urls import reverse
from django.utils.text import compress_sequence
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from msgspec import Meta
from rest_framework.response import Response

from accounts.access.scopes import Level, Scope
from accounts.routes import route
from accounts.viewsets import AppViewSet
from logs.audit import Reader
from logs.columns import COLUMNS, DAY_COLUMN
from logs.definitions import ROWS_MEANING
from logs.held_results import OF_CALLER, hold, require_room
from logs.queries import fill_parameters, query_limits, run_query
from logs.serializers import QueryBody
from logs.sql.results import (
    QueryAnswer,
    arrow_pieces,
    csv_pieces,
    json_pieces,
    ndjson_pieces,
    parquet_pieces,
)
from tenantadmin.lib.core.serving import disconnection_of
from tenantadmin.lib.core.spreadsheets import CSV, CSV_FOR_PEOPLE
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.http.bodies import AnyTextJsonParser, accepts_gzip, preferred_media_type
from tenantadmin.lib.http.budgets import QUERY
from tenantadmin.lib.http.hal import Link, link
from tenantadmin.lib.http.schema import refusal
from tenantadmin.lib.http.viewsets import operation
from tenantadmin.lib.objectstore import default_store

if TYPE_CHECKING:
    from rest_framework.request import Request

    from logs.sql.protocol import QueryResult

_JSON: Final = "application/json"
_PARQUET: Final = "application/vnd.apache.parquet"
_ARROW: Final = "application/vnd.apache.arrow.stream"
_FORMS: Final[Mapping[str, Callable[[QueryResult], Iterator[bytes]]]] = {
    CSV: csv_pieces,
    CSV_FOR_PEOPLE: partial(csv_pieces, for_people=True),
    "application/x-ndjson": ndjson_pieces,
    _PARQUET: parquet_pieces,
    _ARROW: arrow_pieces,
}
#: Compressed in themselves.
_COMPRESSED: Final = frozenset({_PARQUET, _ARROW})


def _header(name: str, schema: dict[str, Any], description: str) -> OpenApiParameter:
    return OpenApiParameter(
        name, schema, OpenApiParameter.HEADER, required=True, response=[200], description=description
    )


_HEADERS: Final = (
    _header("X-Row-Count", {"type": "integer", "minimum": 0}, "The rows of the answer."),
    _header(
        "X-Truncated", {"type": "string", "enum": ["true", "false"]}, "`true` if a limit cut the answer."
    ),
    _header(
        "X-Result-Cache",
        {"type": "string", "enum": ["hit", "miss"]},
        "`hit` if an earlier run of this statement over the same builds returned the rows.",
    ),
    _header("X-Engine", {"type": "string", "enum": ["duckdb", "spark"]}, "The engine that made the rows."),
)
_CSV_DOWNLOAD: Final = {"Content-Disposition": 'attachment; filename="proxy_logs.csv"'}
#: A browser saves these under a name.
_DOWNLOADS: Final[Mapping[str, Mapping[str, str]]] = {
    CSV: _CSV_DOWNLOAD,
    CSV_FOR_PEOPLE: _CSV_DOWNLOAD,
    _PARQUET: {"Content-Disposition": 'attachment; filename="proxy_logs.parquet"'},
}


class SchemaColumn(JsonStruct):
    name: str
    type: Annotated[str, Meta(description="The engine's type, such as VARCHAR or BIGINT.")]
    meaning: str
    unit: Annotated[str | None, Meta(description="Such as `ms` or `bytes`; null if there is none.")]
    example: Any


class SchemaLinks(JsonStruct):
    self_: Link
    parent: Link


class QuerySchema(JsonStruct):
    """The columns of the table that queries read."""

    links: SchemaLinks = msgspec.field(name="_links")
    table: str
    meaning: Annotated[str, Meta(description="What its rows are, and which of them other pages count.")]
    columns: list[SchemaColumn]


class QueryViewSet(AppViewSet):
    """Queries over a tenant's log."""

    tag = "SQL"
    prefix = "tenants/<uuid:tenant>/query"

    @route("POST", "", Level.TENANT, Scope.LOGS_QUERY, name="query")
    @operation(
        summary="One read-only statement over proxy_logs",
        budget=QUERY,
        only_reads=True,
        body=QueryBody,
        parsers=(AnyTextJsonParser,),
        responses={
            200: OpenApiResponse(
                QueryAnswer, description="As JSON. `Accept` can ask for CSV, NDJSON, Parquet or Arrow."
            ),
            406: refusal(406),
        },
        headers=_HEADERS,
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
    def query_logs(self, request: Request, tenant: UUID) -> StreamingHttpResponse:
        """Runs one SELECT over the tenant's log in a locked engine.

        A predicate on `day` decides what is read; without one a query reads the whole history.

        `Accept`, weights included, chooses `application/json` (the default), `text/csv`,
        `application/x-ndjson`, `application/vnd.apache.parquet` or `application/vnd.apache.arrow.stream`.
        `text/csv` has the values as they are; `text/csv; for=people` is for spreadsheets: what they would run
        as a formula begins with `'`.

        Only JSON is declared, so that generated clients have one typed answer.
        """
        statement = self.body["sql"]
        if "parameters" in self.body:
            statement = fill_parameters(statement, self.body["parameters"])
        media_type = preferred_media_type(request.headers.get("Accept", ""), (_JSON, *_FORMS))
        caller = self.principal.email
        require_room(min(query_limits().max_bytes, OF_CALLER), caller=caller)
        result = run_query(
            default_store(),
            tenant=tenant,
            statement=statement,
            reader=Reader.of_request(caller),
            disconnection=disconnection_of(request.META),
        )
        hold(result, caller=caller, until=self.answering)
        pieces = json_pieces(result, tenant=tenant) if media_type == _JSON else _FORMS[media_type](result)
        headers = {
            "X-Row-Count": str(result.row_count),
            "X-Truncated": str(result.truncated).lower(),
            "X-Result-Cache": "hit" if result.is_kept else "miss",
            "X-Engine": result.engine,
            "Vary": "Accept, Accept-Encoding",
            **_DOWNLOADS.get(media_type, {}),
        }
        if media_type not in _COMPRESSED and accepts_gzip(request):
            pieces = compress_sequence(pieces)
            headers["Content-Encoding"] = "gzip"
        content_type = "text/csv; charset=utf-8" if media_type.startswith(CSV) else media_type
        return StreamingHttpResponse(pieces, content_type=content_type, headers=headers)

    @route("GET", "/schema", Level.TENANT, Scope.LOGS_QUERY, name="query-schema")
    @operation(
        summary="The columns of proxy_logs",
        description="Name, type, meaning, unit and an example of each column, for editors of queries.",
        responses={200: QuerySchema},
    )
    def get_query_schema(self, request: Request, tenant: UUID) -> Response:
        parent = link(reverse("tenant", kwargs={"tenant": tenant}))
        columns = [SchemaColumn.of(column, type=column.type.value) for column in (*COLUMNS, DAY_COLUMN)]
        links = SchemaLinks(self_=link(request.path), parent=parent)
        return Response(QuerySchema(links=links, table="proxy_logs", meaning=ROWS_MEANING, columns=columns))
