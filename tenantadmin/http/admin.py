"""What the apps' admin pages share."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.db import models
from django.utils.html import format_html

from tenantadmin.http.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet
    from django.http import HttpRequest

    #: What Django takes for a field of a page: a name, or a function of the object.
    Shown = str | Callable[[Any], Any]

    _ModelAdmin = admin.ModelAdmin[Any]
    _TabularInline = admin.TabularInline[Any, Any]
else:  # generic in their type stubs alone
    _ModelAdmin = admin.ModelAdmin
    _TabularInline = admin.TabularInline


class ReadOnlyAdmin(_ModelAdmin):
    """Rows that only the service's own functions write: staff look at them and search them.

    A page shows every field of its model but those in ``exclude``, which are not even read.
    """

    show_full_result_count = False

    @cached_property
    def _shown(self) -> list[Shown]:
        options = self.model._meta
        fields = (*options.concrete_fields, *options.many_to_many)
        return [self.shown_as(field) for field in fields if field.name not in (self.exclude or ())]

    def shown_as(self, field: models.Field[Any, Any]) -> Shown:
        """Return what shows ``field`` on a page: its name, unless there is a better way."""
        return indented(field) if isinstance(field, models.JSONField) else field.name

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:  # noqa: ARG002
        return self._shown

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:  # noqa: ARG002
        # All of them: Django leaves out without a word what is neither editable nor named here.
        return self._shown

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.defer(*(self.exclude or ()))

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        return False


class ReadOnlyInline(_TabularInline):
    """Rows of another model that belong to the one on the page."""

    extra = 0
    can_delete = False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.get_fields(request, obj)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        return False


class RevocableAdmin(ReadOnlyAdmin):
    """Read-only rows with ``revoked_at``, which staff may revoke; what is revoked stays so."""

    actions = ("revoke",)

    @admin.action(description="Revoke the selected rows")
    def revoke(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        revoked = queryset.filter(revoked_at__isnull=True).update(revoked_at=now())
        messages.success(request, f"Revoked: {revoked}. This acts within five seconds.")


def indented(field: models.Field[Any, Any]) -> Callable[[Any], str]:
    """Return a function that shows the JSON in ``field`` of an object one member a line."""

    @admin.display(description=field.verbose_name)
    def show(obj: Any) -> str:
        text = json.dumps(getattr(obj, field.name), indent=2, ensure_ascii=False)
        return format_html('<pre class="json">{}</pre>', text)

    show.__name__ = field.name
    return show
