"""What the apps' admin pages share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages

from tenantadmin.http.timestamps import now

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

    _ModelAdmin = admin.ModelAdmin[Any]
    _TabularInline = admin.TabularInline[Any, Any]
else:  # generic in their type stubs alone
    _ModelAdmin = admin.ModelAdmin
    _TabularInline = admin.TabularInline


class ReadOnlyAdmin(_ModelAdmin):
    """Rows that only the service's own functions write: staff look at them and search them."""

    show_full_result_count = False

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
