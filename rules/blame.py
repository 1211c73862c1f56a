"""Find the revision that last changed each value of a ruleset. Contract: Change history. No Django."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from accounts.diff import equal_values
from rules.diff import is_reordered
from rules.json_text import is_object, join_pointer
from tenantadmin.lib.core.work import check_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

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
