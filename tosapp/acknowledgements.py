"""Acknowledgements of the terms of service. Contract: Terms of service acknowledgement."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from django.db import transaction

from accounts.events import record_event
from accounts.models import User
from accounts.models.events import EventKind
from tenantadmin.lib.core.errors import ApiError, Forbidden, InternalError
from tenantadmin.lib.core.request_context import current_request_id
from tenantadmin.lib.core.structs import Email, JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp, now
from tosapp.models import Acknowledgement
from tosapp.publishing import active_terms, require_active, require_terms

if TYPE_CHECKING:
    from accounts.access.principal import Principal
    from tosapp.publishing import Terms


class TosHashMismatchBody(JsonStruct):
    """The Error body with the hash of the active document."""

    error: Literal["tos_hash_mismatch"]
    message: str
    request_id: str
    current_hash: str


class TosHashMismatch(ApiError):
    """The caller acknowledged another document than the active one, which has the hash ``current_hash``."""

    status: ClassVar[int] = 409
    code: ClassVar[str] = "tos_hash_mismatch"
    message: ClassVar[str] = "These are not the active terms of service. Show the user GET /tos."

    def __init__(self, *, current_hash: str) -> None:
        super().__init__()
        self.current_hash = current_hash

    def body(self) -> TosHashMismatchBody:
        return TosHashMismatchBody(
            error="tos_hash_mismatch",
            message=self.text,
            request_id=current_request_id(),
            current_hash=self.current_hash,
        )


class TosAcknowledgement(JsonStruct):
    hash: str
    acknowledged_at: Timestamp


class TosAckList(JsonStruct):
    """A user's acknowledgements, newest first."""

    email: Email
    active_hash: str | None
    up_to_date: bool
    acknowledgements: list[TosAcknowledgement]


def must_acknowledge(user: User) -> bool:
    """Return True if a token minted now must carry ``tos_required``. False without active terms.

    Raises:
        TosNotLoaded: the active terms could never be read.
    """
    terms = active_terms().get()
    return terms is not None and user.tos != terms.hash


def read_acknowledgements(principal: Principal) -> TosAckList:
    """Return the caller's acknowledgements.

    Raises:
        TosNotLoaded: the active terms could never be read.
    """
    terms = active_terms().get()
    user = principal.rights.user_id
    last = User.objects.filter(pk=user).values_list("tos", flat=True).first()
    return TosAckList(
        email=principal.email,
        active_hash=terms.hash if terms else None,
        up_to_date=terms is None or last == terms.hash,
        acknowledgements=[TosAcknowledgement.of(row) for row in Acknowledgement.objects.filter(user=user)],
    )


def acknowledge(principal: Principal, *, markdown: str) -> None:
    """Record that the caller acknowledged ``markdown``, the text that was shown.

    Raises:
        Forbidden: the caller is a personal access token, not a person.
        ValidationFailed: the text is empty.
        TosNotLoaded: there is no active document.
        TosHashMismatch: it is not the active document. The body has ``currentHash``.
        InternalError: the user has been deleted in the meantime.
    """
    if not principal.claims.is_sign_in:
        raise Forbidden("A personal access token cannot acknowledge the terms: sign in.")
    terms = require_terms(markdown)
    _require_current(terms)
    with transaction.atomic():
        user = User.objects.select_for_update(no_key=True).filter(pk=principal.rights.user_id).first()
        if user is None:
            raise InternalError("This user has been deleted.")
        if user.tos == terms.hash:
            return
        record_event(
            EventKind.TERMS_ACKNOWLEDGED, actor=user.email, subject=user.email, after={"hash": terms.hash}
        )
        user.tos, user.modified_at = terms.hash, now()
        user.save(update_fields=["tos", "modified_at"])
        Acknowledgement.objects.create(user=user, hash=terms.hash)


def _require_current(terms: Terms) -> None:
    current = require_active()
    if terms != current:
        # Another process may have published within the refresh interval.
        current = active_terms().get(fresh=True) or current
    if terms != current:
        raise TosHashMismatch(current_hash=current.hash)
