"""The audit in words: the records of one request are one act, told by who did it, what, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.urls import reverse

from accounts.admin.words import group_requests, rank_event, tell_changes, tell_event
from accounts.dashboard import in_dashboard
from accounts.models.history import RevisionKind, beside
from logs.audit import REQUEST_KEY, REQUESTS_KEY
from tenantadmin.backoffice.audit.kinds import Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accounts.admin.names import Names
    from accounts.models import Revision
    from tenantadmin.backoffice.audit.entries import Entry

_SOURCES: Final = {Source.READ: "read the raw log", Source.QUERY: "ran SQL over the log"}
_FIGURES: Final = "read figures from the log"
_VALUE: Final = 200


@dataclass(frozen=True, slots=True)
class Act:
    """What one request did. ``entry`` tells it best; ``more`` are its other records, in words."""

    entry: Entry
    #: In the past, without who: "changed the rules", and what leads to the name: "of".
    what: str
    joint: str
    detail: str
    reason: str
    #: Text and address of the record.
    more: Sequence[tuple[str, str]]
    #: Of the record, or of the difference of the one document that changed.
    href: str
    #: How often it was done in a row. ``entry`` is the newest.
    times: int = 1

    def is_like(self, other: Act) -> bool:
        """Return True if both say the same, such as a token that a dashboard renews each hour."""

        def said(act: Act) -> tuple[Any, ...]:
            entry = act.entry
            place = (entry.tenant_id, entry.account_id, entry.address)
            return entry.who, act.what, act.detail, act.reason, *place, entry.code

        return said(self) == said(other) and not (self.more or other.more or self.entry.code)


def tell_acts(entries: Sequence[Entry], names: Names) -> list[Act]:
    """Return the acts of a page of the timeline, newest first. Records of one request are one act."""
    requests = group_requests(
        entries, lambda entry: None if entry.source is Source.READ else (entry.request_id, entry.who)
    )
    acts: list[Act] = []
    for act in (_tell(found, names) for found in requests):
        if acts and acts[-1].is_like(act):
            acts[-1] = replace(acts[-1], times=acts[-1].times + 1)
        else:
            acts.append(act)
    return acts


def _tell(entries: Sequence[Entry], names: Names) -> Act:
    main = min(entries, key=_rank)
    # The document that the act changed, and not one of another place.
    place = (main.tenant_id, main.account_id)
    documents = [
        entry
        for entry in entries
        if entry.source is Source.REVISION and place == (entry.tenant_id, entry.account_id)
    ]
    record = documents[0] if len(documents) == 1 else main
    what, joint = phrase_of(main)
    others = [entry for entry in entries if entry is not main]
    return Act(
        entry=main,
        what=what,
        joint=joint,
        detail=detail_of(record, names, what=what),
        reason=next((entry.reason for entry in (main, *others) if entry.reason), ""),
        more=[(_whole(entry, names), href_of(entry)) for entry in others if entry is not record],
        href=href_of(record),
    )


def _rank(entry: Entry) -> int:
    """Return the rank of an entry in its request. The entry with the lowest rank tells the act."""
    if entry.source is not Source.EVENT:
        return 1
    return rank_event(entry.row)


def _whole(entry: Entry, names: Names) -> str:
    """Return an entry as one sentence, with the name of its tenant or account."""
    what, joint = phrase_of(entry)
    _, name = names.get(entry.tenant_id or entry.account_id or UUID(int=0), ("", ""))
    return " ".join(filter(None, (what, joint if name else "", name)))


def href_of(entry: Entry) -> str:
    """Return the address of a record, or of the difference that a revision made."""
    row = entry.row
    if entry.source is Source.REVISION and row.tenant_id:
        return in_dashboard(row.tenant_id, "history", kind=row.kind, seq=row.seq)
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def phrase_of(entry: Entry) -> tuple[str, str]:
    """Return what was done in words, and what leads to the name of the tenant or account."""
    row = entry.row
    if entry.source is Source.EVENT:
        return tell_event(row)
    if entry.source is Source.REVISION:
        return row.done, "" if row.kind == RevisionKind.ACCOUNT else "of"
    if entry.source is Source.READ and row.key.startswith((REQUEST_KEY, REQUESTS_KEY)):
        return "read the request" if row.key.startswith(REQUEST_KEY) else "read requests", "of"
    return _FIGURES if getattr(row, "by_service", False) else _SOURCES[entry.source], "of"


def tell_revision(row: Revision) -> str:
    """Return a change of a document in words, for a row that names the document's tenant or account."""
    comment = row.summary.get("comment")
    said = f"{row.text} (“{comment}”)" if comment else row.text
    if not beside(row.done, row.text):
        return row.done + said.removeprefix(row.text)
    return f"{row.document_name}: {said}"


def detail_of(entry: Entry, names: Names, *, what: str) -> str:
    """Return in words what changed, or how a query ended, beside ``what`` was done."""
    if entry.source is Source.REVISION:
        return beside(what, entry.text)
    if entry.source is Source.EVENT:
        text = tell_changes(entry.row, names)
        return text if len(text) <= _VALUE else f"{text[: _VALUE - 1]}…"
    return entry.text
