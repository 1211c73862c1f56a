from __future__ import annotations

from django.urls import path

from accounts import converters  # noqa: F401 - importing registers them
from accounts.api.accounts import AccountsView, AccountView
from accounts.api.config import ConfigView
from accounts.api.domains import DomainsView, DomainVerifyView, DomainView
from accounts.api.fqdns import FqdnsView, FqdnView
from accounts.api.grants import GrantsView, GrantView
from accounts.api.history import AccountHistoryViewSet, ChangesViewSet, ConfigHistoryViewSet
from accounts.api.logout import LogoutView
from accounts.api.manifest import ManifestView
from accounts.api.memberships import MembershipViewSet
from accounts.api.pats import PersonalAccessTokenViewSet
from accounts.api.roles import RolesViewSet
from accounts.api.signin import CallbackView, LoginView
from accounts.api.signin_links import MagicLinkVerifyView, MagicLinkView
from accounts.api.tenants import TenantsView, TenantView
from accounts.api.tokens import SigningKeysView, TokenView
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
        PersonalAccessTokenViewSet.as_view({"delete": "revoke_personal_access_token"}),
        name="user-token",
    ),
    path("oauth/token", TokenView.as_view()),
    path(".well-known/jwks.json", SigningKeysView.as_view()),
    path("auth/login", LoginView.as_view()),
    path("auth/callback", CallbackView.as_view()),
    path("auth/magic-link", MagicLinkView.as_view()),
    path("auth/magic-link/verify", MagicLinkVerifyView.as_view()),
    path("auth/logout", LogoutView.as_view()),
    path("config/tenants", TenantsView.as_view()),
    path("config/tenants/manifest", ManifestView.as_view()),
    path(_TENANT, TenantView.as_view(), name="tenant"),
    path(f"{_TENANT}/config", ConfigView.as_view(), name="config"),
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
    path("config/accounts", AccountsView.as_view()),
    path(_ACCOUNT, AccountView.as_view(), name="account"),
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
    path(f"{_ACCOUNT}/domains", DomainsView.as_view()),
    path(f"{_ACCOUNT}/domains/<fqdn:domain>", DomainView.as_view()),
    path(f"{_ACCOUNT}/domains/<fqdn:domain>/verify", DomainVerifyView.as_view()),
    path("config/fqdns", FqdnsView.as_view()),
    path("config/fqdns/<fqdn:fqdn>", FqdnView.as_view()),
    path("config/grants", GrantsView.as_view()),
    path("config/grants/<uuid:grant>", GrantView.as_view()),
]
