"""Base classes and columns for lists of rows on the admin site."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import LogEntry
from django.contrib.admin.options import get_content_type_for_model
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models
from django.db.models.constants import LOOKUP_SEP
from django.forms.widgets import Script
from django.http import HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import Truncator, capfirst
from unfold.admin import ModelAdmin, TabularInline

from tenantadmin.lib.core import formats
from tenantadmin.lib.http import admin_lists
from tenantadmin.lib.http.admin_actions import FROM_RECORD, is_offered
from tenantadmin.lib.http.admin_lists import LightList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from django.db.models import Q, QuerySet
    from django.http import HttpRequest, HttpResponse

    from tenantadmin.lib.http.admin_lists import Shown

    # django-unfold is not typed; its classes extend these.
    _ModelAdmin = admin.ModelAdmin[Any]
    _TabularInline = admin.TabularInline[Any, Any]
else:  # only the type stubs are generic
    _ModelAdmin = ModelAdmin
    _TabularInline = TabularInline

#: Lookups that a list URL may use on filter fields, and on date fields.
_FILTERS: Final = frozenset({"", "exact", "isnull", "isempty"})
_PERIODS: Final = frozenset({"gte", "lt"})
_SHORT: Final = 80
_ACTIONS: Final[Any] = Script("admin/js/actions.js", defer=True)
#: Fields whose names are not words of the pages: their label, and the format of their values.
_WORDS: Final[Mapping[str, tuple[str, Callable[[Any], str]]]] = {
    "seq": ("revision", formats.number),
    "ttl_seconds": ("time to live", formats.span),
}


class ReadOnlyAdmin(_ModelAdmin):
    """Rows that staff can view and search, but not edit: only the service's functions write them.

    A page shows every field of its model except those in ``exclude``, which are not read either.
    """

    show_full_result_count = False
    # Facets would count the rows of each filter.
    show_facets = admin.ShowFacets.NEVER
    #: Columns that a list can be sorted by. Each needs an index with the primary key.
    sortable_by: ClassVar[tuple[str, ...]] = ()
    #: Those of them that another model has, with the same primary key: the model and its field, which has the
    #: index. Rows that the other model lacks are left out then.
    sorted_by_others: ClassVar[Mapping[str, tuple[type[models.Model], str]]] = {}
    object_history_template = "admin/staff_history.html"
    #: Rows are not edited here. Django's other scripts, with jQuery, would hold the page back.
    media = forms.Media(js=[_ACTIONS])

    list_fullwidth = True
    #: What a page shows in place of a field, by its name.
    shown: ClassVar[Mapping[str, Shown]] = {}
    #: The name of the URL of the page that staff have for a row, to which the list then links.
    page: ClassVar[str] = ""
    #: The query string that shows only the revisions of one row; ``{}`` stands for the key of the row.
    revisions: ClassVar[str] = ""

    @cached_property
    def _shown(self) -> list[Shown]:
        options = self.model._meta
        fields = (*options.concrete_fields, *options.many_to_many)
        return [
            self.shown.get(field.name) or self.shown_as(field)
            for field in fields
            if field.name not in (self.exclude or ())
        ]

    def shown_as(self, field: models.Field[Any, Any]) -> Shown:
        """Return how a page shows ``field``: as Django does, in words, or JSON indented."""
        return indented(field) if isinstance(field, models.JSONField) else in_words(field)

    def get_list_display(self, request: HttpRequest) -> Any:
        fields = {field.name: field for field in self.model._meta.fields}
        return [
            in_words(fields[column]) if column in fields else column
            for column in super().get_list_display(request)
        ]

    #: Fields besides ``list_filter`` by which links on this site filter the list.
    linked_by: ClassVar[tuple[str, ...]] = ()

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:  # noqa: ARG002
        """Return True if a URL may filter the list by ``lookup``.

        Django allows all fields of the model, even those in ``exclude``, and every comparison.
        """
        name, _, comparison = lookup.partition(LOOKUP_SEP)
        filters = {
            item[0] if isinstance(item, tuple) else getattr(item, "parameter_name", item)
            for item in self.get_list_filter(request)
        }
        if name in filters and comparison in _PERIODS:
            return isinstance(self.model._meta.get_field(name), models.DateField)
        return name in filters.union(self.linked_by) and comparison in _FILTERS

    def prepare(self, rows: Sequence[Any]) -> None:
        """Read in one query what is shown with ``rows``: the rows of a list, or the one row of a page."""

    def page_address(self, obj: Any) -> str:
        """Return the address to which the list links for ``obj``. Empty: the page of the row."""
        return reverse(self.page, args=[obj.pk]) if self.page else ""

    def staff_posts(self, request: HttpRequest, obj: Any) -> Sequence[tuple[str, str]]:  # noqa: ARG002
        """Return what the page of ``obj`` offers before its actions: words, and the address to post to."""
        return ()

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        title = {"title": "Staff history"}
        response: HttpResponse = super().history_view(request, object_id, {**title, **(extra_context or {})})
        return response

    def matching(self, term: str) -> Q:
        """Return the condition for rows in which one of ``search_fields`` matches ``term``."""
        return admin_lists.matching(self.model, self.search_fields, term)

    def get_search_results(
        self,
        request: HttpRequest,  # noqa: ARG002
        queryset: QuerySet[Any],
        search_term: str,
    ) -> tuple[QuerySet[Any], bool]:
        """Search only with indexes (`admin_search`)."""
        term = search_term.strip()
        return (queryset.filter(self.matching(term)) if term else queryset), False

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Return the actions of the list. Only platform admins have actions; support reads."""
        actions: dict[str, Any] = super().get_actions(request)
        return actions if request.user.is_superuser else {}

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:  # noqa: ARG002
        return self._shown

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:  # noqa: ARG002
        # Django silently omits fields that are neither editable nor listed here.
        return self._shown

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.defer(*(self.exclude or ()))

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        # Django's title is "Select user to view".
        title = {"title": capfirst(self.opts.verbose_name_plural)}
        return super().changelist_view(request, {**title, **(extra_context or {})})

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[LightList]:  # noqa: ARG002
        return LightList

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        obj = super().get_object(request, object_id, from_field)
        if obj is not None:
            self.prepare([obj])
        return obj

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        # Django passes submitted keys to the database unchecked, and a text that is not a key would fail.
        if not all(map(self._is_key, request.POST.getlist(ACTION_CHECKBOX_NAME))):
            messages.error(request, "A selected row is not in this list. Nothing was done.")
            return None
        response: HttpResponse | None = super().response_action(request, queryset, *args, **kwargs)
        return response

    def _is_key(self, text: str) -> bool:
        try:
            self.model._meta.pk.to_python(text)
        except ValidationError:
            return False
        # PostgreSQL cannot store a NUL character in a text.
        return "\0" not in text

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        context["title"] = f"{capfirst(self.opts.verbose_name)}: {context['original']}"
        context["page_address"] = self.page_address(context["original"])
        context["revisions"] = self.revisions.format(context["original"].pk)
        titles = dict(self.get_action_choices(request))
        context["staff_actions"] = [
            (name, titles[name])
            for name, (run, *_) in self.get_actions(request).items()
            if is_offered(run, request, context["original"])
        ]
        context["staff_posts"] = self.staff_posts(request, context["original"])
        entries = LogEntry.objects.filter(
            content_type=get_content_type_for_model(self.model), object_id=context["original"].pk
        )
        context["has_staff_history"] = bool(self.actions) and entries.exists()
        context["from_record"] = FROM_RECORD
        context["action_checkbox_name"] = ACTION_CHECKBOX_NAME
        response: HttpResponse = super().render_change_form(request, context, *args, **kwargs)
        return response

    #: The name of the page that creates such a row. Empty: staff create none.
    creating_page: ClassVar[str] = ""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(self.creating_page) and request.user.is_superuser

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:  # noqa: ARG002
        if not self.has_add_permission(request):
            raise PermissionDenied
        return HttpResponseRedirect(reverse(self.creating_page))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        return False


