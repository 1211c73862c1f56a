from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class TenantadminConfig(AppConfig):
    name = "tenantadmin"
    verbose_name = "Tenant administration"


class StaffSiteConfig(AdminConfig):
    """Makes `StaffSite` the default site, in which ``@admin.register`` registers models."""

    default_site = "tenantadmin.admin_site.StaffSite"
