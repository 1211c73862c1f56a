"""Sessions of the admin site: how long they last, and what they have proven."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from allauth.account.authentication import get_authentication_records
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth import logout
from django.db import transaction

from accounts.access.assurance import Assurance, Way
from accounts.events import record_event
from accounts.models.events import EventKind
from tenantadmin.lib.core.request_context import describe_request
from tenantadmin.lib.http.middleware import ForPages

if TYPE_CHECKING:
    from django.http import HttpRequest

    from accounts.models import User

#: The query parameter that asks for a part of a page. Pages ask for theirs every few seconds.
PART_PARAMETER: Final = "part"
#: The method of a second factor in the records of django-allauth.
_SECOND_FACTOR: Final = "mfa"
_WAYS: Final = {
    Authenticator.Type.TOTP: Way.TOTP,
    Authenticator.Type.WEBAUTHN: Way.PASSKEY,
    Authenticator.Type.RECOVERY_CODES: Way.RECOVERY_CODE,
}
_BEGUN_AT: Final = "begun_at"


class StaffSessions(ForPages):
    """Ends a session of the admin site that is too old, or whose user is no longer staff.

    `SESSION_COOKIE_AGE` ends an idle one.
    """

    def process_request(self, request: HttpRequest) -> None:
        if request.path.startswith("/admin/") and request.user.is_authenticated:
            describe_request(user=request.user.email)
            begun_at = request.session.setdefault(_BEGUN_AT, time.time())
            if time.time() - begun_at > settings.STAFF_SESSION_SECONDS or not request.user.is_staff:
                logout(request)
            elif request.method != "GET" or PART_PARAMETER not in request.GET:
                # Restart the idle time. Polling does not count as activity.
                request.session.modified = True


def authenticators_of(user: Any) -> Any:
    """Return the rows of the user's second factors. Recovery codes alone are none."""
    held = Authenticator.objects.filter(user_id=user.pk)
    return held.exclude(type=Authenticator.Type.RECOVERY_CODES).order_by("created_at")


def second_factors(user: Any) -> set[str]:
    """Return the kinds of the user's second factors."""
    return set(authenticators_of(user).values_list("type", flat=True))


def second_factor_held(user: User, factor: int | None) -> bool:
    """Return True if the user still has the second factor of this id; None stands for none."""
    return factor is None or Authenticator.objects.filter(user_id=user.pk, pk=factor).exists()


@transaction.atomic
def reset_second_factor(user: User, *, actor: str, reason: str = "") -> bool:
    """Remove the user's second factors and recovery codes; return False if there are none.

    Sessions that used them must prove a new one.
    """
    kinds = sorted(second_factors(user))
    removed, _ = Authenticator.objects.filter(user_id=user.pk).delete()
    if removed:
        before = {"types": kinds}
        record_event(
            EventKind.SECOND_FACTOR_RESET, actor=actor, subject=user.email, before=before, reason=reason
        )
    return bool(removed)


def ways_used(request: HttpRequest, user: User) -> dict[str, str]:
    """Return how ``user`` has signed in, for the event: ``{provider, secondFactor?}``."""
    used: dict[str, str] = {}
    for record in get_authentication_records(request, user):
        if record["method"] != _SECOND_FACTOR:
            used["provider"] = record.get("provider") or record["method"]
        elif record.get("passwordless"):
            used["provider"] = "passkey"
        else:
            used["secondFactor"] = record["type"]
    return used


def assurance_of(request: HttpRequest) -> Assurance:
    """Return how this session of the admin site was proven. Second factors that are removed do not count."""
    proofs = _proofs(request)
    used = {record["id"]: record["at"] for record in proofs if record["method"] == _SECOND_FACTOR}
    held: set[int] = set()
    if used:
        owned = Authenticator.objects.filter(user_id=request.user.pk, pk__in=used)
        held = set(owned.values_list("pk", flat=True))
    return Assurance(
        amr={
            _way_of(record): record["at"]
            for record in proofs
            if record["method"] != _SECOND_FACTOR or record["id"] in held
        },
        second_factor=max(held, key=used.__getitem__, default=None),
    )


def _way_of(record: dict[str, Any]) -> Way:
    if record["method"] == _SECOND_FACTOR:
        return _WAYS[record["type"]]
    return Way.PROVIDER if record["method"] == "socialaccount" else Way(record["method"])


def is_freshly_proven(request: HttpRequest) -> bool:
    """Return True if the user signed in or confirmed it within `ACCOUNT_REAUTHENTICATION_TIMEOUT`.

    If the user has a second factor, only that counts.
    """
    return assurance_of(request).is_fresh(only_second_factor=bool(second_factors(request.user)))


def _proofs(request: HttpRequest) -> list[dict[str, Any]]:
    """Return what the session's user has proven, oldest first: ``{method, at, id?}``."""
    records: list[dict[str, Any]] = get_authentication_records(request, request.user)
    return records
