"""Admin pages of people, tokens, accounts, tenants and history.

Documents change by their one write function alone. Here staff look and search, end rights and verify domains:
by the functions that the API calls (`accounts.staff.actions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Count, Q
from django.urls import reverse

from accounts.access.credentials import end_pat, end_refresh_token
from accounts.grants import end_grant
from accounts.models import (
    Account,
    Domain,
    Event,
    Fqdn,
    Membership,
    PermissionGrant,
    PersonalAccessToken,
    RefreshToken,
    Revision,
    Tenant,
    TenantConfig,
    User,
)
from accounts.models.signin import MagicLink
from accounts.staff.actions import DOMAIN_ACTIONS, USER_ACTIONS
from accounts.staff.finding import tenants_matching
from accounts.staff.names import NamingAdmin, revisions_address
from tenantadmin.http.admin import ReadOnlyAdmin, ReadOnlyInline
from tenantadmin.http.admin_actions import revocation

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest


class MembershipInline(ReadOnlyInline):
    """A user's or a tenant's memberships."""

    model = Membership
    fields = ("user", "tenant", "role", "ends_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request).select_related("user", "tenant")
        return rows


@admin.register(User)
class UserAdmin(ReadOnlyAdmin):
    list_display = (
        "email",
        "display_name",
        "role",
        "is_support",
        "is_active",
        "identity_provider",
        "last_login",
    )
    list_filter = ("role", "is_support", "is_active", "identity_provider")
    search_fields = ("email", "display_name", "identity_subject")
    exclude = ("password", "epoch")
    inlines = (MembershipInline,)
    actions = USER_ACTIONS


@admin.register(Membership)
class MembershipAdmin(NamingAdmin):
    named = ("tenant",)
    list_display = ("user", "tenant", "role", "ends_at")
    list_filter = ("role", ("ends_at", admin.EmptyFieldListFilter))
    list_select_related = ("user",)
    search_fields = ("user__email", "tenant__name", "tenant__id")


@admin.register(PersonalAccessToken)
class PersonalAccessTokenAdmin(NamingAdmin):
    actions = (revocation("Access tokens minted from it end within five seconds.", end_pat),)
    named = ("tenants", "accounts")
    list_display = (
        *("prefix", "name", "owner", "scopes", "tenants", "accounts"),
        *("expires_at", "last_used_at", "revoked_at"),
    )
    list_select_related = ("owner",)
    search_fields = ("prefix", "name", "owner__email")
    exclude = ("digest",)


@admin.register(RefreshToken)
class RefreshTokenAdmin(ReadOnlyAdmin):
    actions = (revocation("Access tokens minted from it end within five seconds.", end_refresh_token),)
    list_display = (
        *("prefix", "user", "provider", "address", "created_at"),
        *("expires_at", "last_used_at", "revoked_at"),
    )
    list_select_related = ("user",)
    search_fields = ("prefix", "user__email")
    exclude = ("digest",)


@admin.register(PermissionGrant)
class PermissionGrantAdmin(NamingAdmin):
    actions = (revocation("It acts within five seconds, on tokens that are out already.", end_grant),)
    named = ("resource_id",)
    list_display = (
        *("grantee", "resource", "resource_id", "permissions"),
        *("granted_by", "expires_at", "revoked_at"),
    )
    list_filter = ("resource",)
    list_select_related = ("grantee", "granted_by")
    search_fields = ("grantee__email", "resource_id")


class TenantInline(ReadOnlyInline):
    """An account's tenants, tombstones included."""

    model = Tenant
    show_change_link = True
    fields = ("name", "id", "modified_at", "deleted_at")


@admin.register(Account)
class AccountAdmin(ReadOnlyAdmin):
    list_display = ("name", "id", "plan", "tenant_count", "billing_email", "modified_at", "deleted_at")
    list_filter = ("plan", ("deleted_at", admin.EmptyFieldListFilter))
    search_fields = ("name", "id", "owners__email", "billing_email")
    inlines = (TenantInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        live = Count("tenants", filter=Q(tenants__deleted_at__isnull=True))
        rows: QuerySet[Any] = super().get_queryset(request).annotate(live_tenants=live)
        return rows

    @admin.display(description="tenants", ordering="live_tenants")
    def tenant_count(self, account: Any) -> int:
        count: int = account.live_tenants
        return count

    def revisions_address(self, obj: Any) -> str:
        return revisions_address(kind="account", account_id=obj.pk)


@admin.register(Domain)
class DomainAdmin(ReadOnlyAdmin):
    actions = DOMAIN_ACTIONS
    list_display = ("name", "account", "verified_at", "created_at")
    list_select_related = ("account",)
    search_fields = ("name", "account__name")


@admin.register(Fqdn)
class FqdnAdmin(NamingAdmin):
    list_display = ("name", "tenant_id", "claimed_at", "released_at")
    search_fields = ("name", "tenant_id")


@admin.register(Tenant)
class TenantAdmin(ReadOnlyAdmin):
    list_display = ("name", "id", "account", "modified_at", "deleted_at")
    list_filter = (("deleted_at", admin.EmptyFieldListFilter),)
    list_select_related = ("account",)
    search_fields = ("name",)
    search_help_text = "The start of the name, the id, an FQDN, or the email of a member."
    inlines = (MembershipInline,)

    def get_search_results(
        self,
        request: HttpRequest,  # noqa: ARG002
        queryset: QuerySet[Any],
        search_term: str,
    ) -> tuple[QuerySet[Any], bool]:
        if not search_term.strip():
            return queryset, False
        return queryset.filter(tenants_matching(search_term)), False

    def page_address(self, obj: Any) -> str:
        return reverse("admin:tenant", args=[obj.pk])

    def revisions_address(self, obj: Any) -> str:
        return revisions_address(tenant_id=obj.pk)


@admin.register(TenantConfig)
class TenantConfigAdmin(NamingAdmin):
    named = ("tenant",)
    list_display = ("seq", "tenant", "modified_at")
    search_fields = ("tenant__name", "tenant__id")

    def revisions_address(self, obj: Any) -> str:
        return revisions_address(kind="config", tenant_id=obj.pk)


@admin.register(Revision)
class RevisionAdmin(NamingAdmin):
    named = ("tenant_id", "account_id")
    linked_by = named
    list_display = ("changed_at", "kind", "tenant_id", "account_id", "seq", "action", "user")
    list_filter = ("kind", "action")
    search_fields = ("tenant_id", "account_id", "user")
    date_hierarchy = "changed_at"


@admin.register(Event)
class EventAdmin(NamingAdmin):
    """Events of everybody. The filters and the search use indexes, because the table is large."""

    named = ("tenant_id", "account_id")
    list_display = (
        *("at", "kind", "actor", "subject", "tenant_id", "account_id"),
        *("reason", "address", "request_id"),
    )
    list_filter = ("kind", "at")
    search_fields = ("actor__exact", "subject__exact")
    search_help_text = "The whole email, domain or hash, or the name of a tenant or account."
    linked_by = named


@admin.register(MagicLink)
class MagicLinkAdmin(ReadOnlyAdmin):
    list_display = ("email", "created_at", "expires_at", "used_at")
    search_fields = ("email",)
    exclude = ("digest",)
