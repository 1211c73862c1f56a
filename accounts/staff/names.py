"""Show names next to the ids of tenants and accounts, on admin pages of rows that store only the id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from django.contrib import admin
from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.text import smart_split, unescape_string_literal

from accounts.models import Account, Tenant
from tenantadmin.http.admin import ReadOnlyAdmin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString

    from tenantadmin.http.admin import Shown

    #: Maps the id of a tenant or account to the address of its page and its name.
    Names = Mapping[UUID, tuple[str, str]]


class NamingAdmin(ReadOnlyAdmin):
    """Shows and finds rows by the names of the tenants and accounts whose ids are in the fields ``named``.

    The fields are UUIDs, foreign keys to tenants, or lists of ids as text.
    """

    named: ClassVar[tuple[str, ...]] = ("tenant_id",)

    def shown_as(self, field: models.Field[Any, Any]) -> Shown:
        return named_ids(field) if field.name in self.named else super().shown_as(field)

    def get_list_display(self, request: HttpRequest) -> Any:
        columns = super().get_list_display(request)
        return [self._columns.get(column, column) for column in columns]

    @property
    def _columns(self) -> dict[Any, Shown]:
        options = self.model._meta
        return {name: named_ids(options.get_field(name), short=True) for name in self.named}

    def prepare(self, rows: Sequence[Any]) -> None:
        fields = [self.model._meta.get_field(name) for name in self.named]
        found = names_of(identifier for row in rows for field in fields for identifier in ids_in(row, field))
        for row in rows:
            row.found_names = found

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        fields = [
            name for name in self.named if isinstance(self.model._meta.get_field(name), models.UUIDField)
        ]
        duplicates = False
        for word in smart_split(search_term):
            found, doubled = super().get_search_results(request, queryset, word)
            queryset, duplicates = found | queryset.filter(_name_matches(fields, word)), duplicates or doubled
        return queryset, duplicates


def _name_matches(fields: Iterable[str], word: str) -> Q:
    """Return the filter for rows whose ``fields`` have the id of a tenant or account named ``word``."""
    text = unescape_string_literal(word) if word[:1] in {'"', "'"} and word[:1] == word[-1:] else word
    condition = Q(pk__in=[])
    for field in fields:
        for model in (Tenant, Account):
            condition |= Q(
                **{f"{field}__in": model._default_manager.filter(name__icontains=text).values("pk")}
            )
    return condition


def names_of(ids: Iterable[UUID]) -> Names:
    """Return the pages and names of the tenants and accounts among ``ids``, in two queries."""
    wanted = set(ids)
    pages: dict[type[Tenant | Account], str] = {
        Tenant: "admin:tenant",
        Account: "admin:accounts_account_change",
    }
    return {
        row.pk: (reverse(page, args=[row.pk]), row.name)
        for model, page in pages.items()
        for row in model._default_manager.filter(pk__in=wanted).only("name")
    }


def ids_in(row: Any, field: Any) -> list[UUID]:
    """Return the ids in ``field`` of ``row``, without the wildcard."""
    value = getattr(row, field.attname)
    values = value if isinstance(value, list) else [] if value is None else [value]
    return [UUID(str(it)) for it in values if it != "*"]


def named_ids(field: Any, *, short: bool = False) -> Callable[[Any], str]:
    """Return a function that shows the ids in ``field``, each with the name of its tenant or account.

    ``short`` shortens the ids to eight digits, for columns of lists.
    """

    @admin.display(description=field.verbose_name.removesuffix(" id"), ordering=field.name)
    def show(obj: Any) -> str:
        ids = ids_in(obj, field)
        if not ids:
            return "*" if getattr(obj, field.attname) else "-"
        return format_html_join(", ", "{}", [(_linked_id(it, obj.found_names, short=short),) for it in ids])

    show.__name__ = field.name
    return show


def _linked_id(identifier: UUID, names: Names, *, short: bool) -> SafeString:
    text = f"{str(identifier)[:8]}…" if short else str(identifier)
    if identifier not in names:
        return format_html('<span class="named-id"><code title="{}">{}</code></span>', identifier, text)
    return format_html(
        '<span class="named-id"><a href="{}">{}</a> <code title="{}">{}</code></span>',
        *names[identifier],
        identifier,
        text,
    )


def revisions_address(**filters: str | UUID) -> str:
    """Return the address of the list of revisions, filtered by ``filters``."""
    query = urlencode({name: str(value) for name, value in filters.items()})
    return f"{reverse('admin:accounts_revision_changelist')}?{query}"
