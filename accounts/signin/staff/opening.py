"""Sign staff in to the dashboard from the admin site, by a one-time code (RFC 6749 4.1, with RFC 7636).

The dashboard makes a secret, and sends the admin site its challenge. The code that comes back is of no use
without the secret, which never leaves the tab. So no token stands in an address.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec
from django.conf import settings
from django.utils.crypto import constant_time_compare

from accounts.access.assurance import Assurance
from accounts.access.credentials import InvalidGrant, digest_of
from accounts.models import User
from accounts.signin.flow import open_session
from accounts.signin.staff.sessions import second_factor_held
from accounts.signin.state import redis_of
from tenantadmin.lib.core.request_context import acting_for

if TYPE_CHECKING:
    from accounts.access.credentials import IssuedToken
    from accounts.signin.flow import Device

#: How long a code is valid. The dashboard redeems it at once.
CODE_SECONDS: Final = 60
#: S256 of a secret: 32 bytes as base64url.
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_KEY: Final = "tenantadmin:opening:"


@dataclass(frozen=True, slots=True)
class Opening:
    """What a code stands for: who looks at which tenant, why, and how the admin site knows them."""

    user_id: int
    epoch: str
    tenant_id: str
    reason: str
    challenge: str
    amr: Mapping[str, float]
    second_factor: int | None
    ways: Mapping[str, str]


def is_challenge(text: str) -> bool:
    """Return True if ``text`` has the form of a challenge."""
    return _CHALLENGE.fullmatch(text) is not None


def make_code(
    user: User, *, tenant_id: UUID, reason: str, challenge: str, assurance: Assurance, ways: Mapping[str, str]
) -> str:
    """Return a code that signs ``user`` in to the dashboard, once and within `CODE_SECONDS`.

    Raises:
        RedisError: it cannot be stored.
    """
    code = secrets.token_urlsafe(32)
    opening = {
        "user_id": user.pk,
        "epoch": str(user.epoch),
        "tenant_id": str(tenant_id),
        "reason": reason,
        "challenge": challenge,
        "amr": dict(assurance.amr),
        "second_factor": assurance.second_factor,
        "ways": dict(ways),
    }
    redis_of(settings.REDIS_URL).set(_key(code), json.dumps(opening), ex=CODE_SECONDS)
    return code


def redeem_code(code: str, *, verifier: str, device: Device) -> IssuedToken:
    """Start the session of staff that ``code`` stands for. A code is used up even if ``verifier`` is wrong.

    Raises:
        InvalidGrant: the code is unknown, too old or used, ``verifier`` is not its secret, or its user is no
            longer staff, was signed out everywhere or has removed the second factor meanwhile.
        RedisError: Redis does not answer.
    """
    stored: Any = redis_of(settings.REDIS_URL).getdel(_key(code))
    if stored is None:
        raise InvalidGrant(
            "The code is unknown, too old or used. Open the dashboard again from the admin site."
        )
    opening = Opening(**json.loads(stored))
    if not constant_time_compare(challenge_of(verifier), opening.challenge):
        raise InvalidGrant("The code was made for another tab of the browser.")
    user = User.objects.filter(pk=opening.user_id, epoch=opening.epoch).first()
    factor = opening.second_factor
    if user is None or not user.is_staff or not second_factor_held(user, factor):
        raise InvalidGrant("Your session on the admin site has ended.")
    with acting_for(opening.reason):
        issued, refresh_token = open_session(
            user,
            device,
            assurance=Assurance(amr=opening.amr, second_factor=factor),
            ways=opening.ways,
            is_staff=True,
            tenant_id=UUID(opening.tenant_id),
        )
    return msgspec.structs.replace(issued, refresh_token=refresh_token)


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a secret (RFC 7636)."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _key(code: str) -> str:
    return _KEY + digest_of(code).hex()
