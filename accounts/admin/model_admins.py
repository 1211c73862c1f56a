"""Lists of people, tokens, accounts, tenants and history on the admin site.

Staff search and read rows. Their actions, such as revoking and verifying, call the functions of the API
(`accounts.admin.actions`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.contrib.admin.views.main import SEARCH_VAR
from django.db.models import Count, Q
from django.urls import reverse
from django.utils.html import format_html, format_html_join

from accounts.access.credentials import PAT_PREFIX, end_pat, end_refresh_token
from accounts.admin.actions import DOMAIN_ACTIONS, USER_ACTIONS
from accounts.admin.finding import (
    accounts_meant,
    search_accounts,
    search_domains,
    search_fqdns,
    search_people,
)
from accounts.admin.names import FindsPeople, NamingAdmin, named_ids
from accounts.billing.domains import challenge_of
from accounts.models import (
    AccessRequest,
    Account,
    AuditView,
    Domain,
    Event,
    Fqdn,
    Invitation,
    InvitationRefusal,
    Mail,
    Membership,
    PermissionGrant,
    PersonalAccessToken,
    Proposal,
    RefreshToken,
    Revision,
    Snooze,
    Tenant,
    TenantConfig,
    User,
)
from accounts.models.tokens import OF_DASHBOARD, MagicLink
from accounts.readers.grants import end_grant
from accounts.readers.rule import Author
from tenantadmin.lib.core import formats
from tenantadmin.lib.http.admin import ReadOnlyAdmin, ReadOnlyInline, WordFilter, shortened
from tenantadmin.lib.http.admin_actions import revocation

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest


@admin.display(description="Challenge")
def _show_challenge(domain: Domain) -> str:
    """Return the record that the DNS must hold, whole."""
    record = challenge_of(domain)
    return format_html(
        "{} record of the DNS<br>name <code>{}</code><br>value <code>{}</code>",
        *(record.type, record.name, record.value),
    )


class StateFilter(WordFilter):
    """Live and deleted rows."""

    heading = "state"
    words = ("All", "Live", "Deleted")


class UntilFilter(WordFilter):
    """Memberships without an end, and staff's access for a limited time."""

    heading = "end"
    words = ("All", "No end", "For a limited time")


