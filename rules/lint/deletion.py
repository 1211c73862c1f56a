"""Find the rules that a new ruleset removes, and what still refers to them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rules.json_text import is_array
from rules.language import rule_ids
from rules.lint.nodes import Unnamed, read_node

if TYPE_CHECKING:
    from rules.json_text import JsonObject, Path


@dataclass(frozen=True, slots=True)
class Reference:
    """One element of ``invalidateRules``. ``referrer`` names the rule that contains it."""

    referrer: str
    path: Path


@dataclass(frozen=True, slots=True)
class RemovedRule(Unnamed):
    """A rule that the stored ruleset has and the new one does not."""

    id: str
    references: tuple[Reference, ...]
    has_active_marker: bool
    confirmed: bool


def find_removed(
    *,
    stored_rules: Sequence[JsonObject],
    new_rules: object,
    active_marker_targets: Collection[str],
    confirmed: Collection[str],
) -> Iterator[RemovedRule]:
    """Yield the removed rules, sorted by id."""
    removed = set(rule_ids(stored_rules)) - set(rule_ids(new_rules))
    references: dict[str, list[Reference]] = {rule_id: [] for rule_id in removed}
    for target, reference in _find_references(new_rules) if removed else ():
        if target in removed:
            references[target].append(reference)
    for rule_id in sorted(removed):
        yield RemovedRule(
            rule_id,
            tuple(references[rule_id]),
            has_active_marker=rule_id in active_marker_targets,
            confirmed=rule_id in confirmed,
        )


def _find_references(rules: object) -> Iterator[tuple[str, Reference]]:
    for index, rule in enumerate(rules if is_array(rules) else ()):
        node = read_node(rule, index)
        for position, target in enumerate(node.targets):
            if isinstance(target, str):
                referrer = node.id or f"rule {index + 1} in the list"
                yield target, Reference(referrer, (*node.path, "invalidateRules", position))
