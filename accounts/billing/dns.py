"""Check in the DNS that an account controls a domain. Contract: domains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import dns.exception
import dns.resolver
from django.conf import settings

from tenantadmin.lib.core.errors import BadRequest
from tenantadmin.lib.core.structs import JsonStruct

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


def require_challenge(challenge: DomainChallenge) -> None:
    """Check within a moment that the DNS has the TXT record of the challenge.

    Raises:
        ChallengeNotMet: the record is missing or different, or the DNS did not answer.
        NotAnsweredYet
    """
    _check(challenge, seconds=min(settings.DNS_TIMEOUT_SECONDS, _MOMENT))


def wait_for_challenge(challenge: DomainChallenge) -> None:
    """Check as `require_challenge` does, in a worker, within ``DNS_TIMEOUT_SECONDS``.

    Raises:
        ChallengeNotMet
    """
    _check(challenge, seconds=settings.DNS_TIMEOUT_SECONDS)


def _check(challenge: DomainChallenge, *, seconds: float) -> None:
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
