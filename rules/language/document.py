"""Complete rules with their defaults, and read them.

Contract: "Cache rules (ruleset)". A ruleset is stored with all defaults written out. So GET, history and the
Gateway have the same text, and a later change of a default does not affect stored rules
(docs/decisions/0008-rule-language.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from rules.conditions.parse import parse_conditions
from rules.json_text import is_array, is_object, read_integer
from rules.language.fields import DEFAULT_TTL_SECONDS, RULE_FIELDS, USER_COLUMNS, FieldType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rules.conditions.model import All

#: Properties of a ruleset besides ``rules``. A client may send back what it has read. Lint checks only their
#: types; a write compares them with the stored ruleset.
READ_ONLY_PROPERTIES: Final = {
    "tenantId": FieldType.STRING,
    "cacheBust": FieldType.STRING,
    "seq": FieldType.INTEGER,
    "modifiedAt": FieldType.STRING,
}


class Action(StrEnum):
    """The action of a rule on a statement."""

    CACHE = "cache"
    BYPASS = "bypass"
    DENY = "deny"
    INVALIDATE = "invalidate"


@dataclass(frozen=True, slots=True)
class CachingDefaults:
    """What a tenant's configuration says of caching (``defaults``). Contract: TenantConfig.

    Attributes:
        enabled: False if the Gateway declines every cache rule.
        ttl_seconds: written into rules that have no TTL.
    """

    enabled: bool = True
    ttl_seconds: int = DEFAULT_TTL_SECONDS

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> CachingDefaults:
        """Return the defaults of a stored configuration."""
        return cls(config["defaults"]["cacheEnabled"], config["defaults"]["ttlSeconds"])


def default_action(rule: Mapping[str, object]) -> Action:
    """Return the action of a rule without ``action``."""
    return Action.INVALIDATE if "invalidateRules" in rule else Action.CACHE


def complete_rule(rule: Mapping[str, object], *, ttl_seconds: int = DEFAULT_TTL_SECONDS) -> dict[str, object]:
    """Return a rule, which has passed lint, with its defaults written out.

    ``description``, ``staleWhileRevalidate``, ``varyBy`` and ``invalidateRules`` may stay absent.
    Conditions are not changed.
    """
    completed: dict[str, object] = {
        "id": rule["id"],
        "name": rule["id"],
        "enabled": True,
        "action": default_action(rule).value,
        "conditions": {},
        "ttlSeconds": ttl_seconds,
        "requireInvalidation": False,
    } | dict(rule)
    for name in ("ttlSeconds", "staleWhileRevalidate"):
        if name in completed:
            completed[name] = read_integer(completed[name])
    return {name: completed[name] for name in RULE_FIELDS if name in completed}


@dataclass(frozen=True)
class Rule:
    """A rule with its defaults. Durations are in seconds. ``vary_by`` is None if the rule does not say."""

    id: str
    name: str
    enabled: bool
    action: Action
    conditions: Mapping[str, object]
    ttl_seconds: int
    stale_while_revalidate: int | None
    invalidate_rules: tuple[str, ...]
    require_invalidation: bool
    vary_by: tuple[str, ...] | None = None

    @cached_property
    def condition(self) -> All:
        """The conditions as a tree."""
        return parse_conditions(self.conditions)

    @property
    def is_shared(self) -> bool:
        """True if the rule can serve the result of one user to another."""
        return self.enabled and self.action is Action.CACHE and USER_COLUMNS.isdisjoint(self.vary_by or ())


def read_rule(document: Mapping[str, object]) -> Rule:
    """Read a rule that has passed lint. It may lack defaults.

    Raises:
        KeyError, TypeError, ValueError: the rule has not passed lint.
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
        # A target that is named more than once is invalidated once.
        invalidate_rules=tuple(dict.fromkeys(complete.get("invalidateRules", ()))),
        require_invalidation=complete["requireInvalidation"],
        vary_by=tuple(complete["varyBy"]) if "varyBy" in complete else None,
    )


def read_rules(documents: Iterable[Mapping[str, object]]) -> tuple[Rule, ...]:
    """Read the rules of a stored ruleset, in order."""
    return tuple(read_rule(document) for document in documents)


def rule_ids(rules: object) -> list[str]:
    """Return the ids of rules that may not have passed lint. Rules without a text as id are left out."""
    if not is_array(rules):
        return []
    ids = (rule.get("id") for rule in rules if is_object(rule))
    return [rule_id for rule_id in ids if isinstance(rule_id, str)]
