"""Register, verify and delete the domains of accounts, by a challenge in the DNS. Contract: domains."""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from uuid import UUID

import dns.exception
import dns.resolver
import msgspec
from django.conf import settings
from django.db import IntegrityError, transaction

from accounts.events import record_event
from accounts.limits import count_use
from accounts.models import Account, Domain, Fqdn, Tenant
from accounts.models.events import EventKind
from accounts.tenants.errors import AccountNotFound, DomainNotFound, InUse
from tenantadmin.lib.core.errors import BadRequest, Forbidden, ValidationFailed
from tenantadmin.lib.core.hosts import lies_in
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp, now

if TYPE_CHECKING:
    from dns.rdtypes.ANY.TXT import TXT


#: The label of the challenge's TXT record. It keeps the challenge apart from other TXT records.
CHALLENGE_LABEL: Final = "_tenant-admin-challenge"


class DomainChallenge(JsonStruct):
    """The DNS record that proves control of the domain."""

    type: Literal["TXT"]
    name: str
    value: str


#: How long a request waits for the DNS. A worker waits longer.
_MOMENT: Final = 1.0


class ChallengeNotMet(BadRequest):
    """The DNS does not hold the record, or did not answer."""


class NotAnsweredYet(ChallengeNotMet):
    """The DNS did not answer within a moment. A worker can wait for it."""


def require_challenge(challenge: DomainChallenge, *, seconds: float) -> None:
    """Check that the DNS has the TXT record of the challenge.

    Raises:
        ChallengeNotMet: the record is missing or different, or the DNS did not answer.
        NotAnsweredYet: it did not answer in less than ``DNS_TIMEOUT_SECONDS``.
    """
    try:
        answer = _resolver(seconds).resolve(challenge.name, "TXT")
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer) as error:
        raise ChallengeNotMet(
            f"The DNS has no TXT record '{challenge.name}'. Publish it with the value "
            f"'{challenge.value}' and try again."
        ) from error
    except dns.exception.DNSException as error:
        is_late = isinstance(error, dns.exception.Timeout) and seconds < settings.DNS_TIMEOUT_SECONDS
        kind = NotAnsweredYet if is_late else ChallengeNotMet
        raise kind(
            f"The DNS did not answer for '{challenge.name}' ({type(error).__name__}). Try again later."
        ) from error
    texts = [_text(record) for record in answer]
    if challenge.value not in texts:
        raise ChallengeNotMet(
            f"The TXT record '{challenge.name}' holds another value. It must be '{challenge.value}'."
        )


def _text(record: TXT) -> str:
    return b"".join(record.strings).decode("utf-8", "replace")


def _resolver(seconds: float) -> dns.resolver.Resolver:
    resolver = dns.resolver.Resolver(configure=not settings.DNS_NAMESERVERS)
    if settings.DNS_NAMESERVERS:
        resolver.nameservers = list(settings.DNS_NAMESERVERS)
        resolver.port = settings.DNS_PORT
    resolver.lifetime = seconds
    return resolver


DomainState: TypeAlias = Literal["pending", "verified"]


class DomainDocument(JsonStruct):
    """A domain that an account registered."""

    name: str = msgspec.field(name="domain")
    account_id: UUID
    state: DomainState
    challenge: DomainChallenge
    created_at: Timestamp
    verified_at: Timestamp | None = None


def domain_document(domain: Domain) -> DomainDocument:
    """Return the contract's Domain."""
    state: DomainState = "pending" if domain.verified_at is None else "verified"
    return DomainDocument.of(domain, state=state, challenge=challenge_of(domain))


def challenge_of(domain: Domain) -> DomainChallenge:
    """Return the DNS record that proves control of a domain."""
    return DomainChallenge(type="TXT", name=f"{CHALLENGE_LABEL}.{domain.name}", value=domain.challenge)


def list_domains(account_id: UUID) -> list[str]:
    """Return the names of an account's domains, sorted.

    Raises:
        AccountNotFound: there is no such account.
    """
    _require_account(account_id)
    names = Domain.objects.filter(account=account_id).order_by("name")
    return list(names.values_list("name", flat=True))


def read_domain(*, account_id: UUID, name: str) -> Domain:
    """Return a domain of an account.

    Raises:
        DomainNotFound: the account has no such domain.
    """
    domain = Domain.objects.filter(account=account_id, name=name).first()
    if domain is None:
        raise DomainNotFound
    return domain


