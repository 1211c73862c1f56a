"""Staff pages that read a tenant's log."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from django.utils.html import format_html

from accounts.dashboard import in_dashboard
from analytics.models import TenantHealth
from logs.audit import Reader
from rules.admin.names import NamesRules
from tenantadmin.lib.core.addresses import client_address
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    import datetime as dt

    from django.utils.safestring import SafeString

    from accounts.admin.pages.base import TenantPage


class LogPage(NamesRules):
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


def say_published(page: TenantPage, said: str, seq: int) -> SafeString:
    """Return the message on rules that are in force now, with links to take them back and to compare them."""
    undo, changed = (in_dashboard(page.tenant.pk, "history", kind="rules", seq=at) for at in (seq - 1, seq))
    return format_html(
        '{} <a class="quiet-link" href="{}">Undo</a> <a class="quiet-link" href="{}">What changed</a>',
        said,
        undo,
        changed,
    )
