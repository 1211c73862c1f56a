"""Create the demo's users, accounts and tenants, with the functions that the API uses.

Each function may be called again. It does not change what exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accounts.billing.accounts import create_account
from accounts.models import Account, Membership, Tenant, User
from accounts.models.tenants import tenant_name_key
from accounts.models.users import MembershipRole, PrimaryRole
from accounts.tenants.lifecycle import create_tenant
from analytics.demo.advice import advised_summary
from analytics.demo.profile import Profile
from rules.ruleset import read_ruleset
from rules.write import write_ruleset
from tenantadmin.lib.core.timestamps import from_epoch_ms
from tosapp.active import active_terms
from tosapp.publishing import publish

if TYPE_CHECKING:
    from datetime import date
    from uuid import UUID

    from accounts.models.billing import Plan
    from analytics.demo.profile import Publication
    from analytics.demo.reading import People, Person


@dataclass(frozen=True, slots=True)
class DemoUsers:
    """A platform admin, an owner and a member of the demo tenants, and a user without access to them."""

    admin: User
    owner: User
    member: User
    stranger: User


def ensure_users(people: People) -> DemoUsers:
    """Create the missing users, without a password."""
    return DemoUsers(
        admin=_ensure_user(people.admin, role=PrimaryRole.ADMIN),
        owner=_ensure_user(people.owner),
        member=_ensure_user(people.member),
        stranger=_ensure_user(people.stranger),
    )


def ensure_account(name: str, *, owner: User, plan: Plan, actor: User) -> UUID:
    """Create the billing account unless ``owner`` has one of this name. Return its id."""
    account = Account.objects.filter(owners=owner, name=name, deleted_at__isnull=True).first()
    if account is not None:
        return account.pk
    return create_account(
        name=name, owners=[owner.email], plan=plan, billing_email=owner.email, actor=actor.email
    ).account_id


def ensure_terms(markdown: str, *, publisher: User) -> None:
    """Publish the demo's terms of service unless there are any. Users must accept them when they sign in.

    Raises:
        StoreError: the object store failed.
    """
    if active_terms().get(fresh=True) is None:
        publish(markdown, actor=publisher.email)


def ensure_tenant(profile: Profile, *, account_id: UUID, users: DemoUsers, first_day: date) -> UUID:
    """Create a demo tenant, its first ruleset and the member's membership if they are missing. Return its id.

    Tenant and ruleset are older than the logs, which begin with ``first_day``.
    """
    tenant_id = _find_tenant(profile.name, account_id=account_id)
    if tenant_id is None:
        tenant_id = create_tenant(
            account_id=account_id,
            document=profile.config,
            actor=users.owner.email,
            owner=users.owner,
            created_at=from_epoch_ms(profile.created_at(first_day)),
        ).tenant_id
    if not read_ruleset(tenant_id).rules:
        publish_rules(tenant_id, profile.publications(first_day)[0], actor=users.owner.email)
    Membership.objects.get_or_create(
        user=users.member, tenant_id=tenant_id, defaults={"role": MembershipRole.MEMBER}
    )
    return tenant_id


def publish_rules(tenant_id: UUID, publication: Publication, *, actor: str) -> None:
    """Write a ruleset of the demo's history, unless somebody has written one since."""
    stored = read_ruleset(tenant_id)
    advised = publication.advised
    changed_at = from_epoch_ms(publication.at)
    if stored.seq == publication.seq - 1 and stored.modified_at < changed_at:
        write_ruleset(
            tenant_id=tenant_id,
            document={"rules": list(publication.rules)},
            actor=actor,
            restored_from=publication.restored_from,
            summary=None if advised is None else advised_summary(tenant_id, advised),
            changed_at=changed_at,
        )


def ensure_strangers_tenant(name: str, *, account_id: UUID, users: DemoUsers, first_day: date) -> None:
    """Create the stranger's own tenant, which the users of the demo's account cannot see.

    It is older than its logs, which begin with ``first_day``.
    """
    if _find_tenant(name, account_id=account_id) is None:
        create_tenant(
            account_id=account_id,
            document={"tenantName": name},
            actor=users.stranger.email,
            owner=users.stranger,
            created_at=from_epoch_ms(Profile.created_at(first_day)),
        )


def _ensure_user(person: Person, *, role: PrimaryRole = PrimaryRole.USER) -> User:
    user = User.objects.filter(email=person.email).first()
    return user or User.objects.create_user(person.email, display_name=person.name, role=role)


def _find_tenant(name: str, *, account_id: UUID) -> UUID | None:
    return (
        Tenant.objects.filter(account=account_id, name_key=tenant_name_key(name), deleted_at__isnull=True)
        .values_list("pk", flat=True)
        .first()
    )
