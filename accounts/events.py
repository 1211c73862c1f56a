"""Record events: what happens to people, their rights and their credentials. Contract: Events.

What changes a document appends a revision instead (`accounts.revisions`). No value is a secret: of
tokens, events name the id.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from django.core.cache import cache
from redis import RedisError

from accounts.limits import Quota, use_quota
from accounts.models.events import Event, EventKind
from tenantadmin.lib.core.emails import check_email
from tenantadmin.lib.core.errors import ApiError, RateLimited
from tenantadmin.lib.core.request_context import (
    current_address,
    current_network,
    current_reason,
    current_request_id,
    network_of,
)
from tenantadmin.lib.core.timestamps import now

logger = logging.getLogger(__name__)

#: Within this time a refusal of the same credential for the same reason is recorded once.
_REFUSAL_SECONDS: Final = 300
#: Within this time, what a client may repeat freely is recorded once.
_REPEATED_WITHIN: Final = dt.timedelta(minutes=1)
#: Kinds that end something are recorded above the quota too: each needs another event before it.
_ENDS: Final = (
    ".ended",
    ".revoked",
    ".removed",
    ".deleted",
    ".withdrawn",
    ".declined",
    ".deactivated",
    ".reset",
)
#: The actor of beat jobs.
SYSTEM: Final = "system"


def record_event(
    kind: EventKind,
    *,
    actor: str,
    subject: str,
    tenant_id: UUID | None = None,
    account_id: UUID | None = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    reason: str = "",
    repeats: Mapping[str, Any] | None = None,
) -> None:
    """Append an event. Call it in the transaction of what it records.

    Request id, address and the reason that staff gave come from the request.

    Args:
        actor: a normalized email, or the name of a command or job.
        repeats: the client may do this as often as it likes, so it is recorded at most once a minute for the
            actor, the tenant, the client's network and the columns named here. The caller holds a lock on the
            row that it is about, so that two requests do not both record it.

    Raises:
        RateLimited: the tenant, or without one the client's network, has too many events today. What ends
            something is recorded all the same, and what is repeated only logged.
    """
    if repeats is not None and _is_recorded(kind, actor=actor, tenant_id=tenant_id, columns=repeats):
        return
    event = Event(
        kind=kind,
        actor=actor,
        subject=subject,
        tenant_id=tenant_id,
        account_id=account_id,
        before=before,
        after=after,
        reason=reason or current_reason(),
        request_id=current_request_id(),
        address=current_address()[:45],
    )
    network = current_network()
    if owner := tenant_id or network:
        try:
            use_quota(Quota.EVENTS, owner, [before, after, event.reason, actor, subject])
        except RateLimited:
            if repeats is not None:
                logger.warning("Not recorded as an event (too many): %s of %r", kind, subject)
                return
            # Jobs and commands have no address. Staff can always act.
            if network and kind != EventKind.STAFF_ACTED and not kind.endswith(_ENDS):
                raise
    event.save(force_insert=True)


def _is_recorded(kind: EventKind, *, actor: str, tenant_id: UUID | None, columns: Mapping[str, Any]) -> bool:
    """Return True if there is such an event of the client's network of the last minute."""
    newest = Event.objects.filter(
        kind=kind, actor=actor, tenant_id=tenant_id, at__gte=now() - _REPEATED_WITHIN, **columns
    )
    network = current_network()
    return any(network_of(address) == network for address in newest.values_list("address", flat=True))


@contextmanager
def sign_in_failures_recorded(subject: str = "", *, way: str) -> Iterator[None]:
    """Record a failed sign-in if an `ApiError` leaves the block. Use it outside of the transaction.

    ``subject`` is the address that signs in, empty if it is not known yet. ``way`` is an identity provider or
    ``link``, empty if it is not known.
    """
    try:
        yield
    except ApiError as error:
        record_failed_sign_in(subject, way={"provider": way} if way else None, reason=error.why)
        raise


def record_failed_sign_in(subject: str, *, way: Mapping[str, str] | None, reason: str) -> None:
    """Record that a sign-in failed. ``way`` says how, in the words of `EventKind.SIGN_IN_SUCCEEDED`."""
    caller = f"{subject} {current_network()}"
    record_refusal(EventKind.SIGN_IN_FAILED, subject=subject, credential=caller, reason=reason, after=way)


def record_refused_token(*, subject: str, token: str, reason: str) -> None:
    """Record that a token was refused. ``subject`` is its owner; an empty one means an unknown token.

    Unknown tokens are counted by client address, so that invented tokens do not fill the table.
    """
    credential = token if subject else current_network()
    record_refusal(EventKind.TOKEN_REFUSED, subject=subject, credential=credential, reason=reason)


def record_refusal(
    kind: EventKind, *, subject: str, credential: str, reason: str, after: Mapping[str, str] | None = None
) -> None:
    """Record a refusal, once in five minutes for the same credential and reason.

    ``credential`` is not stored. If Redis does not answer, the refusal is in the log alone. The actor of the
    event is empty, because the caller has proved nothing.
    """
    text = f"{kind} {reason} {credential}"
    key = f"events:refused:{hashlib.sha256(text.encode(errors='replace')).hexdigest()}"
    try:
        is_first = cache.add(key, 1, timeout=_REFUSAL_SECONDS)
    except RedisError as error:
        logger.warning("Not recorded as an event (%s): %s of %r: %s", error, kind, subject, reason)
        return
    if is_first:
        try:
            record_event(kind, actor="", subject=subject, reason=reason, after=after)
        except RateLimited:
            logger.warning("Not recorded as an event (too many): %s of %r: %s", kind, subject, reason)


def known_address(text: str) -> str:
    """Return the normal form of an email address that a stranger typed, or an empty text if it is none."""
    try:
        return check_email(text)
    except ValueError:
        return ""
