from __future__ import annotations

from django.urls import include, path

from accounts import converters  # noqa: F401 - importing registers them
from accounts.api.accounts import AccountsView, AccountView
from accounts.api.config import ConfigView
from accounts.api.domains import DomainsView, DomainVerifyView, DomainView
from accounts.api.fqdns import FqdnsView, FqdnView
from accounts.api.grants import GrantsView, GrantView
from accounts.api.history import AccountHistoryViewSet, ChangesViewSet, ConfigHistoryViewSet
from accounts.api.logout import LogoutView
from accounts.api.manifest import ManifestView
from accounts.api.signin import CallbackView, LoginView
from accounts.api.signin_links import MagicLinkVerifyView, MagicLinkView
from accounts.api.tenants import TenantsView, TenantView
from accounts.api.tokens import SigningKeysView, TokenView
from accounts.api.users import UsersView

# Grouped by their first segment, so that an address is compared with few others.
urlpatterns = [
    path("oauth/token", TokenView.as_view()),
    path(".well-known/jwks.json", SigningKeysView.as_view()),
    path(
        "auth/",
        include(
            [
                path("login", LoginView.as_view()),
                path("callback", CallbackView.as_view()),
                path("magic-link", MagicLinkView.as_view()),
                path("magic-link/verify", MagicLinkVerifyView.as_view()),
                path("logout", LogoutView.as_view()),
            ]
        ),
    ),
    path("users", UsersView.as_view()),
    path(
        "config/",
        include(
            [
                path("tenants", TenantsView.as_view()),
                path("tenants/manifest", ManifestView.as_view()),
                path("tenants/<uuid:tenant>", TenantView.as_view(), name="tenant"),
                path("tenants/<uuid:tenant>/config", ConfigView.as_view(), name="config"),
                path(
                    "tenants/<uuid:tenant>/config/history",
                    ConfigHistoryViewSet.as_view({"get": "list_history"}),
                    name="config-history",
                ),
                path(
                    "tenants/<uuid:tenant>/config/history/diff",
                    ConfigHistoryViewSet.as_view({"get": "diff"}),
                    name="config-diff",
                ),
                path(
                    "tenants/<uuid:tenant>/config/history/<seq:seq>",
                    ConfigHistoryViewSet.as_view({"get": "get_revision"}),
                    name="config-revision",
                ),
                path(
                    "tenants/<uuid:tenant>/config/history/<seq:seq>/restore",
                    ConfigHistoryViewSet.as_view({"post": "restore"}),
                    name="config-restore",
                ),
                path("history", ChangesViewSet.as_view({"get": "list_changes"}), name="changes"),
                path("accounts", AccountsView.as_view()),
                path("accounts/<uuid:account>", AccountView.as_view(), name="account"),
                path(
                    "accounts/<uuid:account>/history",
                    AccountHistoryViewSet.as_view({"get": "list_history"}),
                    name="account-history",
                ),
                path(
                    "accounts/<uuid:account>/history/diff",
                    AccountHistoryViewSet.as_view({"get": "diff"}),
                    name="account-diff",
                ),
                path(
                    "accounts/<uuid:account>/history/<seq:seq>",
                    AccountHistoryViewSet.as_view({"get": "get_revision"}),
                    name="account-revision",
                ),
                path("accounts/<uuid:account>/domains", DomainsView.as_view()),
                path("accounts/<uuid:account>/domains/<fqdn:domain>", DomainView.as_view()),
                path("accounts/<uuid:account>/domains/<fqdn:domain>/verify", DomainVerifyView.as_view()),
                path("fqdns", FqdnsView.as_view()),
                path("fqdns/<fqdn:fqdn>", FqdnView.as_view()),
                path("grants", GrantsView.as_view()),
                path("grants/<uuid:grant>", GrantView.as_view()),
            ]
        ),
    ),
]
