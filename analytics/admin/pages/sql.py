"""Pages of SQL over a tenant's log, for members, including staff with limited access."""

from __future__ import annotations

import codecs
import math
from itertools import chain, repeat, starmap
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.utils.html import escape, format_html
from django.utils.safestring import mark_safe

from accounts.admin.forms import sql_editor
from accounts.admin.pages.base import PART, TenantActPage
from accounts.budgets import on_budget
from analytics.admin.completion import sql_words
from analytics.admin.facets import SHOWN, Facets, Grouping, names_day, write_sql
from analytics.admin.pages.base import LogPage
from logs.cancelling import cancel_query, list_running
from logs.queries import run_query
from logs.query_parameters import fill_parameters, parameters_of
from logs.saved_queries import (
    delete_saved_query,
    find_saved_query,
    list_saved_queries,
    save_query,
)
from logs.sql.results import csv_pieces, parquet_pieces
from logs.sql.values import as_text, json_values
from logs.statuses import ROWS_MEANING, STATUSES, say_status
from rules.admin.names import offer_rules
from tenantadmin.lib.core.addresses import network_of
from tenantadmin.lib.core.errors import ApiError, BadRequest
from tenantadmin.lib.core.request_context import current_address
from tenantadmin.lib.core.serving import disconnection_of
from tenantadmin.lib.core.timestamps import from_epoch_ms
from tenantadmin.lib.http.budgets import QUERY
from tenantadmin.lib.objectstore import default_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from django.http import HttpRequest

    from logs.models import SavedQuery
    from logs.sql.protocol import QueryResult

#: Maximum rows, values, and characters of a value, that the page shows. The files have the whole result.
SHOWN_ROWS: Final = 10_000
_SHOWN_VALUES: Final = 100_000
_SHOWN_CHARACTERS: Final = 300
#: The page shows this many rows at first, and after each click: a browser lays out 10,000 rows for seconds.
_PART_ROWS: Final = 500
#: The page cuts a longer value to one line, which a click opens.
_LONG: Final = 60
#: A chart of more rows has no room for their labels.
_CHART_ROWS: Final = 60
#: Types of numbers, of both engines.
_NUMBERS: Final = frozenset(
    [
        "TINYINT",
        "SMALLINT",
        "INT",
        "INTEGER",
        "BIGINT",
        "HUGEINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "UHUGEINT",
        "FLOAT",
        "REAL",
        "DOUBLE",
        "DECIMAL",
    ]
)
#: Milliseconds since 1970 of the years 2000 to 9999. A smaller number in a column ``timestamp`` is a count.
_MIN_MS: Final = 946_684_800_000
_MAX_MS: Final = 253_402_300_799_999
#: Longer statements have no permalink: servers and proxies cut long addresses.
_MAX_ADDRESS: Final = 8000
_VALUE: Final = "p-"


class SqlForm(forms.Form):
    """A statement."""

    statement = forms.CharField(widget=sql_editor(), strip=False, required=False)


class FacetForm(forms.Form):
    """Filters, for staff who do not write SQL."""

    first = forms.DateField(label="First day (UTC)", widget=forms.DateInput(attrs={"type": "date"}))
    last = forms.DateField(label="Last day (UTC)", widget=forms.DateInput(attrs={"type": "date"}))
    show = forms.ChoiceField(choices=SHOWN, required=False)
    user = forms.CharField(required=False, max_length=1000, strip=False)
    status = forms.ChoiceField(
        choices=[("", "any"), *((status, name) for status, (name, _) in STATUSES.items())],
        required=False,
    )
    rule = forms.CharField(required=False, max_length=200, widget=forms.Select)
    table = forms.CharField(required=False, max_length=1000)


