"""Rules as documents and as values.

Contract: "Cache rules (ruleset)". A ruleset is stored complete: every default is written out, so that
what GET returns, what history keeps and what the Gateway obeys is one text, which no later change of a
default alters (docs/decisions/0008-rule-language.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from rules.conditions.parse import parse_conditions
from rules.json_text import is_array, is_object, read_integer
from rules.language.fields import DEFAULT_TTL_SECONDS, RULE_FIELDS, FieldType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rules.conditions.model import All

#: What may stand beside ``rules`` because it was read that way. Lint checks the types; whether the values are
#: those of the stored ruleset is the writer's to say.
READ_ONLY_PROPERTIES: Final = {
    "tenantId": FieldType.STRING,
    "cacheBust": FieldType.STRING,
    "seq": FieldType.INTEGER,
    "modifiedAt": FieldType.STRING,
}


class Action(StrEnum):
    """What a rule does with a statement that it decides."""

    CACHE = "cache"
    BYPASS = "bypass"
    DENY = "deny"
    INVALIDATE = "invalidate"


def default_action(rule: Mapping[str, object]) -> Action:
    """The action of a rule that names none."""
    return Action.INVALIDATE if "invalidateRules" in rule else Action.CACHE


def complete_rule(rule: Mapping[str, object]) -> dict[str, object]:
    """Write out the defaults of a rule that has passed lint.

    ``description``, ``staleWhileRevalidate`` and ``invalidateRules`` stay absent where they were, for
    their absence is their default. Conditions stay as sent.
    """
    completed: dict[str, object] = {
        "id": rule["id"],
        "name": rule["id"],
        "enabled": True,
        "action": default_action(rule).value,
        "conditions": {},
        "ttlSeconds": DEFAULT_TTL_SECONDS,
        "requireInvalidation": False,
    } | dict(rule)
    for name in ("ttlSeconds", "staleWhileRevalidate"):
        if name in completed:
            completed[name] = read_integer(completed[name])
    return {name: completed[name] for name in RULE_FIELDS if name in completed}


@dataclass(frozen=True)
class Rule:
    """A rule, read. Durations in seconds."""

    id: str
    name: str
    enabled: bool
    action: Action
    conditions: Mapping[str, object]
    ttl_seconds: int
    stale_while_revalidate: int | None
    invalidate_rules: tuple[str, ...]
    require_invalidation: bool

    @cached_property
    def condition(self) -> All:
        """The conditions, read."""
        return parse_conditions(self.conditions)


def read_rule(document: Mapping[str, object]) -> Rule:
    """Read a rule that has passed lint, complete or not.

    Raises:
        KeyError, TypeError, ValueError: for a rule that has not.
    """
    complete: dict[str, Any] = complete_rule(document)
    return Rule(
        id=complete["id"],
        name=complete["name"],
        enabled=complete["enabled"],
        action=Action(complete["action"]),
        conditions=complete["conditions"],
        ttl_seconds=complete["ttlSeconds"],
        stale_while_revalidate=complete.get("staleWhileRevalidate"),
        # Named twice, a target is still invalidated once.
        invalidate_rules=tuple(dict.fromkeys(complete.get("invalidateRules", ()))),
        require_invalidation=complete["requireInvalidation"],
    )


def read_rules(documents: Iterable[Mapping[str, object]]) -> tuple[Rule, ...]:
    """Read the rules of a stored ruleset, in order."""
    return tuple(read_rule(document) for document in documents)


def rule_ids(rules: object) -> list[str]:
    """The ids of rules in any state, unlinted ones too: what has no string for an id is passed over."""
    if not is_array(rules):
        return []
    ids = (rule.get("id") for rule in rules if is_object(rule))
    return [rule_id for rule_id in ids if isinstance(rule_id, str)]
