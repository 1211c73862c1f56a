"""Sessions: the sign-ins of a user. A session is a refresh token and the access tokens minted from it.

Contract: Authentication, 3.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from django.db import connection

from accounts.access.credentials import end_refresh_token
from accounts.access.rights import in_force
from accounts.models import MagicLink, RefreshToken
from tenantadmin.core.timestamps import now

if TYPE_CHECKING:
    from accounts.models import User

#: The advisory lock that serializes sign-ins of one address. Any constant will do.
_SIGN_IN_LOCK: Final = 4_202_303


def lock_sign_in(email: str) -> None:
    """Wait for other sign-ins of the address. The lock is released when the transaction ends.

    Take this lock before the lock of the user's row, as a sign-in does; otherwise the two may deadlock.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_SIGN_IN_LOCK, email])


def sign_out_everywhere(user: User, *, actor: str) -> int:
    """End all sessions, access tokens and open magic links of the locked row ``user``.

    Sets a new epoch on ``user``, which the caller saves. The caller has called `lock_sign_in`. PATs stay, but
    must be exchanged again. Returns how many sessions ended.
    """
    user.epoch = uuid.uuid4()
    end_links(user.email)
    sessions = RefreshToken.objects.select_related("user").filter(in_force(), user=user)
    return sum(end_refresh_token(session, actor=actor) for session in sessions)


def end_links(email: str) -> None:
    """Use up the open magic links of an address. The caller has called `lock_sign_in`."""
    MagicLink.objects.filter(email=email, used_at__isnull=True).update(used_at=now())