class SqlPage(LogPage):
    """Filters that write SQL, the editor, saved queries, running queries, and the result of a run."""

    title = "SQL"
    template_name = "backoffice/tenant/sql.html"
    parts: ClassVar[Mapping[str, str]] = {"running": "backoffice/tenant/running.html"}

    def read(self) -> Mapping[str, Any]:
        if self.request.GET.get(PART) == "running":
            self.require_access()
            return {"running": list_running(self.tenant.pk)}
        return self._content(self._opening_statement()) if self.has_access else {}

    def _content(self, statement: str) -> dict[str, Any]:
        """Return the context of the page without a result."""
        sent = self.request.POST or self.request.GET
        facets = self._facet_form()
        offer_rules(facets["rule"], self.rule_names)
        return {
            "form": SqlForm(initial={"statement": statement}),
            "facets": facets,
            "names_day": names_day(statement),
            "parameters": [(name, sent.get(_VALUE + name, "")) for name in parameters_of(statement)],
            "saved": list_saved_queries(self.user),
            "running": list_running(self.tenant.pk),
            "words": sql_words(),
            "rows_meaning": ROWS_MEANING,
        }

    def _facet_form(self) -> FacetForm:
        if "first" in self.request.GET:
            return FacetForm(self.request.GET)
        return FacetForm(
            initial={"first": self.last_day, "last": self.last_day, "show": Grouping.ENTRIES.value}
        )

    def _opening_statement(self) -> str:
        """Return the statement of the permalink, of the saved query or of the filters."""
        query = self.request.GET
        if "sql" in query:
            return query["sql"].replace("\0", "")
        if query.get("saved", "").isdecimal():
            return find_saved_query(self.user, int(query["saved"][:18])).statement
        form = self._facet_form()
        if not form.is_bound:
            return write_sql(Facets(self.last_day, self.last_day))
        if not form.is_valid():
            return ""
        values = form.cleaned_data
        return write_sql(Facets(**{**values, "show": Grouping(values["show"] or Grouping.ENTRIES)}))

    def post(self, request: HttpRequest, **_: Any) -> HttpResponse | StreamingHttpResponse:
        self.require_access()
        if "delete" in request.POST:
            return self._delete(request.POST["delete"])
        # Forms send lines with CRLF.
        statement = request.POST.get("statement", "").replace("\r\n", "\n")
        if "save" in request.POST and "HX-Request" in request.headers:
            return self._save_beside_result(statement)
        try:
            if "save" in request.POST:
                saved = self._save(statement)
                messages.success(request, _tell_saved(saved))
                return HttpResponseRedirect(f"{self.to('tenant-sql')}?saved={saved.pk}")
            result, ran = self._run(statement)
            if "file" in request.POST:
                return _file(result, request.POST["file"])
            shown = _shown(result, explain=self.to("tenant-rules-trace"))
            more = {"result": result, **shown, "ran": ran, "permalink": self._permalink(statement)}
            status = 200
        except ApiError as error:
            more, status = {"error": error}, error.status
        return self.show(self.template_name, {**self._content(statement), **more}, status=status)

    def _run(self, statement: str) -> tuple[QueryResult, str]:
        """Run the statement with its parameters filled in. Return the result and the SQL that ran."""
        if not statement.strip():
            raise BadRequest("Write a statement first.")
        values = {name: self.request.POST.get(_VALUE + name, "") for name in parameters_of(statement)}
        ran = fill_parameters(statement, values)
        with on_budget(QUERY, caller=self.actor, network=network_of(current_address())):
            result = run_query(
                default_store(),
                tenant=self.tenant.pk,
                statement=ran,
                reader=self.reader,
                disconnection=disconnection_of(self.request.META),
            )
        return result, ran

    def _permalink(self, statement: str) -> str | None:
        values = {_VALUE + name: self.request.POST[_VALUE + name] for name in parameters_of(statement)}
        address = f"{self.to('tenant-sql')}?{urlencode({'sql': statement, **values})}"
        return address if len(address) <= _MAX_ADDRESS else None

    def _save(self, statement: str) -> SavedQuery:
        return save_query(self.user, name=self.request.POST.get("name", ""), statement=statement)

    def _save_beside_result(self, statement: str) -> HttpResponse:
        """Answer with the parts of the page that a saved query changes, so that the result stays."""
        shown: dict[str, Any]
        try:
            shown = {"said": _tell_saved(self._save(statement)), "saved": list_saved_queries(self.user)}
        except ApiError as error:
            # htmx shows no answer that is an error.
            shown = {"error": error}
        return self.show("backoffice/tenant/saved_part.html", shown)

    def _delete(self, query_id: str) -> HttpResponse:
        deleted = delete_saved_query(self.user, int(query_id) if query_id.isdecimal() else 0)
        messages.success(self.request, f"Deleted the query “{deleted.name}”.")
        return HttpResponseRedirect(self.to("tenant-sql"))


def _tell_saved(saved: SavedQuery) -> str:
    return f"Saved the query “{saved.name}”."


def _file(result: QueryResult, kind: str) -> StreamingHttpResponse:
    """Return the whole result as CSV, as CSV for Excel, or as Parquet."""
    if kind == "parquet":
        pieces, content_type, ending = parquet_pieces(result), "application/vnd.apache.parquet", "parquet"
    else:
        # By a byte order mark Excel knows that the file is UTF-8.
        mark = [codecs.BOM_UTF8] if kind == "excel" else []
        pieces = chain(mark, csv_pieces(result, for_people=True))
        content_type, ending = "text/csv; charset=utf-8", "csv"
    return StreamingHttpResponse(
        pieces,
        content_type=content_type,
        headers={"Content-Disposition": f'attachment; filename="proxy_logs.{ending}"'},
    )


