"""Users choose, for each tenant, the digests that they get by mail. Digests queue their mails."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Final
from uuid import UUID

from django.core import signing
from django.db import transaction

from accounts.access.principal import NO_SCOPES
from accounts.access.rights import rights_of
from accounts.access.scopes import Scope
from accounts.events import record_event
from accounts.models import Tenant, User
from accounts.models.events import EventKind
from analytics.models import Digest, DigestFrequency, DigestMail, DigestPreference
from tenantadmin.lib.core.errors import BadRequest, NotFound
from tenantadmin.lib.core.structs import JsonStruct, one_of
from tenantadmin.lib.jobs import outbox

if TYPE_CHECKING:
    from django.db.models import QuerySet


_SALT: Final = "analytics.digest.unsubscribe"


class DigestPreferenceDocument(JsonStruct):
    """Which digests of a tenant a user gets by mail."""

    tenant_id: UUID
    tenant_name: str
    frequency: Annotated[str, one_of(DigestFrequency.values)]


class InvalidUnsubscribeLink(BadRequest):
    """The token of the link is incomplete, or was not signed by this service."""

    message: ClassVar[str] = "The link is incomplete. Open the whole link from the mail."


@dataclass(frozen=True, slots=True)
class Subscription:
    """The user and the tenant of an unsubscribe link. ``tenant_name`` is empty if the tenant was deleted."""

    user_id: int
    tenant_id: UUID
    tenant_name: str


def list_preferences(email: str) -> list[DigestPreferenceDocument]:
    """Return the tenants whose digests a user may get by mail, by name, with the user's choice.

    Raises:
        NotFound: there is no such user.
    """
    user = _read_user(email)
    chosen = dict(DigestPreference.objects.filter(user=user).values_list("tenant_id", "frequency"))
    return [
        _document(tenant, chosen.get(tenant.pk, DigestFrequency.OFF))
        for tenant in digest_tenants(user).order_by("name", "pk")
    ]


def set_preference(*, email: str, tenant_id: UUID, frequency: str, actor: str) -> DigestPreferenceDocument:
    """Store the user's choice of digests of a tenant.

    Raises:
        NotFound: there is no such user, or it may not read the tenant's digests.
    """
    with transaction.atomic():
        user = _read_user(email, is_locked=True)
        tenant = digest_tenants(user).filter(pk=tenant_id).first()
        if tenant is None:
            raise NotFound("There is no such tenant, or you are not a member of it.")
        _write(user, tenant_id, DigestFrequency(frequency), actor=actor)
    return _document(tenant, frequency)


def digest_tenants(user: User) -> QuerySet[Tenant]:
    """Return the live tenants whose digests a user may read, also as an auditor."""
    return readable_tenants(user, scope=Scope.ANALYTICS_NUMBERS)


def readable_tenants(user: User, *, scope: Scope = Scope.ANALYTICS_READ) -> QuerySet[Tenant]:
    """Return the live tenants on which membership or grants give a scope. A platform role is not enough."""
    reach = replace(rights_of(user).on_tenants, everywhere=NO_SCOPES)
    return Tenant.objects.live().with_scope(scope, reach)


def unsubscribe_token(*, user_id: int, tenant_id: UUID) -> str:
    """Return the token of the link that ends a user's mails about a tenant. It never expires."""
    return signing.dumps([user_id, tenant_id.hex], salt=_SALT)


def read_unsubscribe_token(token: str) -> Subscription:
    """Return the user and the tenant of a token.

    Raises:
        InvalidUnsubscribeLink: this service did not sign the token.
    """
    try:
        user_id, tenant = signing.loads(token, salt=_SALT)
    except signing.BadSignature:
        raise InvalidUnsubscribeLink from None
    tenant_id = UUID(tenant)
    name = Tenant.objects.filter(pk=tenant_id).values_list("name", flat=True).first()
    return Subscription(user_id, tenant_id, name or "")


def unsubscribe(token: str) -> Subscription:
    """End a user's mails about a tenant. It may be called again.

    Raises:
        InvalidUnsubscribeLink: this service did not sign the token.
    """
    subscription = read_unsubscribe_token(token)
    with transaction.atomic():
        user = User.objects.select_for_update(no_key=True).filter(pk=subscription.user_id).first()
        wants = DigestPreference.objects.filter(user=user, tenant=subscription.tenant_id)
        if user is not None and wants.exists():
            # Only the receiver of the mail has the link.
            _write(user, subscription.tenant_id, DigestFrequency.OFF, actor=user.email)
    return subscription


def _write(user: User, tenant_id: UUID, frequency: DigestFrequency, *, actor: str) -> None:
    """Write a preference of a locked user, and an event if it changes."""
    chosen = DigestPreference.objects.filter(user=user, tenant=tenant_id)
    before = chosen.values_list("frequency", flat=True).first() or DigestFrequency.OFF
    if before == frequency:
        return
    record_event(
        EventKind.DIGEST_MAIL_CHANGED,
        actor=actor,
        subject=user.email,
        tenant_id=tenant_id,
        before={"frequency": str(before)},
        after={"frequency": frequency.value},
        repeats={"subject": user.email, "after__frequency": frequency.value},
    )
    DigestPreference.objects.update_or_create(
        user=user, tenant_id=tenant_id, defaults={"frequency": frequency}
    )


def _read_user(email: str, *, is_locked: bool = False) -> User:
    users = User.objects.select_for_update(no_key=True) if is_locked else User.objects.all()
    user = users.filter(email=email).first()
    if user is None:
        raise NotFound("There is no such user.")
    return user


def _document(tenant: Tenant, frequency: str) -> DigestPreferenceDocument:
    return DigestPreferenceDocument(tenant_id=tenant.pk, tenant_name=tenant.name, frequency=frequency)


def queue_mails(digest: Digest) -> None:
    """Queue a mail for each subscriber of this digest. Call it in the transaction that stores the digest."""
    users = subscriptions(digest).values_list("user_id", flat=True)
    outbox.put(
        [DigestMail(tenant_id=digest.tenant_id, period=digest.period, user_id=user) for user in users],
        ignore_conflicts=True,
    )


def subscriptions(digest: Digest) -> QuerySet[DigestPreference]:
    """Return the preferences of active users who chose to get this digest."""
    is_week = digest.first_day != digest.last_day
    frequency = DigestFrequency.WEEKLY if is_week else DigestFrequency.DAILY
    return DigestPreference.objects.filter(tenant=digest.tenant_id, frequency=frequency, user__is_active=True)
