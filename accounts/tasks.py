"""Celery tasks. It is safe to kill them at any point and run them again."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from celery import shared_task
from django.conf import settings
from django.core.cache import cache

from accounts.billing.accounts import remove_deleted_accounts
from accounts.billing.domains import verify_late
from accounts.limited_access import end_expired_access
from accounts.mailing import delete_old_mails
from accounts.pats import mail_ending_pats
from accounts.pending import delete_old_pending
from accounts.sessions import delete_ended_sessions
from accounts.tenants.fqdns import remove_old_fqdns
from accounts.tenants.lifecycle import remove_old_tombstones
from tenantadmin.lib.database import months

if TYPE_CHECKING:
    from celery import Task

#: The key in the cache while a check waits for the DNS.
_CHECKING: Final = "domains:checking"


@shared_task(bind=True, expires=60, default_retry_delay=7, max_retries=8)
def check_domain(self: Task[Any, None], domain_id: int, actor: str) -> None:
    """Verify a domain whose name server did not answer within a moment.

    One check at a time waits for the DNS: silent name servers shall not keep the workers from other tasks.
    """
    seconds = math.ceil(settings.DNS_TIMEOUT_SECONDS) + 5
    if not cache.add(_CHECKING, "", timeout=seconds):
        raise self.retry()
    try:
        verify_late(domain_id=domain_id, actor=actor)
    finally:
        cache.delete(_CHECKING)


@shared_task
def remove_tombstones() -> None:
    """Remove expired tombstones of tenants and host names, and deleted accounts without tombstones."""
    while remove_old_tombstones():
        pass
    remove_old_fqdns()
    remove_deleted_accounts()


@shared_task
def keep_months() -> None:
    """Create the next partitions of the tables of events and audits; drop those past their retention."""
    months.keep_months()


@shared_task
def end_access() -> None:
    """Remove the memberships of staff whose time is over."""
    end_expired_access()


@shared_task
def remove_ended_sessions() -> None:
    """Delete the sessions that expired or were ended more than a day ago."""
    delete_ended_sessions()


@shared_task
def remove_old_invitations() -> None:
    """Remove mails, and invitations, requests and proposals of staff that expired, after a month."""
    delete_old_pending()
    delete_old_mails()


@shared_task
def mail_ends_of_tokens() -> None:
    """Mail the owners of personal access tokens that end within a week."""
    mail_ending_pats()
