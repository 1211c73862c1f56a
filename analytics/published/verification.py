"""Which documents can be verified, and the result of a verification."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from analytics.models import Kind
from analytics.published.documents import MAX_DIFFERENCES, UnequalValue
from analytics.summaries.periods import period_bounds
from tenantadmin.lib.core.errors import Conflict
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

#: Savings are not stored. They are computed when they are read, and kept for an hour.
SAVINGS: Final = "savings"
#: The documents that can be verified.
DOCUMENTS: Final[tuple[str, ...]] = (*Kind.values, SAVINGS)

#: The format of the period of each kind of document, and an example.
_PERIODS: Final[Mapping[str, tuple[str, str]]] = {
    Kind.DAY: (r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "2026-03-01"),
    Kind.MONTH: (r"[0-9]{4}-[0-9]{2}", "2026-03"),
    **dict.fromkeys((Kind.YEAR, Kind.RULES, Kind.OPPORTUNITIES), (r"[0-9]{4}", "2026")),
    Kind.USERS: ("", ""),
    SAVINGS: (r"[0-9]{4}(-[0-9]{2}){0,2}", "2026-03"),
}
_PER_USER: Final = (Kind.DAY, Kind.MONTH, Kind.YEAR)


class InvalidKey(ValueError):
    """No such document can exist. ``field`` is the wrong member: ``period`` or ``userId``."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def check_key(kind: str, period: str, *, is_of_user: bool) -> None:
    """Check that a kind of document can have this period and this user.

    Raises:
        InvalidKey: the message says what to send.
    """
    pattern, example = _PERIODS[kind]
    cure = f"Give a period like {example}." if example else "Leave the period out: it is the whole history."
    if not re.fullmatch(pattern, period):
        raise InvalidKey("period", cure)
    try:
        # The calendar must have this date.
        date.fromisoformat(period + "0001-01-01"[len(period) :])
    except ValueError as error:
        raise InvalidKey("period", cure) from error
    if is_of_user and kind not in _PER_USER:
        names = ", ".join(_PER_USER)
        raise InvalidKey("userId", f"Only these documents are made for single users: {names}.")


class BuildMoved(Conflict):
    """In both attempts, a build was replaced during the verification."""

    message = "The document is being built again. Wait a minute and retry."


class MadeByAnotherRelease(Conflict):
    """The document or its days have another version, and wait for being built again."""

    def __init__(self, tenant: UUID) -> None:
        super().__init__(
            "Another release of the service made this document. The service makes it again within half an"
            f" hour; `manage.py rebuild --tenant {tenant}` makes it now."
        )


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """A document: its kind (one of `DOCUMENTS`), its period, and its user.

    A period is like ``2026-03-01``, ``2026-03``, ``2026`` or empty.
    """

    tenant: UUID
    kind: str
    period: str
    user: str | None = None

    @property
    def is_about_users(self) -> bool:
        """True if the document has data of single users."""
        return self.user is not None or self.kind == Kind.USERS

    @property
    def days(self) -> tuple[date, date]:
        """The first and the last day of the period."""
        return period_bounds(self.period)

    @property
    def activity_days(self) -> tuple[date, date]:
        """The days whose activity a year's document may show: the year and 364 days before it."""
        _, last = self.days
        return (date(last.year - 1, 1, 2) if last.year > 1 else date.min), last


class RunQuery(JsonStruct):
    name: str
    sql: Annotated[str, Meta(description="The statement to run yourself.")]
    ms: Count


class Verification(JsonStruct):
    """Whether a document says what SQL over the log says."""

    component = "VerificationAnswer"

    equal: bool
    fields: Annotated[Count, Meta(description="How many values were compared.")]
    unequal_count: Count
    unequal: Annotated[
        list[UnequalValue], Meta(description=f"The first {MAX_DIFFERENCES} values that differ.")
    ]
    queries: list[RunQuery]
