"""Staff pages that read a tenant's log."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from accounts.admin.pages.base import TenantPage
from accounts.limited_access import may_read_logs
from analytics.models import TenantHealth
from logs.audit import Reader
from tenantadmin.lib.core.addresses import client_address
from tenantadmin.lib.core.errors import Forbidden
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    import datetime as dt


class NoLogAccess(Forbidden):
    """The user is not a member of the tenant."""

    message = "This is for members of the tenant. Take access for a limited time: see its page People."


class LogPage(TenantPage):
    """A page of one tenant that reads its log or what was made from it."""

    @cached_property
    def has_access(self) -> bool:
        """True if the user is a member of the live tenant, and so may see its log and its users."""
        return self.tenant.deleted_at is None and may_read_logs(self.user, tenant_id=self.tenant.pk)

    def require_access(self) -> None:
        """Raises `NoLogAccess` if the user may not see the tenant's log."""
        if not self.has_access:
            raise NoLogAccess

    @cached_property
    def last_day(self) -> dt.date:
        """The last day with log entries; today if there is none."""
        health = TenantHealth.objects.filter(pk=self.tenant.pk).first()
        return (health.last_day if health else None) or now().date()

    @property
    def reader(self) -> Reader:
        """The user as the audit of reads and queries records it."""
        return Reader(self.actor, client_address(self.request))
