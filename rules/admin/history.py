"""Data of the history page: changes as sentences, the diff of two revisions, and blame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from accounts.diff import diff_documents
from accounts.document_text import say_fields
from accounts.models.history import RevisionKind
from accounts.revisions import DocumentHistory, read_pair, read_timeline
from rules.blaming import blame_ruleset
from rules.diff import diff_rules
from tenantadmin.lib.core.errors import NotFound
from tenantadmin.lib.http.difference import diff_documents as diff_texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from accounts.diff import ChangeInWords
    from accounts.models import Revision
    from accounts.revisions import HistoryPage
    from rules.diff import RulesDiff

PAGE: Final = 50
#: The kinds of a tenant's documents.
KINDS: Final = (RevisionKind.RULES, RevisionKind.CONFIG)


def read_page(tenant_id: UUID, kind: RevisionKind, *, cursor: str | None) -> HistoryPage:
    """Return a page of changes, newest first.

    Raises:
        NotFound: the tenant never had such a document.
        BadRequest: the cursor is not from this list.
    """
    return read_timeline(DocumentHistory(kind, tenant_id), limit=PAGE, cursor=cursor)


def sentence(change: Revision) -> str:
    """Describe a change in a sentence, with its comment."""
    comment = change.summary.get("comment")
    return f"{change.text} (“{comment}”)" if comment else change.text


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two revisions and their diff, in words and as lines of `diff_texts`."""

    earlier: int
    later: int
    lines: Sequence[tuple[str, str]]
    #: Of rules.
    diff: RulesDiff | None = None
    #: Of a configuration.
    fields: Sequence[ChangeInWords] = ()


def compare(tenant_id: UUID, kind: RevisionKind, *, earlier: int, later: int) -> Comparison:
    """Compare two revisions.

    Raises:
        RevisionNotFound: there is no such revision.
    """
    before, after = read_pair(DocumentHistory(kind, tenant_id), earlier=earlier, later=later)
    lines = diff_texts_of(before, after)
    if kind is RevisionKind.RULES:
        diff = diff_rules(before=before.get("rules", ()), after=after.get("rules", ()))
        return Comparison(earlier, later, lines, diff=diff)
    return Comparison(earlier, later, lines, fields=say_fields(diff_documents(before=before, after=after)))


def compare_with_live(tenant_id: UUID, kind: RevisionKind, *, seq: int) -> Comparison:
    """Compare the newest revision with another one: its lines are what a restore would change.

    Raises:
        RevisionNotFound: there is no such revision.
    """
    newest = DocumentHistory(kind, tenant_id).revisions().values_list("seq", flat=True)[0]
    return compare(tenant_id, kind, earlier=newest, later=seq)


def find_restorable(tenant_id: UUID, kind: RevisionKind, compared: Comparison) -> list[int]:
    """Return which of two compared revisions differ from the live document, the later first."""
    return [
        seq
        for seq in dict.fromkeys((compared.later, compared.earlier))
        if compare_with_live(tenant_id, kind, seq=seq).lines
    ]


@dataclass(frozen=True, slots=True)
class BlamedRule:
    """A rule of the live ruleset and the revision that last changed it."""

    rule_id: str
    seq: int
    user: str
    changed_at: str


def blame_rules(tenant_id: UUID) -> list[BlamedRule]:
    """Return for each live rule the revision that last changed it. Empty for a deleted tenant."""
    try:
        blame = blame_ruleset(tenant_id)
    except NotFound:
        return []
    changes = {change.seq: change for change in blame.revisions}
    blamed = []
    for rule in blame.rules:
        seq = max((it.seq for it in rule.fields), default=0)
        change = changes.get(seq)
        user, changed_at = (change.user, change.changed_at) if change else ("", "")
        blamed.append(BlamedRule(rule.rule_id, seq, user, changed_at))
    return blamed
