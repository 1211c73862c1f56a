"""Addresses of the admin site's sign-in. The second factors are django-allauth's own views."""

from __future__ import annotations

from allauth.account import views as allauth_views
from allauth.mfa.totp import views as totp_views
from allauth.mfa.webauthn import views as webauthn_views
from django.urls import include, path
from django.views.generic import RedirectView

from accounts.signin.staff import login
from accounts.signin.staff.enrolment import needs_enrolment

urlpatterns = [
    path("login/provider/<slug:provider>/", login.start_at_provider, name="staff-provider"),
    path("login/link/ask/", login.ask_for_link, name="staff-link-request"),
    path("login/link/", login.use_mailed_link, name="staff-link"),
    path("account/", login.show_ways_in, name="staff-ways-in"),
    path("account/provider/<slug:provider>/", login.start_linking, name="staff-linking"),
    path("account/enrol/", login.open_enrolment, name="staff-enrolment"),
    # Before the same addresses of django-allauth.
    path("account/second-factor/totp/activate/", needs_enrolment(totp_views.activate_totp)),
    path("account/second-factor/webauthn/add/", needs_enrolment(webauthn_views.add_webauthn)),
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
