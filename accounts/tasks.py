"""Celery tasks. It is safe to kill them at any point and run them again."""

from __future__ import annotations

from celery import shared_task

from accounts.billing.accounts import remove_deleted_accounts
from accounts.billing.fqdns import remove_old_fqdns
from accounts.tenants.lifecycle import remove_old_tombstones


@shared_task
def remove_tombstones() -> None:
    """Remove expired tombstones of tenants and host names, and deleted accounts without tombstones."""
    while remove_old_tombstones():
        pass
    remove_old_fqdns()
    remove_deleted_accounts()
