from __future__ import annotations

from django.urls import include, path

from accounts.api import converters  # noqa: F401 - importing registers them
from accounts.api.accounts import AccountsView, AccountView
from accounts.api.config import ConfigView
from accounts.api.domains import DomainsView, DomainVerifyView, DomainView
from accounts.api.fqdns import FqdnsView, FqdnView
from accounts.api.grants import GrantsView, GrantView
from accounts.api.history import (
    AccountDiffView,
    AccountHistoryView,
    AccountRevisionView,
    ChangesView,
    ConfigDiffView,
    ConfigHistoryView,
    ConfigRestoreView,
    ConfigRevisionView,
)
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
                path("tenants/<uuid:tenant>", TenantView.as_view()),
                path("tenants/<uuid:tenant>/config", ConfigView.as_view()),
                path("tenants/<uuid:tenant>/config/history", ConfigHistoryView.as_view()),
                path("tenants/<uuid:tenant>/config/history/diff", ConfigDiffView.as_view()),
                path("tenants/<uuid:tenant>/config/history/<seq:seq>", ConfigRevisionView.as_view()),
                path("tenants/<uuid:tenant>/config/history/<seq:seq>/restore", ConfigRestoreView.as_view()),
                path("history", ChangesView.as_view()),
                path("accounts", AccountsView.as_view()),
                path("accounts/<uuid:account>", AccountView.as_view()),
                path("accounts/<uuid:account>/history", AccountHistoryView.as_view()),
                path("accounts/<uuid:account>/history/diff", AccountDiffView.as_view()),
                path("accounts/<uuid:account>/history/<seq:seq>", AccountRevisionView.as_view()),
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
