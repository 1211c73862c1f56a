"""Staff pages that read a tenant's log."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from accounts.admin.pages.base import TenantPage
from analytics.models import TenantHealth
from logs.audit import Reader
from tenantadmin.lib.core.addresses import client_address
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    import datetime as dt


class LogPage(TenantPage):
    """A page of one tenant that reads its log or what was made from it."""

    @cached_property
    def last_day(self) -> dt.date:
        """The last day with log entries; today if there is none."""
        health = TenantHealth.objects.filter(pk=self.tenant.pk).first()
        return (health.last_day if health else None) or now().date()

    @property
    def reader(self) -> Reader:
        """The user as the audit of reads and queries records it."""
        return Reader(self.actor, client_address(self.request))
