"""Sessions, users and messages exist on pages for people alone."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path


def _name_what_exists(request: HttpRequest) -> HttpResponse:
    return HttpResponse(",".join(name for name in ("session", "user", "_messages") if hasattr(request, name)))


urlpatterns = [path("admin/seen", _name_what_exists), path("users/seen", _name_what_exists)]


@pytest.mark.parametrize(("url", "seen"), [("/admin/seen", "session,user,_messages"), ("/users/seen", "")])
@pytest.mark.django_db
def test_only_pages_have_sessions(url: str, seen: str) -> None:
    with override_settings(ROOT_URLCONF=__name__):
        response = Client().get(url, headers={"Cookie": f"{settings.SESSION_COOKIE_NAME}=x"})
    assert response.content.decode() == seen


def test_the_dashboard_leads_staff_to_their_pages(client: Client) -> None:
    page = client.get("/dashboard/").content.decode()
    assert '<p class="staff-way"><a href="/admin/">Staff pages</a></p>' in page
