from __future__ import annotations

from django.urls import path

from accounts import converters  # noqa: F401 - importing registers them
from accounts.api.access_requests import AccessRequestViewSet
from accounts.api.accounts import AccountViewSet
from accounts.api.config import ConfigViewSet, WarehouseViewSet
from accounts.api.domains import DomainViewSet
from accounts.api.events import EventViewSet
from accounts.api.fqdns import FqdnViewSet
from accounts.api.grants import GrantViewSet
from accounts.api.history import AccountHistoryViewSet, ChangesViewSet, ConfigHistoryViewSet
from accounts.api.introspection import IntrospectionViewSet
from accounts.api.invitations import InvitationViewSet, OwnInvitationViewSet
from accounts.api.keys import SigningKeyViewSet
from accounts.api.memberships import MembershipViewSet
from accounts.api.oauth import OAuthViewSet
from accounts.api.pats import PersonalAccessTokenViewSet
from accounts.api.roles import RolesViewSet
from accounts.api.sessions import SessionViewSet
from accounts.api.signin import SignInViewSet
from accounts.api.tenants import TenantViewSet
from accounts.api.users import UserViewSet

_USER = "users/<email:email>"
_TENANT = "config/tenants/<uuid:tenant>"
_ACCOUNT = "config/accounts/<uuid:account>"

