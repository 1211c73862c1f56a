"""Blame a stored ruleset: read its revisions and find who changed what. Contract: Change history."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from accounts.models.history import RevisionKind
from accounts.revisions import DocumentHistory, RevisionNotFound, change_as_json
from rules.blame import ORDER, Blame, Place, blame

if TYPE_CHECKING:
    from uuid import UUID

    from accounts.models import Revision

MAX_REVISIONS: Final = 1_000
#: A ruleset may have a megabyte.
_CHUNK: Final = 20


def blame_ruleset(tenant_id: UUID, *, seq: int | None = None) -> dict[str, Any]:
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
    changes: dict[int, dict[str, Any]] = {}

    def read(revision: Revision) -> tuple[int, list[dict[str, Any]]]:
        changes[revision.seq] = change_as_json(revision)
        return revision.seq, (revision.document or {}).get("rules", [])

    found = blame(map(read, chain([newest], revisions)), limit=MAX_REVISIONS)
    ids = [rule["id"] for rule in newest.document.get("rules", [])]
    fields: dict[str | None, list[dict[str, Any]]] = {rule_id: [] for rule_id in ids}
    for rule_id, path in found.seqs:
        if rule_id is not None:
            fields[rule_id].append(_field(found, (rule_id, path)))
    return {
        "seq": newest.seq,
        "order": _field(found, (None, ORDER)),
        "rules": [
            {"ruleId": rule_id, "fields": sorted(fields[rule_id], key=lambda it: it["path"])}
            for rule_id in ids
        ],
        "revisions": [changes[named] for named in sorted({*found.seqs.values()}, reverse=True)],
    }


def _field(found: Blame, place: Place) -> dict[str, Any]:
    return {"path": place[1], "seq": found.seqs[place], "atMost": place in found.unknown}
