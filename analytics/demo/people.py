"""Create the demo's users, accounts and tenants, with the functions of the API.

The functions may be called again. They do not change existing rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from accounts.billing.accounts import create_account
from accounts.models import Account, Tenant, User
from accounts.models.tenants import tenant_name_key
from accounts.models.users import PrimaryRole
from accounts.readers.rule import Author
from accounts.tenants.lifecycle import create_tenant
from analytics.demo.profile import Profile
from tenantadmin.lib.core.timestamps import from_epoch_ms, now
from tosapp.publishing import active_terms, publish

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date
    from uuid import UUID

    from accounts.models.billing import Plan
    from analytics.demo.reading import People, Person

_AGE: Final = timedelta(days=60)


@dataclass(frozen=True, slots=True)
class DemoUsers:
    """A platform admin, an owner and a member of the demo tenants, and a user without access to them."""

    admin: User
    owner: User
    member: User
    stranger: User


def ensure_users(people: People) -> DemoUsers:
    """Create the missing users, without a password. Those in whose name the demo acts have signed in.

    They are older than the logs of the demo.
    """
    return DemoUsers(
        admin=_ensure_user(people.admin, role=PrimaryRole.ADMIN),
        owner=_ensure_user(people.owner, last_login=now()),
        member=_ensure_user(people.member),
        stranger=_ensure_user(people.stranger, last_login=now()),
    )


def ensure_account(name: str, *, owner: User, plan: Plan, actor: User) -> UUID:
    """Create the billing account unless ``owner`` has an account with this name. Return its id."""
    account = Account.objects.live().filter(owners=owner, name=name).first()
    if account is not None:
        return account.pk
    return create_account(
        name=name, owners=[owner.email], plan=plan, billing_email=owner.email, author=Author(actor.email)
    ).account_id


def ensure_terms(markdown: str, *, publisher: User) -> None:
    """Publish the demo's terms of service if none exist. Users must accept them when they sign in.

    Raises:
        StoreError: the object store failed.
    """
    if active_terms().get(fresh=True) is None:
        publish(markdown, actor=publisher.email)


def ensure_tenant(document: Mapping[str, Any], *, account_id: UUID, owner: User, first_day: date) -> UUID:
    """Create a tenant unless the account has a tenant with this name. Return its id.

    The tenant is older than its logs, which begin with ``first_day``.
    """
    name_key = tenant_name_key(document["tenantName"])
    tenant = Tenant.objects.live().filter(account=account_id, name_key=name_key).first()
    if tenant is not None:
        return tenant.pk
    return create_tenant(
        account_id=account_id,
        document=document,
        actor=owner.email,
        owner=owner,
        created_at=from_epoch_ms(Profile.created_at(first_day)),
    ).tenant_id


def _ensure_user(person: Person, **more: Any) -> User:
    user = User.objects.filter(email=person.email).first()
    created_at = now() - _AGE
    return user or User.objects.create_user(
        person.email, display_name=person.name, created_at=created_at, **more
    )
