"""Assessments: tenants whose log is a warehouse's own history, to see what a cache would save.

They belong to accounts of their own, count in no limit, and have no address.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from accounts.billing.accounts import create_account
from accounts.models import Account, Tenant, User
from accounts.models.billing import Plan
from accounts.models.tenants import TenantKind, tenant_name_key
from accounts.readers.rule import Author
from accounts.tenants.lifecycle import create_tenant

#: The name of the accounts of assessments.
ACCOUNT: Final = "assessments"


def has_connection(document: Mapping[str, Any]) -> bool:
    """Return whether a configuration says where the warehouse is. An assessment's says only what it is."""
    warehouse = document.get("warehouse", {})
    return warehouse.get("serverHostname") not in {None, warehouse.get("adapterType")}


def ensure_assessment(document: Mapping[str, Any], *, owner: str | None, actor: str) -> UUID:
    """Create an assessment unless its account has one of this name. Return its id.

    Args:
        document: as of `create_tenant`.
        owner: the email of its first member, who is made if unknown; without one it has no members.
    """
    with transaction.atomic():
        user = None if owner is None else _ensure_user(owner)
        account = _ensure_account(user, actor=actor)
        known = (
            Tenant.objects.live()
            .assessments()
            .filter(account=account, name_key=tenant_name_key(document["tenantName"]))
        )
        tenant = known.first()
        if tenant is not None:
            return tenant.pk
        created = create_tenant(
            account_id=account, document=document, actor=actor, owner=user, kind=TenantKind.ASSESSMENT
        )
    return created.tenant_id


def _ensure_user(email: str) -> User:
    return User.objects.filter(email=email).first() or User.objects.create_user(email)


def _ensure_account(owner: User | None, *, actor: str) -> UUID:
    accounts = Account.objects.live().filter(name=ACCOUNT, owners=owner)
    account = accounts.order_by("created_at").first()
    if account is not None:
        return account.pk
    emails = [] if owner is None else [owner.email]
    return create_account(name=ACCOUNT, owners=emails, plan=Plan.TEAM, author=Author(actor)).account_id