class MembershipInline(ReadOnlyInline):
    """A user's or a tenant's memberships."""

    model = Membership
    fields = ("user", "tenant", "role", "ends_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request).select_related("user", "tenant")
        return rows


@admin.register(User)
class UserAdmin(ReadOnlyAdmin):
    page = "admin:person"
    list_display = (
        "email",
        "display_name",
        "role",
        "is_support",
        "is_active",
        "identity_provider",
        "last_login",
    )
    list_filter = ("role", "is_support", "is_active")
    search_fields = ("email",)
    search_help_text = "Email or name"
    exclude = ("password", "epoch")
    inlines = (MembershipInline,)
    actions = USER_ACTIONS

    def matching(self, term: str) -> Q:
        return search_people(term).condition()


@admin.register(AuditView)
class AuditViewAdmin(FindsPeople):
    list_display = ("name", "user", "filters", "created_at")
    list_select_related = ("user",)
    ordering = ("pk",)


@admin.register(Snooze)
class SnoozeAdmin(FindsPeople):
    list_display = ("user", "panel", "subject", "until")
    list_select_related = ("user",)
    ordering = ("pk",)


@admin.register(Membership)
class MembershipAdmin(FindsPeople, NamingAdmin):
    list_display = ("user", "tenant_id", "role", "ends_at")
    list_filter = ("role", ("ends_at", UntilFilter))
    list_select_related = ("user",)
    search_help_text = "User's name or email, or the tenant"


class SignInsFilter(admin.SimpleListFilter):
    """Leaves out the tokens that the dashboard makes for each sign-in, by default."""

    title = "sign-ins to the dashboard"
    parameter_name = "sign_ins"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ARG002
        return [("all", "Also tokens of sign-ins")]

    def choices(self, changelist: Any) -> Iterator[Any]:
        default, *others = super().choices(changelist)
        yield {**default, "display": "Without tokens of sign-ins"}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        # A leaked token is looked up by its start, whatever it is.
        if self.value() == "all" or request.GET.get(SEARCH_VAR, "").strip().startswith(PAT_PREFIX):
            return queryset
        return queryset.exclude(name=OF_DASHBOARD)


@admin.register(PersonalAccessToken)
class PersonalAccessTokenAdmin(FindsPeople, NamingAdmin):
    actions = (revocation("Access tokens minted from it end within five seconds.", end_pat),)
    named = ("tenants", "accounts")
    list_display = (
        *("prefix", "name", "owner", "scopes", "resources"),
        *("expires_at", "last_used_at", "revoked_at"),
    )
    list_filter = (SignInsFilter,)
    list_before_template = "backoffice/tokens_note.html"
    list_select_related = ("owner",)
    ordering = ("-created_at", "-pk")
    search_fields = ("prefix__startswith", "owner__email")
    search_help_text = "Start of token, or its owner's name or email"
    exclude = ("digest", "previous_digest")

    @admin.display(description="on")
    def resources(self, pat: Any) -> str:
        fields = [self.model._meta.get_field(name) for name in self.named]
        shown = [(named_ids(field, short=True)(pat),) for field in fields if getattr(pat, field.name)]
        return format_html_join(", ", "{}", shown) or formats.NONE


@admin.register(RefreshToken)
class RefreshTokenAdmin(FindsPeople):
    actions = (revocation("Access tokens minted from it end within five seconds.", end_refresh_token),)
    list_display = (
        *("prefix", "user", "provider", "address", "created_at"),
        *("expires_at", "last_used_at", "revoked_at"),
    )
    list_select_related = ("user",)
    ordering = ("-created_at", "-pk")
    search_fields = ("prefix__startswith", "user__email")
    search_help_text = "Start of token, or its user's name or email"
    exclude = ("digest",)


def _end_grant(grant: PermissionGrant, *, actor: str) -> bool:
    return end_grant(grant, author=Author.on_site(actor))


@admin.register(PermissionGrant)
class PermissionGrantAdmin(FindsPeople, NamingAdmin):
    actions = (revocation("It takes effect within five seconds, also on tokens already issued.", _end_grant),)
    named = ("resource_id",)
    list_display = (
        *("grantee", "resource", "resource_id", "permissions"),
        *("granted_by", "expires_at", "revoked_at"),
    )
    list_filter = ("resource",)
    list_select_related = ("grantee", "granted_by")
    ordering = ("-created_at", "-pk")
    search_fields = ("grantee__email",)
    search_help_text = "Grantee's name or email, tenant or account"


class TenantInline(ReadOnlyInline):
    """An account's tenants, tombstones included."""

    model = Tenant
    show_change_link = True
    fields = ("name", "id", "modified_at", "deleted_at")


@admin.register(Account)
class AccountAdmin(ReadOnlyAdmin):
    page = "admin:account"
    creating_page = "admin:account-new"
    revisions = "kind=account&account_id={}"
    list_display = ("name", "id", "plan", "tenant_count", "billing_email", "modified_at", "deleted_at")
    list_filter = ("plan", ("deleted_at", StateFilter))
    search_fields = ("owners__email", "billing_email")
    search_help_text = "Name, id, or an owner's or billing email"
    inlines = (TenantInline,)

    def matching(self, term: str) -> Q:
        return super().matching(term) | search_accounts(term).condition()

    def prepare(self, rows: Sequence[Any]) -> None:
        live = Tenant.objects.live().filter(account__in=rows).order_by()
        counts = dict(live.values_list("account_id").annotate(tenants=Count("*")))
        for row in rows:
            row.live_tenants = counts.get(row.pk, 0)

    @admin.display(description="tenants")
    def tenant_count(self, account: Any) -> int:
        count: int = account.live_tenants
        return count


@admin.register(Domain)
class DomainAdmin(ReadOnlyAdmin):
    actions = DOMAIN_ACTIONS
    shown: ClassVar = {"challenge": _show_challenge}
    list_display = ("name", "account", "verified_at", "created_at")
    list_select_related = ("account",)
    ordering = ("name", "pk")
    search_fields = ("name",)
    search_help_text = "Domain, or the account's name or id"

    def matching(self, term: str) -> Q:
        return search_domains(term).condition() | Q(account__in=accounts_meant(term))

    def staff_posts(self, request: HttpRequest, obj: Any) -> Sequence[tuple[str, str]]:
        if obj.verified_at is not None or not request.user.is_superuser:
            return ()
        return [("Check the DNS", reverse("admin:domain-check", args=[obj.account_id, obj.name]))]


@admin.register(Fqdn)
class FqdnAdmin(NamingAdmin):
    list_display = ("name", "tenant_id", "claimed_at", "released_at")
    search_fields = ("name",)
    search_help_text = "FQDN, or the tenant's name or id"

    def matching(self, term: str) -> Q:
        return super().matching(term) | search_fqdns(term).condition()


@admin.register(TenantConfig)
class TenantConfigAdmin(NamingAdmin):
    list_display = ("seq", "tenant_id", "modified_at")
    ordering = ("pk",)
    revisions = "kind=config&tenant_id={}"


@admin.register(Revision)
class RevisionAdmin(NamingAdmin):
    named = ("tenant_id", "account_id")
    linked_by = named
    list_display = ("changed_at", "kind", "tenant_id", "account_id", "seq", "action", "user")
    list_filter = ("kind", "action", "changed_at")
    search_fields = ("user",)
    search_help_text = "Whole email, or a tenant's or account's name"


@admin.register(Event)
class EventAdmin(NamingAdmin):
    """All events. The filters and the search use indexes, because the table is large."""

    named = ("tenant_id", "account_id")
    list_display = (
        *("at", "kind", "actor", "subject", "tenant_id", "account_id"),
        *("reason", "address", "request_id"),
    )
    list_filter = ("kind", "at")
    search_fields = ("actor", "subject")
    search_help_text = "Whole email, domain or hash, tenant, account"
    linked_by = named


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    list_display = (
        *("email", "tenant", "role", "invited_by"),
        *("created_at", "expires_at", "ended_at", "outcome"),
    )
    list_select_related = ("tenant", "invited_by")
    ordering = ("-created_at", "-pk")
    search_fields = ("email",)
    search_help_text = "Whole email of the invited user"


@admin.register(InvitationRefusal)
class InvitationRefusalAdmin(ReadOnlyAdmin):
    list_display = ("email", "refused_at")
    ordering = ("-refused_at", "-pk")
    search_fields = ("email",)
    search_help_text = "Whole email of the invited user"


@admin.register(AccessRequest)
class AccessRequestAdmin(FindsPeople):
    list_display = (
        *("staff", "tenant", "hours", "reason"),
        *("created_at", "expires_at", "ended_at", "outcome", "decided_by"),
    )
    list_select_related = ("staff", "tenant", "decided_by")
    ordering = ("-created_at", "-pk")
    search_fields = ("staff__email",)
    search_help_text = "Name or email of the user who asked"


@admin.register(Proposal)
class ProposalAdmin(FindsPeople, NamingAdmin):
    named = ("resource_id",)
    list_display = (
        *("admin", "effect", "person", "resource_id", "detail", "reason"),
        *("created_at", "expires_at", "ended_at", "outcome"),
    )
    list_select_related = ("admin",)
    ordering = ("-created_at", "-pk")
    search_fields = ("person",)
    search_help_text = "Whole email of whose rights would change"


@admin.register(Mail)
class MailAdmin(NamingAdmin):
    list_display = ("created_at", "to", "tenant_id", "subject", "state", "attempts", shortened("error"))
    list_filter = ("state", "created_at")
    search_fields = ("to__startswith",)
    #: They hold what owners and staff wrote to each other.
    exclude = ("text", "html")


@admin.register(MagicLink)
class MagicLinkAdmin(ReadOnlyAdmin):
    list_display = ("email", "created_at", "expires_at", "used_at")
    ordering = ("-created_at", "-pk")
    search_fields = ("email__startswith",)
    exclude = ("digest",)
