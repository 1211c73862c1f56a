"""Bring stored addresses into the one form of `tenantadmin.lib.core.emails`, and report what that changes.

- An address that has another form gets the new one.
- If a user has the new form already, both are one mailbox. Memberships, accounts and grants move to that user, if
  both are active, neither is staff and neither signs in through another identity. The other row stays for the
  record, deactivated, under an address with ``.duplicate-ID``.
- Links to a domain such as ``straße.example`` went to ``strasse.example`` before, whose owner may be another. Such
  a user is deactivated, and its rights do not move. A platform admin may activate it again.
- An address that has no form (an IP address as domain, for example) stays. Nobody can sign in by it.
"""

from __future__ import annotations

import logging
import uuid
from typing import Any, ClassVar

from django.db import migrations
from django.utils import timezone

from tenantadmin.lib.core.emails import check_email

logger = logging.getLogger(__name__)
_ACTOR = "migration of addresses"


def normalize_addresses(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001
    User = apps.get_model("accounts", "User")  # noqa: N806
    for pk, stored in User.objects.order_by("pk").values_list("pk", "email").iterator():
        try:
            email = check_email(stored)
        except ValueError as error:
            logger.warning("The user %s keeps an address that is refused now: %s", stored, error)
            continue
        if email != stored:
            _rename(apps, User.objects.get(pk=pk), email)
    # Open links may have gone to another domain.
    apps.get_model("accounts", "MagicLink").objects.filter(email__regex=r"[^\x01-\x7f]").delete()
    Account = apps.get_model("accounts", "Account")  # noqa: N806
    for account in Account.objects.exclude(billing_email="").only("billing_email").iterator():
        try:
            email = check_email(account.billing_email)
        except ValueError as error:
            logger.warning("The account %s keeps the address %s: %s", account.pk, account.billing_email, error)
            continue
        if email != account.billing_email:
            Account.objects.filter(pk=account.pk).update(billing_email=email)


def _rename(apps: Any, user: Any, email: str) -> None:
    stored, is_proven = user.email, _went_to(user.email) == email.rpartition("@")[2]
    other = type(user).objects.filter(email=email).first()
    if other is not None:
        if is_proven and _are_one(user, other):
            _move_rights(user, other)
            outcome = f"It has the mailbox of {email}, which has its memberships, accounts and grants now."
        else:
            outcome = f"Another user has the address {email}. Nothing was moved."
        local, _, domain = email.rpartition("@")
        email = f"{local[:40]}.duplicate-{user.pk}@{domain}"
    else:
        outcome = "The address has another form now."
        if not is_proven:
            outcome += " Links to it went to another domain before, so the user was deactivated."
    user.email = email
    if other is not None or not is_proven:
        _deactivate(user)
    user.save()
    apps.get_model("accounts", "Event").objects.create(
        kind="user.changed",
        actor=_ACTOR,
        subject=email,
        before={"email": stored},
        after={"email": email, "active": user.is_active},
        reason=outcome,
    )
    logger.warning("The user %s is %s now. %s", stored, email, outcome)


def _went_to(email: str) -> str:
    """Return the domain that mail to a stored address went to: Django encoded it by IDNA 2003."""
    domain = email.rpartition("@")[2]
    try:
        return domain.encode("idna").decode().lower()
    except UnicodeError:
        return domain


def _are_one(user: Any, other: Any) -> bool:
    """Return True if both rows are the same person for sure, and moving rights gives no power over the service."""
    return all(
        row.is_active and row.role != "admin" and not row.is_support and not row.identity_subject
        for row in (user, other)
    )


def _move_rights(user: Any, other: Any) -> None:
    taken = other.memberships.values_list("tenant_id", flat=True)
    user.memberships.exclude(tenant_id__in=list(taken)).update(user=other)
    user.memberships.all().delete()
    other.owned_accounts.add(*user.owned_accounts.all())
    user.owned_accounts.clear()
    user.grants.update(grantee=other)


def _deactivate(user: Any) -> None:
    """Deactivate ``user`` and end its sessions and tokens."""
    user.is_active, user.epoch = False, uuid.uuid4()
    user.refresh_tokens.filter(revoked_at=None).update(revoked_at=timezone.now())
    user.personal_access_tokens.filter(revoked_at=None).update(revoked_at=timezone.now())


class Migration(migrations.Migration):
    dependencies: ClassVar = [("accounts", "0022_assurance")]

    operations: ClassVar = [migrations.RunPython(normalize_addresses, migrations.RunPython.noop)]
