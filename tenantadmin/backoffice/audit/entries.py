"""Records of the audit as entries of one timeline, and the kinds by which it is filtered."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from accounts.models.events import EventKind
from accounts.models.history import RevisionKind
from logs.audit import REQUEST_KEY, REQUESTS_KEY
from tenantadmin.lib.core import formats

if TYPE_CHECKING:
    from accounts.models import Event, Revision
    from logs.models import LogRead


class Source(IntEnum):
    """The tables of the timeline. Rows with equal times are ordered by source, highest value first."""

    REVISION = 0
    READ = 1
    QUERY = 2
    EVENT = 3


#: Groups of event kinds, by prefix.
_PREFIXES: Final = {
    "sign-ins": ("sign-in.", "session.", "password.", "second-factor.", "identity."),
    "tokens": ("token.", "pat."),
    "rights": ("user.", "roles.", "membership.", "invitation.", "access.", "grant."),
    "proposals": ("draft.", "replay.", "recommendation"),
    "staff": ("staff.",),
}
_GROUPED: Final = tuple(prefix for prefixes in _PREFIXES.values() for prefix in prefixes)
#: The event kinds of each group; the last group has all others.
EVENT_GROUPS: Final = {
    **{
        name: tuple(kind for kind in EventKind if kind.startswith(prefixes))
        for name, prefixes in _PREFIXES.items()
    },
    "other-events": tuple(kind for kind in EventKind if not kind.startswith(_GROUPED)),
}
SOURCE_KINDS: Final = {
    "documents": (Source.REVISION,),
    **dict.fromkeys(RevisionKind.values, (Source.REVISION,)),
    "logs": (Source.READ, Source.QUERY),
    "raw-reads": (Source.READ,),
    "queries": (Source.QUERY,),
    "figures": (Source.QUERY,),
}
#: Choices of revisions and of reads of logs: value and title.
_CHANGES: Final = (
    (RevisionKind.RULES.value, "Rules published or restored"),
    (RevisionKind.CONFIG.value, "Configuration changed"),
    (RevisionKind.ACCOUNT.value, "Account, plan or owners changed"),
)
_READS: Final = (
    ("raw-reads", "Log files and single requests read"),
    ("queries", "SQL run by people"),
    ("figures", "Figures shown by pages"),
)
_EVENT_TITLES: Final = {
    "sign-ins": "Sign-ins and sessions",
    "tokens": "Tokens",
    "rights": "People and rights",
    "proposals": "Drafts, replays and recommendations",
    "staff": "Acts of staff",
    "other-events": "Domains, alerts, saved SQL, terms",
}

#: Choices of the filter by kind: value and title, in groups. A group of one kind has one choice.
KIND_CHOICES: Final = (
    ("Changes", (("documents", "Changes: all"), *_CHANGES)),
    ("Reads of logs", (("logs", "Reads of logs: all"), *_READS)),
    *(
        (
            title,
            (
                (group, f"{title}: all" if len(kinds) > 1 else title),
                *((kind.value, kind.label) for kind in kinds if len(kinds) > 1),
            ),
        )
        for (group, title), kinds in zip(_EVENT_TITLES.items(), EVENT_GROUPS.values(), strict=True)
    ),
)
KINDS: Final = frozenset((*EventKind, *(value for _, kinds in KIND_CHOICES for value, _ in kinds)))


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the timeline. ``row`` is its row of the source."""

    source: Source
    row: Any
    at: dt.datetime
    kind: str
    who: str
    #: The subject.
    what: str
    #: The change, as text.
    text: str
    #: An SQL statement, or the key of a raw log object.
    code: str = ""
    #: Reason of the refusal, or the reason that staff gave.
    reason: str = ""
    is_refused: bool = False
    address: str = ""
    request_id: str = ""

    @property
    def tenant_id(self) -> UUID | None:
        tenant: UUID | None = self.row.tenant_id
        return tenant

    @property
    def account_id(self) -> UUID | None:
        """The account; None for reads and queries, which store only the tenant."""
        return getattr(self.row, "account_id", None)

    @property
    def order(self) -> tuple[dt.datetime, int, int]:
        return self.at, self.source, self.row.pk


def _of_event(row: Event) -> Entry:
    act = (row.after or {}).get("act", "")
    is_refused = row.kind in {EventKind.SIGN_IN_FAILED, EventKind.TOKEN_REFUSED}
    return Entry(
        Source.EVENT,
        row,
        row.at,
        act or row.kind,
        row.actor,
        # The page shows the name of the tenant or account beside it.
        "" if row.subject in {str(row.tenant_id), str(row.account_id)} else row.subject,
        "",
        reason=row.reason,
        is_refused=is_refused,
        address=row.address,
        request_id=row.request_id,
    )


def _of_read(row: LogRead) -> Entry:
    return Entry(
        Source.READ,
        row,
        row.at,
        "raw log read",
        row.email,
        "",
        "",
        code=row.key.removeprefix(f"{row.tenant_id}/").removeprefix(REQUEST_KEY).removeprefix(REQUESTS_KEY),
        address=row.client_address,
        request_id=row.request_id,
    )


def _of_query(row: Any) -> Entry:
    is_refused = row.outcome not in {"ok", "running"}
    parts = [
        "" if row.rows is None else formats.count(row.rows, "row"),
        "" if row.duration_ms is None else f"in {formats.duration(row.duration_ms)}",
        "from a kept result" if row.from_kept_result else "",
        "on Spark" if row.engine == "spark" else "",
        f"by {row.program}" if row.program else "",
        "still running" if row.outcome == "running" else "",
    ]
    return Entry(
        Source.QUERY,
        row,
        row.at,
        "SQL query",
        row.email,
        "",
        " ".join(filter(None, parts)),
        code=row.opening,
        reason=row.message,
        is_refused=is_refused,
        address=row.client_address,
        request_id=row.request_id,
    )


def _of_revision(row: Revision) -> Entry:
    return Entry(
        Source.REVISION,
        row,
        row.changed_at,
        f"{row.kind}: {row.action}",
        row.user,
        "",
        row.text,
        reason=row.summary.get("comment", ""),
        request_id=row.request_id,
    )


#: What makes an entry of a row of each source.
ENTRY_OF: Final[Mapping[Source, Callable[[Any], Entry]]] = {
    Source.EVENT: _of_event,
    Source.READ: _of_read,
    Source.QUERY: _of_query,
    Source.REVISION: _of_revision,
}
