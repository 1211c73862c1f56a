"""Find the revision that last changed each value of a ruleset. Contract: Change history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from time import thread_time
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

from msgspec import Meta

from accounts.diff import equal_values
from accounts.models.history import RevisionKind
from accounts.revisions import Change, DocumentHistory, RevisionNotFound
from rules.diff import is_reordered
from rules.json_text import is_object, join_pointer
from rules.rule_text import label_of_field
from tenantadmin.lib.core.serving import check_work
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from accounts.models import Revision
    from rules.json_text import JsonObject, Path

#: A rule's id and the JSON Pointer of one of its values, or None and `ORDER`.
Place = tuple[str | None, str]

ORDER: Final = "/order"


@dataclass(frozen=True, slots=True)
class Blame:
    """The ``seq`` of the revision that last changed each place.

    If ``is_complete`` is False, older revisions were not read. The places in ``unknown`` did not change in
    any revision that was read.
    """

    seqs: Mapping[Place, int]
    unknown: frozenset[Place]

    @property
    def is_complete(self) -> bool:
        return not self.unknown


def blame(
    revisions: Iterable[tuple[int, Sequence[JsonObject]]],
    *,
    limit: int,
    is_late: Callable[[], bool] = lambda: False,
) -> Blame:
    """Blame the rules of the first revision.

    A value is a member of a rule that is not an object, an array as a whole, or an empty object. The order
    changes if rules that both revisions have are in another order.

    Args:
        revisions: ``seq`` and rules, newest first, down to the first revision. At least one.
        limit: the maximum number of revisions to read.
        is_late: asked before each further revision whether to stop reading.
    """
    seqs: dict[Place, int] = {}
    open_places: set[Place] = set()
    newer: dict[Place, object] = {}
    newer_ids: list[object] = []
    newer_seq = -1
    for number, (seq, rules) in enumerate(revisions):
        if number == limit or (number and is_late()):
            return Blame({**seqs, **dict.fromkeys(open_places, newer_seq)}, frozenset(open_places))
        values, ids = _values(rules), [rule["id"] for rule in rules]
        if number == 0:
            newer, open_places = values, {*values, (None, ORDER)}
        else:
            changed = {
                place
                for place in open_places
                if (
                    is_reordered(ids, newer_ids)
                    if place == (None, ORDER)
                    else place not in values or not equal_values(values[place], newer[place])
                )
            }
            seqs.update(dict.fromkeys(changed, newer_seq))
            open_places -= changed
        newer_ids, newer_seq = ids, seq
        if not open_places:
            break
    return Blame({**seqs, **dict.fromkeys(open_places, newer_seq)}, frozenset())


def _values(rules: Sequence[JsonObject]) -> dict[Place, object]:
    return {
        (str(rule["id"]), join_pointer(path)): value for rule in rules for path, value in _leaves(rule, ())
    }


def _leaves(value: JsonObject, path: Path) -> Iterator[tuple[Path, object]]:
    check_work()
    for name, member in value.items():
        if is_object(member) and member:
            yield from _leaves(member, (*path, name))
        else:
            yield (*path, name), member


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
            BlamedRule(rule_id=rule_id, fields=sorted(fields[rule_id], key=lambda field: field.path))
            for rule_id in ids
        ],
        revisions=[changes[named] for named in sorted({*result.seqs.values()}, reverse=True)],
    )


def _field(result: Blame, place: Place) -> BlamedField:
    return BlamedField(
        path=place[1], label=label_of_field(place[1]), seq=result.seqs[place], at_most=place in result.unknown
    )
