"""How a session was proven, and which acts ask for more. The admin site and the API ask the same object.

Contract: Authentication. Where `STAFF_SECOND_FACTOR` is on, the role of a platform admin is in force only on
a session that has proven a second factor. Some acts also need a proof that is at most
`ACCOUNT_REAUTHENTICATION_TIMEOUT` seconds old, and a reason. Elsewhere neither is asked.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Self

from django.conf import settings

from accounts.models import RefreshToken
from tenantadmin.lib.core.errors import Detail, Forbidden
from tenantadmin.lib.core.request_context import current_reason

if TYPE_CHECKING:
    from accounts.access.principal import Principal

#: The header that gives the reason, percent-encoded.
REASON_HEADER: Final = "X-Reason"


class Way(StrEnum):
    """What a session may be proven by."""

    LINK = "link"
    PROVIDER = "provider"
    PASSWORD = "password"  # noqa: S105
    TOTP = "totp"
    PASSKEY = "passkey"
    RECOVERY_CODE = "recovery-code"


#: A passkey verifies its user by itself, so it is a second factor even if it was the only proof.
SECOND_FACTORS: Final = frozenset({Way.TOTP, Way.PASSKEY, Way.RECOVERY_CODE})


class SecondFactorRequired(Forbidden):
    """The act needs a session that has proven a second factor, or a newer proof, or a reason."""

    code = "second_factor_required"
    message = "Prove your second factor first: GET /auth/step-up signs you in again with it."


@dataclass(frozen=True, slots=True)
class Assurance:
    """How a session was proven.

    Attributes:
        amr: the ways, with the time of the last proof of each in epoch seconds.
        second_factor: the id of the second factor that was used, if the user still has it.
    """

    amr: Mapping[str, float]
    second_factor: int | None = None

    @classmethod
    def of(cls, session: RefreshToken) -> Self:
        """Return the assurance of a session of the API."""
        return cls(amr=session.amr, second_factor=session.second_factor_id)

    @property
    def opens_admin(self) -> bool:
        """True if the role of a platform admin is in force on the session."""
        return self.second_factor is not None or not settings.STAFF_SECOND_FACTOR

    def is_fresh(self, *, only_second_factor: bool = True) -> bool:
        """Return True if the second factor, or any way, was proven a short time ago."""
        if only_second_factor and self.second_factor is None:
            return False
        moments = [at for way, at in self.amr.items() if way in SECOND_FACTORS or not only_second_factor]
        return bool(moments) and time.time() - max(moments) < settings.ACCOUNT_REAUTHENTICATION_TIMEOUT


UNPROVEN: Final = Assurance(amr={})


def require_fresh_proof(principal: Principal) -> None:
    """Refuse an act of a platform admin without a fresh proof of the second factor, or without a reason.

    Raises:
        SecondFactorRequired: the proof is too old, the reason is missing, or the token comes from a PAT.
    """
    if not settings.STAFF_SECOND_FACTOR:
        return
    if principal.claims.session is None:
        raise SecondFactorRequired(
            "A personal access token cannot prove a second factor. Sign in for this: GET /auth/step-up."
        )
    session = RefreshToken.objects.filter(pk=principal.claims.session).first()
    if session is None or not Assurance.of(session).is_fresh():
        raise SecondFactorRequired(
            "This needs a proof of your second factor that is at most "
            f"{settings.ACCOUNT_REAUTHENTICATION_TIMEOUT // 60} minutes old: GET /auth/step-up."
        )
    require_reason()


def require_reason() -> None:
    """Refuse an act without a reason.

    Raises:
        SecondFactorRequired: the reason is missing.
    """
    if not current_reason():
        raise SecondFactorRequired(
            f"Say why you do this, percent-encoded in the header {REASON_HEADER}.",
            details=[Detail(f"/{REASON_HEADER}", "missing-reason", "Send a reason of 1 to 500 characters.")],
        )
