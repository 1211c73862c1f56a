"""Put the edits of several recommendations into one ruleset."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from analytics.advice.proposal import apply_edits, new_rule_id

if TYPE_CHECKING:
    from analytics.advice.proposal import RuleEdit

    Document = Mapping[str, Any]


class Exclusive(Exception):
    """Two groups of edits want different things of one rule.

    Attributes:
        first, second: the places of the groups.
        rule_id: the rule.
    """

    def __init__(self, first: int, second: int, rule_id: str) -> None:
        super().__init__(f"{first} and {second}: {rule_id}")
        self.first, self.second, self.rule_id = first, second, rule_id


def combine_edits(rules: Sequence[Document], groups: Sequence[Sequence[RuleEdit]]) -> list[Document]:
    """Return the rules after all groups of edits. Each group alone fits ``rules``.

    A field of a rule that one group changes is as that group wants it. Targets that several groups add to a
    rule, or take from it, are all added and taken. A rule that several add or move in the same way is added
    or moved once.

    Raises:
        Exclusive: two groups change a field, or add or move a rule, in different ways; or one removes a rule
            that the other changes, moves or puts another one before.
    """
    combined = _Combined(rules)
    for place, edits in enumerate(groups):
        combined.add(place, edits)
    return combined.rules()


def with_own_ids(rules: Sequence[Document], groups: Sequence[Sequence[RuleEdit]]) -> list[list[RuleEdit]]:
    """Return the groups with other ids for rules that they add, where an earlier group adds another rule.

    Each group was made for itself, and an id is made of the first letters of a statement.
    """
    taken = {rule["id"] for rule in rules}
    added: dict[str, Any] = {}
    renamed = []
    for edits in groups:
        own = {edit.rule_id: edit.rule for edit in edits if edit.op == "insert"}
        names = {
            rule_id: new_rule_id(rule_id, {*taken, *added, *own})
            for rule_id, rule in own.items()
            if added.get(rule_id, rule) != rule
        }
        renamed.append([_rename(edit, names) for edit in edits] if names else list(edits))
        added |= {edit.rule_id: edit.rule for edit in renamed[-1] if edit.op == "insert"}
    return renamed


def _rename(edit: RuleEdit, names: Mapping[str, str]) -> RuleEdit:
    rule_id = names.get(edit.rule_id, edit.rule_id)
    rule: Any = edit.rule
    if rule is not None:
        targets = [names.get(target, target) for target in rule.get("invalidateRules", ())]
        rule = {**rule, "id": rule_id, "invalidateRules": targets}
    before = names.get(edit.before, edit.before) if isinstance(edit.before, str) else edit.before
    return msgspec.structs.replace(edit, rule_id=rule_id, before=before, rule=rule)


class _Combined:
    def __init__(self, rules: Sequence[Document]) -> None:
        self._base = {rule["id"]: rule for rule in rules}
        self._placed = list(rules)
        self._changed: dict[str, Document] = {}
        #: Which group changed a field of a rule, and which groups need a rule to stay.
        self._owners: dict[tuple[str, str], int] = {}
        self._users: defaultdict[str, list[int]] = defaultdict(list)
        #: The first edit that adds, removes or moves a rule, with its group.
        self._moves: dict[str, tuple[int, RuleEdit]] = {}

    def add(self, place: int, edits: Sequence[RuleEdit]) -> None:
        """Add the edits of the next group."""
        for edit in edits:
            named = [edit.before] if isinstance(edit.before, str) else []
            self._use(place, named if edit.op == "remove" else [edit.rule_id, *named])
            if edit.op != "replace":
                self._move(place, edit)
        for rule in apply_edits(self._base.values(), edits):
            before = self._base.get(rule["id"])
            if before is None:
                first, _ = self._moves[rule["id"]]
                if self._changed.setdefault(rule["id"], rule) != rule:
                    raise Exclusive(first, place, rule["id"])
            elif rule != before:
                self._change(place, before, rule)

    def rules(self) -> list[Document]:
        """Return the rules after all groups."""
        return [self._changed.get(rule["id"], rule) for rule in self._placed]

    def _use(self, place: int, names: Iterable[str]) -> None:
        for rule_id in names:
            first, edit = self._moves.get(rule_id, (place, None))
            if edit is not None and edit.op == "remove":
                raise Exclusive(first, place, rule_id)
            self._users[rule_id].append(place)

    def _move(self, place: int, edit: RuleEdit) -> None:
        first, before = self._moves.setdefault(edit.rule_id, (place, edit))
        if first != place:
            if before != edit:
                raise Exclusive(first, place, edit.rule_id)
            return
        if edit.op == "remove":
            for user in self._users[edit.rule_id]:
                if user != place:
                    raise Exclusive(user, place, edit.rule_id)
        edit.apply(self._placed)

    def _change(self, place: int, before: Document, after: Document) -> None:
        rule_id = before["id"]
        now = self._changed[rule_id] = dict(self._changed.get(rule_id, before))
        for name in {**before, **after}:
            old, new = before.get(name), after.get(name)
            if new == old or new == now.get(name):
                continue
            first = self._owners.setdefault((rule_id, name), place)
            if first == place:
                now[name] = new
            elif name == "invalidateRules":
                now[name] = _merge(old or [], now.get(name) or [], new or [])
            else:
                raise Exclusive(first, place, rule_id)


def _merge(base: Iterable[str], first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Return the names that both have, and those that one of them adds."""
    old = set(base)
    kept = [name for name in first if name in second or name not in old]
    return kept + [name for name in second if name not in old and name not in first]
