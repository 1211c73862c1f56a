"""What the documents that have a history share: a body may send back what is read-only, as it was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenantadmin.core.errors import Conflict, Detail, ValidationFailed

if TYPE_CHECKING:
    from collections.abc import Mapping


def require_unchanged(
    members: Mapping[str, tuple[object, object]], *, sent_seq: int | None, stored_seq: int
) -> None:
    """Refuse another value for a member that cannot change.

    ``members`` maps names to the value sent, None where it was left out, and the stored one.

    Raises:
        ValidationFailed: a read-only member says something else than what is stored.
        Conflict: ``seq`` was sent and is not the stored one.
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
