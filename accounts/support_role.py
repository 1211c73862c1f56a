"""The role *support* on the admin site. Platform admins are its admins."""

from __future__ import annotations

from django.db import transaction

from accounts.events import record_event
from accounts.models import User
from accounts.models.events import EventKind


def set_support(user: User, *, is_support: bool, actor: str) -> bool:
    """Give or take the role; return False if nothing changed."""
    with transaction.atomic():
        if not User.objects.filter(pk=user.pk, is_support=not is_support).update(is_support=is_support):
            return False
        record_event(
            EventKind.ROLES_CHANGED,
            actor=actor,
            subject=user.email,
            before={"support": not is_support},
            after={"support": is_support},
        )
    return True
