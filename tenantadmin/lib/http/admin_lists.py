"""Lists and searches of the admin site that cost the same with ten rows and with ten million.

A list has no count and no numbered pages: each page starts after the last row of the page before (keyset
pagination). The order of a list has one direction and ends with a unique field, so that an index serves it.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ORDER_VAR, PAGE_VAR
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Exists, F, Func, OuterRef, Q, Value
from django.db.models.constants import LOOKUP_SEP
from django.db.models.lookups import GreaterThan, LessThan
from unfold.views import ChangeList

from tenantadmin.lib.core.emails import normalize_email
from tenantadmin.lib.core.rendering import is_storable
from tenantadmin.lib.database.plans import planned_for_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from django.contrib.admin import views
    from django.db.models import QuerySet
    from django.db.models.expressions import Combinable
    from django.http import HttpRequest

    #: A field of a page or a column of a list, as Django declares it: a name, or a function of the object.
    Shown = str | Callable[[Any], Any]

    # django-unfold is not typed; its class extends this.
    _ChangeList = views.main.ChangeList
else:
    _ChangeList = ChangeList

_LARGE: Final = (models.JSONField, models.BinaryField, models.TextField)


@dataclass(frozen=True, slots=True)
class Pages:
    """Links to other pages of a list. URLs have cursors instead of page numbers."""

    #: The address of the next page, or an empty text.
    next: str
    #: The address of the first page; empty on the first page.
    first: str
    template_name: ClassVar[str] = "admin/pages.html"


class LightList(_ChangeList):
    """A list that reads one page of rows, and large fields only if a column shows them."""

    #: A `tenantadmin.lib.http.admin.ReadOnlyAdmin`.
    model_admin: Any

    def get_filters(self, request: HttpRequest) -> Any:
        if any("\0" in value for values in self.filter_params.values() for value in values):
            # PostgreSQL cannot store a NUL character in a text.
            raise IncorrectLookupParameters
        return super().get_filters(request)

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        large = {field.name for field in self.opts.concrete_fields if isinstance(field, _LARGE)}
        return rows.defer(*large.difference(name_of(column) for column in self.list_display))

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[str | Combinable]:
        """Return the default order of the list, or the order by the chosen column, which has an index."""
        column = self._chosen_column()
        if column in self.model_admin.sorted_by_others:
            return super().get_ordering(request, queryset)
        if column is not None:
            sign = "-" if self.params[ORDER_VAR].startswith("-") else ""
            return [f"{sign}{self.get_ordering_field(column)}", f"{sign}pk"]
        self.params.pop(ORDER_VAR, None)
        return super().get_ordering(request, queryset)

    def _chosen_column(self) -> str | None:
        """Return the field to sort by, if the URL names a sortable column."""
        number = self.params.get(ORDER_VAR, "").removeprefix("-")
        # Longer numbers are not columns, and Python refuses to parse very long ones.
        if not (number.isdecimal() and len(number) < 3 and int(number) < len(self.list_display)):
            return None
        name = name_of(self.list_display[int(number)])
        return name if name in (self.model_admin.sortable_by or ()) else None

    def url_for_result(self, result: Any) -> str:
        return self.model_admin.page_address(result) or super().url_for_result(result)

    def _sorted_rows(self) -> QuerySet[Any]:
        """Return the rows in the order of the list, or rows of another model with their keys in its order."""
        rows: QuerySet[Any] = self.queryset
        column = self._chosen_column()
        if column is None:
            return rows
        if column in self.model_admin.sorted_by_others:
            model, column = self.model_admin.sorted_by_others[column]
            sign = "-" if self.params[ORDER_VAR].startswith("-") else ""
            listed = Exists(rows.order_by().filter(pk=OuterRef("pk")))
            others = model._default_manager.filter(listed).order_by(f"{sign}{column}", f"{sign}pk")
            rows = others.only(column)
        else:
            column = str(self.get_ordering_field(column))
        return rows.exclude(**{column: None}) if rows.model._meta.get_field(column).null else rows

    def get_results(self, request: HttpRequest) -> None:
        rows = self._sorted_rows()
        ordering = [str(name) for name in rows.query.order_by]
        cursor = request.GET.get(PAGE_VAR)
        if cursor:
            rows = _behind(rows, ordering, cursor)
        # One plan for all searches may read the whole table from the newest row on.
        with planned_for_values():
            found = list(rows[: self.list_per_page + 1])
        last = found[: self.list_per_page][-1:]
        shown = found[: self.list_per_page]
        if rows.model is not self.model:
            own = self.queryset.in_bulk([row.pk for row in shown])
            shown = [own[row.pk] for row in shown if row.pk in own]
        self.model_admin.prepare(shown)
        self.result_list: Any = shown
        # There is no count. The templates of a list read these attributes.
        self.result_count = self.full_result_count = len(shown)
        self.show_full_result_count = self.can_show_all = self.multi_page = False
        self.show_admin_actions = True
        has_more = len(found) > self.list_per_page
        self.paginator: Any = Pages(
            next=self.get_query_string({PAGE_VAR: _cursor(last[0], ordering)}) if has_more else "",
            first=self.get_query_string(remove=[PAGE_VAR]) if cursor else "",
        )


def name_of(column: Shown) -> str:
    """Return the name of a column."""
    return column if isinstance(column, str) else column.__name__


def _fields(model: type[models.Model], ordering: Sequence[str]) -> list[models.Field[Any, Any]]:
    options = model._meta
    names = (name.removeprefix("-") for name in ordering)
    return [options.pk if name == "pk" else options.get_field(name) for name in names]  # type: ignore[misc]


def _cursor(row: models.Model, ordering: Sequence[str]) -> str:
    """Return the cursor of the page that starts after ``row``."""
    values = [field.value_to_string(row) for field in _fields(type(row), ordering)]
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode()


def _behind(rows: QuerySet[Any], ordering: Sequence[str], cursor: str) -> QuerySet[Any]:
    """Return the rows after the row of ``cursor``.

    Raises:
        IncorrectLookupParameters: the cursor is not from this list.
    """
    fields = _fields(rows.model, ordering)
    try:
        texts = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
        if not isinstance(texts, list) or not all(
            isinstance(text, str) and is_storable(text) for text in texts
        ):
            raise IncorrectLookupParameters
        values = [field.to_python(text) for field, text in zip(fields, texts, strict=True)]
    except (ValueError, ValidationError) as error:
        raise IncorrectLookupParameters from error
    compare = LessThan if ordering[0].startswith("-") else GreaterThan
    # Compare whole rows, because an index then finds the first row of the page.
    here = Func(*(F(field.name) for field in fields), function="ROW", output_field=models.TextField())
    there = Func(
        *(Value(value, output_field=field) for field, value in zip(fields, values, strict=True)),
        function="ROW",
        output_field=models.TextField(),
    )
    return rows.filter(compare(here, there))


#: At most this many rows of another model are considered, such as users whose email has the prefix.
MAX_RELATED: Final = 100

#: A condition that no row meets.
NONE: Final = Q(pk__in=[])


def matching(model: type[models.Model], lookups: Iterable[str], term: str) -> Q:
    """Return the condition for rows in which one of ``lookups`` matches the whole ``term``.

    A lookup is a Django lookup such as ``email__startswith``; ``email`` means the whole value. Rows of
    another model (``user__email``) are found by a query of their own, so that no query joins large tables.
    """
    condition = NONE
    if "\0" not in term:
        for lookup in lookups:
            condition |= _condition(model, lookup, term)
    return condition


def _condition(model: type[models.Model], lookup: str, term: str) -> Q:
    name, _, rest = lookup.partition(LOOKUP_SEP)
    field = model._meta.get_field(name)
    if field.is_relation and rest:
        return _of_related(model, field, rest, term)
    value = _value(getattr(field, "target_field", field), term)
    return NONE if value is None else Q(**{f"{name}__{rest or 'exact'}": value})


def _of_related(model: type[models.Model], field: Any, rest: str, term: str) -> Q:
    found = field.related_model._default_manager.filter(_condition(field.related_model, rest, term))
    ids = list(found.order_by("pk").values_list("pk", flat=True)[:MAX_RELATED])
    if not ids:
        return NONE
    if field.many_to_many:
        own = model._default_manager.filter(**{f"{field.name}__in": ids}).order_by("pk")
        return Q(pk__in=list(own.values_list("pk", flat=True)[:MAX_RELATED]))
    return Q(**{f"{field.name}__in": ids})


def _value(field: Any, term: str) -> Any:
    """Return ``term`` as a value of ``field``, or None if no row can have it."""
    with suppress(ValueError):
        if isinstance(field, models.UUIDField):
            return UUID(term)
        if isinstance(field, models.DateField):
            return dt.date.fromisoformat(term)
        return normalize_email(term) if "@" in term else term
    return None