class WordFilter(admin.EmptyFieldListFilter):
    """Filters rows by whether a field is empty, in the words of the subclass.

    Attributes:
        heading: the heading of the filter.
        words: what it says for all rows, for an empty field, and for the others.
    """

    heading: ClassVar[str]
    words: ClassVar[tuple[str, str, str]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = self.heading

    def choices(self, changelist: Any) -> Iterator[Any]:
        for choice, word in zip(super().choices(changelist), self.words, strict=True):
            yield {**choice, "display": word}


class ReadOnlyInline(_TabularInline):
    """A read-only table of rows of another model that belong to the object on the page."""

    extra = 0
    can_delete = False
    media = forms.Media()

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.get_fields(request, obj)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        return False


def indented(field: models.Field[Any, Any]) -> Callable[[Any], str]:
    """Return a function that shows the JSON in ``field`` of an object, indented."""

    @admin.display(description=field.verbose_name)
    def show(obj: Any) -> str:
        value = getattr(obj, field.name)
        if value is None:
            return formats.NONE
        return format_html('<pre class="json">{}</pre>', json.dumps(value, indent=2, ensure_ascii=False))

    show.__name__ = field.name
    return show


def in_words(field: models.Field[Any, Any]) -> Shown:
    """Return how lists and pages show ``field``: by its name, or by a function with its own words."""
    name, write = _WORDS.get(field.name, (field.verbose_name, None))
    if isinstance(field, models.FloatField):
        # All of them are shares.
        write = formats.percent
    elif isinstance(field, models.IntegerField) and not field.primary_key and write is None:
        write = formats.number
    if write is None:
        return field.name

    @admin.display(description=name, ordering=field.name)
    def show(obj: Any) -> str:
        return write(getattr(obj, field.name))

    show.__name__ = field.name
    return show


def shortened(name: str, *, heading: str = "") -> Callable[[Any], str]:
    """Return a column that shows the start of the text in the field ``name``."""

    @admin.display(description=heading or name.replace("_", " "))
    def show(obj: Any) -> str:
        return Truncator(getattr(obj, name)).chars(_SHORT)

    show.__name__ = name
    return show
