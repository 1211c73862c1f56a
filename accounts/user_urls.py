"""What lies below ``/users/``."""

from __future__ import annotations

from django.urls import path

from accounts import converters  # noqa: F401 - importing registers them
from accounts.api.memberships import MembershipsView
from accounts.api.pats import PatsView, PatView
from accounts.api.roles import RolesView
from accounts.api.users import UserView

urlpatterns = [
    path("<email:email>", UserView.as_view()),
    path("<email:email>/roles", RolesView.as_view()),
    path("<email:email>/tenants", MembershipsView.as_view()),
    path("<email:email>/tokens", PatsView.as_view()),
    path("<email:email>/tokens/<int:pat_id>", PatView.as_view()),
]
