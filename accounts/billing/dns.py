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


class ChallengeNotMet(BadRequest):
    """The DNS does not hold the record, or did not answer."""


def require_challenge(challenge: DomainChallenge) -> None:
    """Check that the DNS has the TXT record of the challenge.

    Raises:
        ChallengeNotMet: the record is missing or different, or the DNS did not answer.
    """
    try:
        answer = _resolver().resolve(challenge.name, "TXT")
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer) as error:
        raise ChallengeNotMet(
            f"The DNS has no TXT record '{challenge.name}'. Publish it with the value "
            f"'{challenge.value}' and try again."
        ) from error
    except dns.exception.DNSException as error:
        raise ChallengeNotMet(
            f"The DNS did not answer for '{challenge.name}' ({type(error).__name__}). Try again later."
        ) from error
    texts = [_text(record) for record in answer]
    if challenge.value not in texts:
        raise ChallengeNotMet(
            f"The TXT record '{challenge.name}' holds another value. It must be '{challenge.value}'."
        )


def _text(record: TXT) -> str:
    return b"".join(record.strings).decode("utf-8", "replace")


def _resolver() -> dns.resolver.Resolver:
    resolver = dns.resolver.Resolver(configure=not settings.DNS_NAMESERVERS)
    if settings.DNS_NAMESERVERS:
        resolver.nameservers = list(settings.DNS_NAMESERVERS)
        resolver.port = settings.DNS_PORT
    resolver.lifetime = settings.DNS_TIMEOUT_SECONDS
    return resolver