urlpatterns = [
    path("users", UserViewSet.as_view({"get": "list_users"}), name="users"),
    path(
        _USER,
        UserViewSet.as_view({"get": "get_user", "put": "replace_user", "delete": "delete_user"}),
        name="user",
    ),
    path(
        f"{_USER}/roles",
        RolesViewSet.as_view({"get": "get_roles", "put": "replace_roles", "patch": "merge_roles"}),
        name="user-roles",
    ),
    path(
        f"{_USER}/tenants",
        MembershipViewSet.as_view(
            {"get": "get_memberships", "put": "replace_memberships", "patch": "append_memberships"}
        ),
        name="user-memberships",
    ),
    path(
        f"{_USER}/tokens",
        PersonalAccessTokenViewSet.as_view(
            {"get": "list_personal_access_tokens", "post": "create_personal_access_token"}
        ),
        name="user-tokens",
    ),
    path(
        f"{_USER}/tokens/<int:pat_id>",
        PersonalAccessTokenViewSet.as_view(
            {"get": "get_personal_access_token", "delete": "revoke_personal_access_token"}
        ),
        name="user-token",
    ),
    path(
        f"{_USER}/tokens/<int:pat_id>/rotate",
        PersonalAccessTokenViewSet.as_view({"post": "rotate_personal_access_token"}),
        name="rotate-user-token",
    ),
    path(
        f"{_USER}/sessions",
        SessionViewSet.as_view({"get": "list_sessions", "delete": "end_sessions"}),
        name="user-sessions",
    ),
    path(
        f"{_USER}/sessions/<int:session_id>",
        SessionViewSet.as_view({"get": "get_session", "delete": "end_session"}),
        name="user-session",
    ),
    path(
        f"{_USER}/invitations",
        OwnInvitationViewSet.as_view({"get": "list_own_invitations"}),
        name="user-invitations",
    ),
    path(
        f"{_USER}/invitations/<uuid:invitation>/accept",
        OwnInvitationViewSet.as_view({"post": "accept_invitation"}),
        name="accept-invitation",
    ),
    path(
        f"{_USER}/invitations/<uuid:invitation>/decline",
        OwnInvitationViewSet.as_view({"post": "decline_invitation"}),
        name="decline-invitation",
    ),
    path(
        ".well-known/jwks.json", SigningKeyViewSet.as_view({"get": "get_signing_keys"}), name="signing-keys"
    ),
    path("oauth/token", OAuthViewSet.as_view({"post": "exchange_token"}), name="token"),
    path(
        "oauth/introspect", IntrospectionViewSet.as_view({"post": "introspect_token"}), name="introspection"
    ),
    path("auth/logout", OAuthViewSet.as_view({"post": "logout"}), name="logout"),
    path("auth/providers", SignInViewSet.as_view({"get": "list_sign_in_providers"}), name="signin-providers"),
    path("auth/login", SignInViewSet.as_view({"get": "start_sign_in"}), name="login"),
    path("auth/callback", SignInViewSet.as_view({"get": "finish_sign_in"}), name="callback"),
    path(
        "auth/callback/<str:provider>",
        SignInViewSet.as_view({"get": "finish_sign_in_at"}),
        name="provider-callback",
    ),
    path("auth/step-up", SignInViewSet.as_view({"get": "step_up"}), name="step-up"),
    path("auth/magic-link", SignInViewSet.as_view({"post": "request_magic_link"}), name="magic-link"),
    path(
        "auth/magic-link/verify",
        SignInViewSet.as_view({"get": "show_magic_link", "post": "verify_magic_link"}),
        name="verify-magic-link",
    ),
    path(
        "config/tenants",
        TenantViewSet.as_view({"get": "list_tenants", "post": "create_tenant"}),
        name="tenants",
    ),
    path("config/tenants/manifest", TenantViewSet.as_view({"get": "get_tenant_manifest"}), name="manifest"),
    path(_TENANT, TenantViewSet.as_view({"get": "get_tenant", "delete": "delete_tenant"}), name="tenant"),
    path(f"{_TENANT}/restore", TenantViewSet.as_view({"post": "restore_tenant"}), name="restore-tenant"),
    path(
        f"{_TENANT}/invitations",
        InvitationViewSet.as_view({"get": "list_invitations", "post": "create_invitation"}),
        name="invitations",
    ),
    path(
        f"{_TENANT}/invitations/<uuid:invitation>",
        InvitationViewSet.as_view({"delete": "withdraw_invitation"}),
        name="invitation",
    ),
    path(
        f"{_TENANT}/access-requests",
        AccessRequestViewSet.as_view({"get": "list_access_requests"}),
        name="access-requests",
    ),
    path(
        f"{_TENANT}/access-requests/<uuid:access_request>/approve",
        AccessRequestViewSet.as_view({"post": "approve_access"}),
        name="approve-access",
    ),
    path(
        f"{_TENANT}/access-requests/<uuid:access_request>/decline",
        AccessRequestViewSet.as_view({"post": "decline_access"}),
        name="decline-access",
    ),
    path(
        f"{_TENANT}/config",
        ConfigViewSet.as_view({"get": "get_tenant_config", "put": "replace_tenant_config"}),
        name="config",
    ),
    path(
        "config/warehouse/parse",
        WarehouseViewSet.as_view({"post": "parse_warehouse"}),
        name="parse-warehouse",
    ),
    path(
        f"{_TENANT}/config/history",
        ConfigHistoryViewSet.as_view({"get": "list_history"}),
        name="config-history",
    ),
    path(f"{_TENANT}/config/history/diff", ConfigHistoryViewSet.as_view({"get": "diff"}), name="config-diff"),
    path(
        f"{_TENANT}/config/history/<seq:seq>",
        ConfigHistoryViewSet.as_view({"get": "get_revision"}),
        name="config-revision",
    ),
    path(
        f"{_TENANT}/config/history/<seq:seq>/restore",
        ConfigHistoryViewSet.as_view({"post": "restore"}),
        name="config-restore",
    ),
    path("config/history", ChangesViewSet.as_view({"get": "list_changes"}), name="changes"),
    path("config/events", EventViewSet.as_view({"get": "list_events"}), name="events"),
    path(
        "config/accounts",
        AccountViewSet.as_view({"get": "list_accounts", "post": "create_account"}),
        name="accounts",
    ),
    path(
        _ACCOUNT,
        AccountViewSet.as_view({"get": "get_account", "put": "replace_account", "delete": "delete_account"}),
        name="account",
    ),
    path(
        f"{_ACCOUNT}/history",
        AccountHistoryViewSet.as_view({"get": "list_history"}),
        name="account-history",
    ),
    path(f"{_ACCOUNT}/history/diff", AccountHistoryViewSet.as_view({"get": "diff"}), name="account-diff"),
    path(
        f"{_ACCOUNT}/history/<seq:seq>",
        AccountHistoryViewSet.as_view({"get": "get_revision"}),
        name="account-revision",
    ),
    path(
        f"{_ACCOUNT}/domains",
        DomainViewSet.as_view({"get": "list_domains", "post": "register_domain"}),
        name="domains",
    ),
    path(
        f"{_ACCOUNT}/domains/<fqdn:domain>",
        DomainViewSet.as_view({"get": "get_domain", "delete": "delete_domain"}),
        name="domain",
    ),
    path(
        f"{_ACCOUNT}/domains/<fqdn:domain>/verify",
        DomainViewSet.as_view({"post": "verify_domain"}),
        name="verify-domain",
    ),
    path("config/fqdns", FqdnViewSet.as_view({"get": "list_fqdns"}), name="fqdns"),
    path("config/fqdns/<fqdn:fqdn>", FqdnViewSet.as_view({"get": "get_fqdn"}), name="fqdn"),
    path(
        "config/grants", GrantViewSet.as_view({"get": "list_grants", "post": "create_grant"}), name="grants"
    ),
    path(
        "config/grants/<uuid:grant>",
        GrantViewSet.as_view({"get": "get_grant", "delete": "revoke_grant"}),
        name="grant",
    ),
]
