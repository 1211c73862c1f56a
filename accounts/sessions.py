"""List and end the sessions of a user. A session is a refresh token and the access tokens minted from it.

Contract: Authentication, 3.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated, Final

from django.db import transaction
from django.db.models import Q
from msgspec import Meta

from accounts.access.assurance import Way, require_fresh_proof
from accounts.access.credentials import end_refresh_token, lock_sign_in, sign_out_everywhere
from accounts.events import record_event
from accounts.models import RefreshToken, User
from accounts.models.events import EventKind
from accounts.users import require_self_or_admin, unreadable
from tenantadmin.lib.core.errors import NotFound
from tenantadmin.lib.core.structs import JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp, from_epoch_ms, now

if TYPE_CHECKING:
    from accounts.access.principal import Principal

#: Sessions are deleted this long after they ended.
_RETENTION: Final = dt.timedelta(days=1)


class ProofDocument(JsonStruct):
    """One way by which a session was proven."""

    method: Annotated[str, one_of(sorted(Way))]
    at: Annotated[Timestamp, Meta(description="The last time.")]


class SessionDocument(JsonStruct):
    """A sign-in of a user that has not ended."""

    id: int
    provider: Annotated[str | None, Meta(description="Null without an identity provider.")]
    address: Annotated[str, Meta(description="The network address that signed in.")]
    user_agent: Annotated[str, Meta(description="The browser that signed in.")]
    created_at: Timestamp
    last_used_at: Annotated[Timestamp, Meta(description="When it was last used, to the minute.")]
    expires_at: Timestamp | None
    amr: Annotated[list[ProofDocument], Meta(description="How it was proven, the latest way first.")]
    current: Annotated[bool, Meta(description="True for the session of the token that asks.")]


def list_sessions(principal: Principal, *, email: str) -> list[SessionDocument]:
    """Return the documents of a user's sessions that have not ended, newest first.

    Raises:
        Forbidden: the caller is neither the user nor a platform admin.
        NotFound: there is no such user; only platform admins get this.
    """
    user = require_self_or_admin(principal, email)
    return [_describe(principal, session) for session in user.refresh_tokens.in_force()]


def read_session(principal: Principal, *, email: str, session_id: int) -> SessionDocument:
    """Return the document of a session that has not ended.

    Raises:
        Forbidden: the caller is neither the user nor a platform admin.
        NotFound: the user has no such session, or it has ended.
    """
    user = require_self_or_admin(principal, email)
    session = user.refresh_tokens.in_force().filter(pk=session_id).first()
    if session is None:
        raise NotFound("There is no such session.")
    return _describe(principal, session)


def _describe(principal: Principal, session: RefreshToken) -> SessionDocument:
    return SessionDocument.of(
        session,
        provider=session.provider or None,
        last_used_at=format_timestamp(session.last_used_at or session.created_at),
        amr=_proofs(session),
        current=session.pk == principal.claims.session,
    )


def _proofs(session: RefreshToken) -> list[ProofDocument]:
    latest = sorted(session.amr.items(), key=lambda proof: proof[1], reverse=True)
    return [
        ProofDocument(method=way, at=format_timestamp(from_epoch_ms(int(at * 1000)))) for way, at in latest
    ]


def end_session(principal: Principal, *, email: str, session_id: int) -> None:
    """End a session: its refresh token at once, and within seconds the access tokens minted from it.

    Raises:
        Forbidden: the caller is neither the user nor a platform admin with a fresh proof.
        NotFound: the user has no such session, or it has ended.
    """
    user = _whose_sessions_end(principal, email)
    session = user.refresh_tokens.in_force().filter(pk=session_id).first()
    if session is None or not end_refresh_token(session, actor=principal.email):
        raise NotFound("There is no such session.")


def end_sessions(principal: Principal, *, email: str) -> int:
    """Sign a user out everywhere; return how many sessions ended.

    All access tokens end within seconds, also those minted from PATs. The PATs themselves stay. Open magic
    links end at once.

    Raises:
        Forbidden: the caller is neither the user nor a platform admin with a fresh proof.
        NotFound: there is no such user; only platform admins get this.
    """
    ended = end_sessions_of(_whose_sessions_end(principal, email), actor=principal.email)
    if ended is None:
        raise unreadable(principal)
    return ended


def _whose_sessions_end(principal: Principal, email: str) -> User:
    user = require_self_or_admin(principal, email)
    if user.pk != principal.rights.user_id:
        require_fresh_proof(principal)
    return user


def end_sessions_of(user: User, *, actor: str) -> int | None:
    """Sign a user out everywhere, as `end_sessions` does. Return None if the user is deleted meanwhile."""
    with transaction.atomic():
        lock_sign_in(user.email)
        locked = User.objects.select_for_update(no_key=True).filter(pk=user.pk).first()
        if locked is None:
            return None
        ended = sign_out_everywhere(locked, actor=actor)
        # Beside the event of each session: access tokens end even if no session is left.
        everywhere = {"everywhere": True, "sessions": ended}
        record_event(EventKind.SESSION_ENDED, actor=actor, subject=locked.email, before=everywhere)
        locked.save(update_fields=["epoch", "modified_at"])
    return ended


def delete_ended_sessions() -> int:
    """Delete the sessions that ended more than a day ago; return how many."""
    before = now() - _RETENTION
    removed, _ = RefreshToken.objects.filter(Q(expires_at__lte=before) | Q(revoked_at__lte=before)).delete()
    return removed
