"""Blame a stored ruleset: find the revision that last changed each value. Contract: Change history."""

from __future__ import annotations

from itertools import chain
from time import thread_time
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from accounts.models.history import RevisionKind
from accounts.revisions import Change, DocumentHistory, RevisionNotFound
from rules.blame import ORDER, Blame, Place, blame
from rules.rule_text import label_of_field
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from uuid import UUID

    from accounts.models import Revision

MAX_REVISIONS: Final = 1_000
#: Seconds of processor time after which no older revision is read.
_SECONDS: Final = 2.0
#: A ruleset may have a megabyte.
_CHUNK: Final = 20


class BlamedField(JsonStruct):
    path: Annotated[str, Meta(description="JSON Pointer into the rule.")]
    label: Annotated[str | None, Meta(description="The field's label on the dashboard.")] = None
    seq: Annotated[Count, Meta(description="The revision that last changed the value.")]
    at_most: Annotated[
        bool, Meta(description="True if an older revision, which was not read, may have changed it last.")
    ]


class BlamedRule(JsonStruct):
    rule_id: str
    fields: list[BlamedField]


class RulesBlame(JsonStruct):
    """The revision that last changed each value of a ruleset."""

    seq: Count
    order: Annotated[BlamedField, Meta(description="The order of the rules; its path is `/order`.")]
    rules: list[BlamedRule]
    revisions: Annotated[list[Change], Meta(description="The revisions that are named above, newest first.")]


def blame_ruleset(tenant_id: UUID, *, seq: int | None = None) -> RulesBlame:
    """Return the contract's RulesBlame of a revision, by default of the newest.

    Raises:
        RevisionNotFound: there is no such revision, or the tenant was deleted with it.
    """
    history = DocumentHistory(RevisionKind.RULES, tenant_id).revisions()
    if seq is not None:
        history = history.filter(seq__lte=seq)
    revisions = history.iterator(chunk_size=_CHUNK)
    newest = next(revisions, None)
    if newest is None or newest.document is None or seq not in {None, newest.seq}:
        raise RevisionNotFound
    changes: dict[int, Change] = {}

    def read(revision: Revision) -> tuple[int, list[dict[str, Any]]]:
        changes[revision.seq] = Change.of(revision)
        return revision.seq, (revision.document or {}).get("rules", [])

    started = thread_time()
    result = blame(
        map(read, chain([newest], revisions)),
        limit=MAX_REVISIONS,
        is_late=lambda: thread_time() - started > _SECONDS,
    )
    ids = [rule["id"] for rule in newest.document.get("rules", [])]
    fields: dict[str | None, list[BlamedField]] = {rule_id: [] for rule_id in ids}
    for rule_id, path in result.seqs:
        if rule_id is not None:
            fields[rule_id].append(_field(result, (rule_id, path)))
    return RulesBlame(
        seq=newest.seq,
        order=_field(result, (None, ORDER)),
        rules=[
            BlamedRule(rule_id=rule_id, fields=sorted(fields[rule_id], key=lambda it: it.path))
            for rule_id in ids
        ],
        revisions=[changes[named] for named in sorted({*result.seqs.values()}, reverse=True)],
    )


def _field(result: Blame, place: Place) -> BlamedField:
    return BlamedField(
        path=place[1], label=label_of_field(place[1]), seq=result.seqs[place], at_most=place in result.unknown
    )
