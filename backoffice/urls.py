"""Addresses of the staff's pages, inside the namespace ``admin``."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

urlpatterns = [
    path("records/", admin.site.admin_view(admin.site.index), name="all_records"),
]
