"""Create an account and a tenant for a new user. Contract: Authentication, 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from accounts.billing.accounts import create_account
from accounts.tenants.lifecycle import create_tenant

if TYPE_CHECKING:
    from accounts.models import User

_FIRST_TENANT: Final = "Default"
_MAX_NAME: Final = 100


def provision_first_tenant(user: User) -> None:
    """Create a free account and one tenant for ``user``, unless the user has a tenant or account.

    The caller has locked the user's row in the current transaction.
    """
    if user.memberships.exists() or user.owned_accounts.exists():
        return
    account = create_account(
        name=user.email[:_MAX_NAME], owners=[user.email], actor=user.email, billing_email=user.email
    )
    create_tenant(
        account_id=account.account_id,
        document={"tenantName": _FIRST_TENANT},
        actor=user.email,
        owner=user,
    )
