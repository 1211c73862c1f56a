"""Create accounts and tenants for customers, with the functions of the API. Owners get an invitation.

Each function is one transaction: where the invitation cannot be mailed, nothing is created.
"""

from __future__ import annotations

from uuid import UUID  # of a struct

from django.db import transaction

from accounts.billing.accounts import create_account
from accounts.events import record_event
from accounts.invitations import invite
from accounts.models import User
from accounts.models.events import EventKind
from accounts.models.users import MembershipRole
from accounts.permitted_domains import require_permitted
from accounts.readers import Author
from accounts.tenants.lifecycle import create_tenant_with_address
from accounts.tenants.names import normalize_tenant_name
from tenantadmin.lib.core.emails import check_email
from tenantadmin.lib.core.errors import ValidationFailed
from tenantadmin.lib.core.structs import JsonStruct


class Created(JsonStruct):
    """What was created, and the normalized email of the invited owner."""

    account_id: UUID
    tenant_id: UUID
    owner: str


def create_customer(
    *, name: str, plan: str, owner: str, billing_email: str, tenant_name: str, inviter: User
) -> Created:
    """Create an account of ``owner`` with its first tenant, and invite the owner into that.

    An address that never signed in gets a user, which owns the account.

    Raises:
        ValidationFailed: an address is not one.
        Forbidden: addresses of the owner's domain may not sign in.
        PlanLimitExceeded, TenantNameConflict, MailNotSent: as the functions of the API.
    """
    email, author = _address(owner, "owner"), Author.on_site(inviter)
    billing = _address(billing_email, "billingEmail") if billing_email else email
    require_permitted(email)
    with transaction.atomic():
        _, is_new = User.objects.lock_or_create(email)
        if is_new:
            record_event(EventKind.USER_CREATED, actor=inviter.email, subject=email)
        account = create_account(
            name=_name(name, "name"), owners=[email], plan=plan, billing_email=billing, author=author
        )
        return create_owned_tenant(
            account_id=account.account_id, name=tenant_name, owner=email, inviter=inviter
        )


def create_owned_tenant(*, account_id: UUID, name: str, owner: str, inviter: User) -> Created:
    """Create a tenant in an account, and invite its owner.

    Raises:
        ValidationFailed: ``owner`` is not an address.
        Forbidden: addresses of the owner's domain may not sign in.
        PlanLimitExceeded, TenantNameConflict, AccountNotFound, MailNotSent: as the functions of the API.
    """
    email = _address(owner, "owner")
    with transaction.atomic():
        created = create_tenant_with_address(
            account_id=account_id, name=_name(name, "tenantName"), actor=inviter.email
        )
        invite(inviter, tenant_id=created.tenant_id, email=email, role=MembershipRole.OWNER, message="")
    return Created(account_id=account_id, tenant_id=created.tenant_id, owner=email)


def _name(text: str, field: str) -> str:
    try:
        return normalize_tenant_name(text)
    except ValueError as error:
        raise ValidationFailed.at(f"/{field}", "invalid-name", str(error)) from error


def _address(text: str, field: str) -> str:
    try:
        return check_email(text)
    except ValueError as error:
        raise ValidationFailed.at(f"/{field}", "invalid-email", str(error)) from error
