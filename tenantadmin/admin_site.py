"""The admin site of platform staff."""

from __future__ import annotations

from django.contrib import admin


class StaffSite(admin.AdminSite):
    """Django's admin site under the service's name; only platform admins get in."""

    site_header = "Tenant administration"
    site_title = "Tenant administration"
    index_title = "Everything the service holds"
    site_url = "/docs"
