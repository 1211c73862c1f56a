"""Celery tasks. It is safe to kill them at any point and run them again."""

from __future__ import annotations

from celery import shared_task

from accounts.billing.accounts import remove_deleted_accounts
from accounts.billing.domains import verify_late
from accounts.billing.fqdns import remove_old_fqdns
from accounts.ending_pats import mail_ending_pats
from accounts.invitations import delete_old_invitations
from accounts.limited_access import end_expired_access
from accounts.sessions import delete_ended_sessions
from accounts.tenants.lifecycle import remove_old_tombstones
from tenantadmin.lib.database import months


@shared_task(expires=60)
def check_domain(domain_id: int, actor: str) -> None:
    """Verify a domain whose name server did not answer within a moment."""
    verify_late(domain_id=domain_id, actor=actor)


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
    """Remove the invitations that expired more than a month ago."""
    delete_old_invitations()


@shared_task
def mail_ends_of_tokens() -> None:
    """Mail the owners of personal access tokens that end within a week."""
    mail_ending_pats()
