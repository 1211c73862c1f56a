"""Addresses of the admin site's sign-in. The second factors are django-allauth's own views."""

from __future__ import annotations

from allauth.account import views as allauth_views
from django.urls import include, path
from django.views.generic import RedirectView

from accounts.signin.staff import login

urlpatterns = [
    path("login/provider/<slug:provider>/", login.start_at_provider, name="staff-provider"),
    path("login/link/ask/", login.ask_for_link, name="staff-link-request"),
    path("login/link/", login.use_mailed_link, name="staff-link"),
    path("account/", login.show_ways_in, name="staff-ways-in"),
    path("account/provider/<slug:provider>/", login.start_linking, name="staff-linking"),
    path("account/second-factor/", include("allauth.mfa.urls")),
    # Names that the views of django-allauth lead to.
    path(
        "account/login/",
        RedirectView.as_view(pattern_name="admin:login", query_string=True),
        name="account_login",
    ),
    path("account/logout/", allauth_views.logout, name="account_logout"),
    path("account/confirm/", allauth_views.reauthenticate, name="account_reauthenticate"),
]
