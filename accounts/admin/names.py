"""Show names beside the ids of tenants and accounts, for rows that store only the id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from django.contrib import admin
from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.html import format_html, format_html_join

from accounts.admin.finding import accounts_meant, people_meant, search_tenants
from accounts.models import Account, Tenant
from tenantadmin.lib.core import formats
from tenantadmin.lib.http.admin import ReadOnlyAdmin
from tenantadmin.lib.http.admin_lists import MAX_RELATED

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.utils.safestring import SafeString

    from tenantadmin.lib.http.admin_lists import Shown

    #: The address of its page and its name, by the id of a tenant or account.
    Names = Mapping[UUID, tuple[str, str]]


class NamingAdmin(ReadOnlyAdmin):
    """Shows and searches the names of the tenants and accounts whose ids are in the fields ``named``.

    The fields are UUIDs, foreign keys to tenants, or lists of ids as text.
    """

    named: ClassVar[tuple[str, ...]] = ("tenant_id",)
    search_fields: ClassVar[tuple[str, ...]] = ("tenant_id",)

    def shown_as(self, field: models.Field[Any, Any]) -> Shown:
        return named_ids(field) if field.attname in self.named else super().shown_as(field)

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

    def matching(self, term: str) -> Q:
        condition = super().matching(term)
        ids = ids_meant(term)
        for name in self.named:
            field = self.model._meta.get_field(name)
            if ids and isinstance(field, models.UUIDField | models.ForeignKey):
                condition |= Q(**{f"{field.attname}__in": ids})
        return condition


class FindsPeople(ReadOnlyAdmin):
    """Finds rows by words of a user's name or email, where ``search_fields`` have ``user__email``."""

    search_fields: ClassVar[tuple[str, ...]] = ("user__email",)
    search_help_text = "The user's name or email"

    def matching(self, term: str) -> Q:
        condition, ids = super().matching(term), people_meant(term)
        for lookup in self.search_fields:
            if ids and lookup.endswith("__email"):
                condition |= Q(**{f"{lookup.removesuffix('__email')}__in": ids})
        return condition


def ids_meant(term: str) -> list[UUID]:
    """Return the ids of tenants and accounts that ``term`` means: by id, name or FQDN."""
    if "@" in term or "\0" in term:
        # An email means rows about the person, not rows of the person's tenants.
        return []
    tenants = Tenant.objects.filter(search_tenants(term).condition()).order_by("pk")
    found = [*tenants.values_list("pk", flat=True)[:MAX_RELATED], *accounts_meant(term)]
    with suppress(ValueError):
        # Rows outlive the tenant.
        found.append(UUID(term))
    return found


def names_of(ids: Iterable[UUID]) -> Names:
    """Return page and name of each tenant and account among ``ids``, in two queries."""
    wanted = set(ids)
    pages: dict[type[Tenant | Account], str] = {
        Tenant: "admin:tenant",
        Account: "admin:account",
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
    return [UUID(str(value)) for value in values if value != "*"]


def named_ids(field: Any, *, short: bool = False) -> Callable[[Any], str]:
    """Return a display function for the ids in ``field``, each with the name of its tenant or account.

    ``short`` shortens the ids to eight digits, for columns of lists.
    """

    @admin.display(description=field.verbose_name.removesuffix(" id"), ordering=field.name)
    def show(obj: Any) -> str:
        ids = ids_in(obj, field)
        if not ids:
            return "*" if getattr(obj, field.attname) else formats.NONE
        return format_html_join(", ", "{}", [(_linked_id(key, obj.found_names, short=short),) for key in ids])

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