def register_domain(*, account_id: UUID, name: str, actor: str) -> Domain:
    """Register a domain for an account and create its challenge.

    The account can use the domain after verifying it. ``name`` is a normalized host name.

    Raises:
        AccountNotFound: there is no such account.
        ValidationFailed: the domain is the platform's own.
        InUse: the account has the domain already, or it is verified for another account.
    """
    if any(lies_in(name, own) or lies_in(own, name) for own in settings.PLATFORM_DOMAINS):
        message = f"'{name}' belongs to the platform: its names may be used without registering it."
        raise ValidationFailed.at("/domain", "platform-domain", message)
    _require_account(account_id)
    if Domain.objects.filter(name=name, verified_at__isnull=False).exclude(account=account_id).exists():
        raise InUse(f"'{name}' is verified for another account.")
    try:
        with transaction.atomic():
            domain = Domain.objects.create(
                account_id=account_id, name=name, challenge=f"tenant-admin={secrets.token_urlsafe(24)}"
            )
            record_event(EventKind.DOMAIN_ADDED, actor=actor, subject=name, account_id=account_id)
    except IntegrityError as error:
        raise InUse(f"The account has the domain '{name}' already.") from error
    return domain


def verify_domain(
    *, account_id: UUID, name: str, by_hand: bool, may_verify_by_hand: bool, actor: str
) -> Domain:
    """Verify a domain by its DNS challenge, or by hand. A verified domain does not change.

    Raises:
        DomainNotFound: the account has no such domain.
        Forbidden: ``by_hand`` is true but ``may_verify_by_hand`` is false.
        RateLimited: the account has asked for too many checks.
        ChallengeNotMet: the DNS does not have the record.
        NotAnsweredYet: the DNS did not answer within a moment. `verify_late` goes on.
        InUse: it is verified for another account.
    """
    domain = read_domain(account_id=account_id, name=name)
    if by_hand and not may_verify_by_hand:
        raise Forbidden("Only a platform admin verifies a domain by hand.")
    if domain.verified_at is not None:
        return domain
    if not by_hand:
        count_use(limit=settings.DOMAIN_CHECK_LIMIT, kind="domain-check", key=str(account_id))
        require_challenge(challenge_of(domain), seconds=min(settings.DNS_TIMEOUT_SECONDS, _MOMENT))
    _record_verification(domain, by_hand=by_hand, actor=actor)
    return domain


def verify_late(*, domain_id: int, actor: str) -> None:
    """Verify a domain by its DNS challenge, and wait longer for the DNS than a request does.

    Without the record, or if another account has verified it meanwhile, the domain stays as it is.
    """
    domain = Domain.objects.filter(pk=domain_id, verified_at__isnull=True).first()
    if domain is not None:
        with suppress(ChallengeNotMet, InUse, DomainNotFound):
            require_challenge(challenge_of(domain), seconds=settings.DNS_TIMEOUT_SECONDS)
            _record_verification(domain, by_hand=False, actor=actor)


def _record_verification(domain: Domain, *, by_hand: bool, actor: str) -> None:
    """Raises InUse or DomainNotFound if another account was faster, or the domain is deleted."""
    try:
        with transaction.atomic():
            domain.verified_at = now()
            verified = Domain.objects.filter(pk=domain.pk, challenge=domain.challenge).update(
                verified_at=domain.verified_at
            )
            if verified:
                record_event(
                    EventKind.DOMAIN_VERIFIED,
                    actor=actor,
                    subject=domain.name,
                    account_id=domain.account_id,
                    after={"byHand": by_hand},
                )
    except IntegrityError as error:
        raise InUse(f"'{domain.name}' is verified for another account.") from error
    if not verified:
        raise DomainNotFound


def delete_domain(*, account_id: UUID, name: str, actor: str) -> None:
    """Delete a domain that no claimed FQDN of the account's tenants needs.

    Raises:
        DomainNotFound: the account has no such domain.
        InUse: FQDNs are in this domain and in no other verified domain of the account.
    """
    with transaction.atomic():
        # Claims lock the account's domains too, so no claim can happen between the check and the deletion.
        domains = list(Domain.objects.select_for_update().filter(account=account_id).order_by("pk"))
        domain = next((row for row in domains if row.name == name), None)
        if domain is None:
            raise DomainNotFound
        if domain.verified_at is not None:
            others = [row.name for row in domains if row.verified_at is not None and row.pk != domain.pk]
            carried = [
                fqdn
                for fqdn in _claimed_in(account_id, name)
                if not any(lies_in(fqdn, other) for other in others)
            ]
            if carried:
                raise InUse(f"The domain still carries FQDNs, '{carried[0]}' among {len(carried)}.")
        record_removal(domain, actor=actor)
        domain.delete()


def record_removal(domain: Domain, *, actor: str) -> None:
    """Record that a domain is deleted."""
    record_event(
        EventKind.DOMAIN_REMOVED,
        actor=actor,
        subject=domain.name,
        account_id=domain.account_id,
        before={"verified": domain.verified_at is not None},
    )


def _claimed_in(account_id: UUID, name: str) -> list[str]:
    tenants = Tenant.objects.live().filter(account=account_id).values("pk")
    claimed = Fqdn.objects.filter(tenant_id__in=tenants, released_at__isnull=True, name__endswith=name)
    return [fqdn for fqdn in claimed.values_list("name", flat=True) if lies_in(fqdn, name)]


def _require_account(account_id: UUID) -> None:
    if not Account.objects.live().filter(pk=account_id).exists():
        raise AccountNotFound
