"""Let a user without a second factor add one, by a link that another platform admin or a command made.

Otherwise a mailbox or a password alone would be enough to become a platform admin with a second factor.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.core import signing
from django.shortcuts import redirect
from django.urls import reverse

from accounts.models.events import Event, EventKind
from accounts.signin.staff.sessions import second_factors
from tenantadmin.lib.core.timestamps import now, parse_timestamp

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from accounts.models import User

#: How long a link is good.
LINK_HOURS: Final = 24
NOT_INVITED: Final = (
    "You need a second factor, and an invitation to add the first one. Ask another platform admin, or run "
    "manage.py create_admin for a new link."
)
_SALT: Final = "accounts.staff.enrolment"
_KEY: Final = "enrolment"


def enrolment_link(user: User) -> str:
    """Return the address that lets ``user`` add a first second factor: once, for `LINK_HOURS`."""
    claims = {"user": user.pk, "epoch": str(user.epoch), "at": now().isoformat()}
    query = urlencode({"t": signing.dumps(claims, salt=_SALT)})
    return f"{settings.PUBLIC_BASE_URL}{reverse('staff-enrolment')}?{query}"


def remember_link(request: HttpRequest, token: str) -> None:
    """Keep the token of a link in the session, until its user has signed in."""
    request.session[_KEY] = token


def may_enrol(request: HttpRequest) -> bool:
    """Return True if the signed-in user may add a second factor: it has one, or has opened its link."""
    user: Any = request.user
    if not settings.STAFF_SECOND_FACTOR or second_factors(user):
        return True
    try:
        token = request.session.get(_KEY, "")
        claims = signing.loads(token, salt=_SALT, max_age=LINK_HOURS * 3600)
    except signing.BadSignature:
        return False
    if (claims["user"], claims["epoch"]) != (user.pk, str(user.epoch)):
        return False
    added = Event.objects.filter(kind=EventKind.SECOND_FACTOR_ADDED, subject=user.email)
    return not added.filter(at__gte=parse_timestamp(claims["at"])).exists()


def needs_enrolment(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Refuse a view that adds a second factor to a user who may not add the first one."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated and not may_enrol(request):
            messages.error(request, NOT_INVITED)
            return redirect("staff-ways-in")
        return view(request, *args, **kwargs)

    return guarded
