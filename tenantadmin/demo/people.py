"""The demo's people, accounts and tenants, made through the services that the API uses.

Every function here may be called again: what stands already stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accounts.billing.accounts import create_account
from accounts.models import Account, Membership, Tenant, User
from accounts.models.tenants import tenant_name_key
from accounts.models.users import MembershipRole, PrimaryRole
from accounts.tenants.lifecycle import create_tenant
from rules.ruleset import read_ruleset
from rules.write import write_ruleset
from tosapp.active import active_terms
from tosapp.publishing import publish

if TYPE_CHECKING:
    from uuid import UUID

    from accounts.models.billing import Plan
    from tenantadmin.demo.profile import Profile
    from tenantadmin.demo.reading import People, Person


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays: a platform admin, an owner and a member of the demo tenants, and a stranger to them."""

    admin: User
    owner: User
    member: User
    stranger: User


def ensure_cast(people: People) -> Cast:
    """Make the people that are missing; none of them has a password yet."""
    return Cast(
        admin=_ensure_user(people.admin, role=PrimaryRole.ADMIN),
        owner=_ensure_user(people.owner),
        member=_ensure_user(people.member),
        stranger=_ensure_user(people.stranger),
    )


def ensure_account(name: str, *, owner: User, plan: Plan, actor: User) -> UUID:
    """Make the billing account unless ``owner`` has it."""
    found = Account.objects.filter(owners=owner, name=name, deleted_at__isnull=True).first()
    if found is not None:
        return found.pk
    return create_account(
        name=name, owners=[owner.email], plan=plan, billing_email=owner.email, actor=actor.email
    ).account_id


def ensure_terms(markdown: str, *, publisher: User) -> None:
    """Publish the demo's terms of service unless there are any: whoever signs in is asked to accept them.

    Raises:
        StoreError: the object store failed.
    """
    if active_terms().get(fresh=True) is None:
        publish(markdown, actor=publisher.email)


def ensure_tenant(profile: Profile, *, account_id: UUID, cast: Cast) -> UUID:
    """Make a demo tenant with its ruleset and the member's membership, as far as they are missing."""
    tenant_id = _find_tenant(profile.name, account_id=account_id)
    if tenant_id is None:
        tenant_id = create_tenant(
            account_id=account_id, document=profile.config, actor=cast.owner.email, owner=cast.owner
        ).tenant_id
    if not read_ruleset(tenant_id).rules:
        write_ruleset(tenant_id=tenant_id, document={"rules": list(profile.rules)}, actor=cast.owner.email)
    Membership.objects.get_or_create(
        user=cast.member, tenant_id=tenant_id, defaults={"role": MembershipRole.MEMBER}
    )
    return tenant_id


def ensure_strangers_tenant(name: str, *, account_id: UUID, cast: Cast) -> None:
    """Make the stranger's own tenant, which nobody of the demo's account can see."""
    if _find_tenant(name, account_id=account_id) is None:
        create_tenant(
            account_id=account_id,
            document={"tenantName": name},
            actor=cast.stranger.email,
            owner=cast.stranger,
        )


def _ensure_user(person: Person, *, role: PrimaryRole = PrimaryRole.USER) -> User:
    found = User.objects.filter(email=person.email).first()
    return found or User.objects.create_user(person.email, display_name=person.name, role=role)


def _find_tenant(name: str, *, account_id: UUID) -> UUID | None:
    return (
        Tenant.objects.filter(account=account_id, name_key=tenant_name_key(name), deleted_at__isnull=True)
        .values_list("pk", flat=True)
        .first()
    )
