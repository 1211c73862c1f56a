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
    """A page of one tenant that reads the log or data made from it."""

    @cached_property
    def last_day(self) -> dt.date:
        """The last day with log entries, or today."""
        health = TenantHealth.objects.filter(pk=self.tenant.pk).first()
        return (health.last_day if health else None) or now().date()

    @property
    def reader(self) -> Reader:
        """The user and client address for the audit of reads and queries."""
        return Reader(self.actor, client_address(self.request))