def _shown(result: QueryResult, *, explain: str) -> dict[str, Any]:
    """Return column names, the first rows as HTML, and a chart.

    ``explain`` is the address of the page that explains a request.
    """
    names = [column.name for column in result.columns]
    rows: list[tuple[Any, ...]] = []
    limit = min(SHOWN_ROWS, _SHOWN_VALUES // len(names))
    for batch in result.batches:
        rows += zip(*map(json_values, batch.slice(0, limit - len(rows)).columns), strict=True)
    # A row of these columns is an entry of the log.
    is_entry = {"logId", "day"} <= set(names)
    numbers = {it.name for it in result.columns if it.type.partition("(")[0].upper() in _NUMBERS}
    links = _links(rows, names.index("logId"), names.index("day"), explain) if is_entry else repeat("")
    columns = [(name, name in numbers) for name in names]
    lines = [
        f"<tr>{link}{''.join(starmap(_cell, zip(row, columns, strict=True)))}</tr>"
        for row, link in zip(rows, links, strict=False)
    ]
    parts = ["\n".join(lines[first : first + _PART_ROWS]) for first in range(0, len(lines), _PART_ROWS)]
    return {
        "names": columns,
        "is_entry": is_entry,
        "shown": len(rows),
        # Each value is escaped. A template would take seconds for so many.
        "parts": [mark_safe(part) for part in parts],  # noqa: S308
        "part_rows": _PART_ROWS,
        "chart": _chart(rows, columns) if not result.truncated else None,
    }


def _links(rows: Iterable[tuple[Any, ...]], log_id: int, day: int, explain: str) -> Iterator[str]:
    """Yield the cell that leads to the explanation of each row."""
    for row in rows:
        query = urlencode({"log_id": row[log_id] or "", "day": row[day] or ""})
        link = format_html('<a href="{}?{}">Explain</a>', explain, query) if row[log_id] and row[day] else ""
        yield f"<td>{link}</td>"


def _cell(value: Any, column: tuple[str, bool]) -> str:
    """Return a value as a cell of the table: shortened if it is long."""
    name, is_number = column
    if value is None:
        return '<td><span class="subtle">null</span></td>'
    text = as_text(value)
    style = ' class="number"' if is_number else ' class="long"' if len(text) > _LONG else ""
    beside = ""
    if name == "timestamp" and type(value) is int and _MIN_MS < value < _MAX_MS:
        beside = f' <span class="subtle">{from_epoch_ms(value).time().isoformat("milliseconds")}</span>'
    if name == "cacheStatus" and text in STATUSES:
        style = format_html(' title="{}"', say_status(text))
    if len(text) > _SHOWN_CHARACTERS:
        text = f"{text[:_SHOWN_CHARACTERS]}…"
    return f"<td{style}>{escape(text)}{beside}</td>"


def _chart(rows: Sequence[tuple[Any, ...]], columns: Sequence[tuple[str, bool]]) -> dict[str, Any] | None:
    """Return a chart of the first numbers of a short result by its only text, or by its first column."""
    texts = [index for index, (_, is_number) in enumerate(columns) if not is_number] or [0]
    numbers = [index for index, (_, is_number) in enumerate(columns) if is_number and index not in texts]
    if len(texts) > 1 or not numbers or not 1 < len(rows) <= _CHART_ROWS:
        return None
    label, number = texts[0], numbers[0]
    return {
        "title": f"{columns[number][0]} by {columns[label][0]}",
        "labels": ["null" if row[label] is None else as_text(row[label])[:_LONG] for row in rows],
        "bars": [
            {"label": columns[number][0], "color": "accent", "values": [_number(row[number]) for row in rows]}
        ],
        "marks": [],
    }


def _number(value: Any) -> float | None:
    """Return a number of a result for a chart; None for null and for what no chart can show."""
    number = math.nan if value is None else float(as_text(value))
    return number if math.isfinite(number) else None


class CancelQueryPage(LogPage, TenantActPage):
    """End a running query of the tenant."""

    title = "Cancel a query"
    name = "query.cancelled"
    button = "Cancel the query"
    template_name = "backoffice/tenant/cancel.html"
    effect = "It will end within a few seconds. Its user will get the error that staff cancelled it."

    def prepare(self) -> None:
        super().prepare()
        self.require_access()

    def read(self) -> Mapping[str, Any]:
        runs = list_running(self.tenant.pk)
        return {"run": next((run for run in runs if run.pk == self.kwargs["run"]), None)}

    def act(self, _values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        run = cancel_query(self.tenant.pk, self.kwargs["run"])
        return f"The query of {run.email} ends.", {"queryRun": run.pk, "email": run.email}

    def done_at(self) -> str:
        return self.to("tenant-sql")
