from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class TenantadminConfig(AppConfig):
    name = "tenantadmin"
    verbose_name = "Tenant administration"

    def ready(self) -> None:
        """Make the Celery application the current one, so that web processes send tasks to its broker.

        Also register the deployment checks.
        """
        from tenantadmin import celery, checks  # noqa: F401, PLC0415 - they need the settings


class StaffSiteConfig(AdminConfig):
    """Makes `StaffSite` the default site, in which ``@admin.register`` registers models."""

    default_site = "tenantadmin.admin_site.StaffSite"
