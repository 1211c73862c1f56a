"""Check the read-only members of a document that a client sends back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenantadmin.lib.core.errors import Conflict, Detail, ValidationFailed

if TYPE_CHECKING:
    from collections.abc import Mapping


def require_unchanged(
    members: Mapping[str, tuple[object, object]], *, sent_seq: int | None, stored_seq: int
) -> None:
    """Refuse new values for members that cannot change.

    ``members`` maps names to the sent value (None if it was left out) and the stored value.

    Raises:
        ValidationFailed: a read-only member was sent with another value than the stored one.
        Conflict: ``seq`` was sent with another value than the stored one.
    """
    details = [
        Detail(f"/{name}", "read-only", f"'{name}' cannot be changed. Leave it out or send it as read.")
        for name, (sent, stored) in members.items()
        if sent not in {None, stored}
    ]
    if details:
        raise ValidationFailed(details=details)
    if sent_seq not in {None, stored_seq}:
        raise Conflict
