"""The fields of a rule, their defaults, and the complete form in which rules are stored.

Contract: "Cache rules (ruleset)". A ruleset is stored with all defaults written out. So GET, history and the
Gateway have the same text, and a later change of a default does not affect stored rules
(docs/decisions/0008-rule-language.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from rules.conditions.model import parse_conditions
from rules.json_text import is_array, is_object, read_integer

if TYPE_CHECKING:
    from rules.conditions.model import All


class FieldType(StrEnum):
    """The JSON type of a field, as text for a message."""

    STRING = "a string"
    BOOLEAN = "a boolean"
    INTEGER = "an integer"
    OBJECT = "an object"
    IDS = "an array of rule ids"
    COLUMNS = "an array of columns"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a rule. ``minimum`` and ``maximum`` are inclusive. ``default`` is text for people."""

    name: str
    type: FieldType
    meaning: str
    default: str
    required: bool = False
    minimum: int | None = None
    maximum: int | None = None


DEFAULT_TTL_SECONDS: Final = 86_400

#: Columns of ``proxy_logs`` that a request carries, so that the key of a cached result can have their values.
VARY_COLUMNS: Final = (
    "userName",
    "userTokenHash",
    "sessionId",
    "serverHostname",
    "host",
    "clientIp",
    "operationType",
)

#: The columns that keep the results of one user from another.
USER_COLUMNS: Final = frozenset({"userName", "userTokenHash", "sessionId"})

_FIELDS: Final = (
    Field(
        "id", FieldType.STRING, "names the rule in logs, markers and references", "required", required=True
    ),
    Field("name", FieldType.STRING, "a name for people", "the `id`"),
    Field("description", FieldType.STRING, "free text", "absent"),
    Field("enabled", FieldType.BOOLEAN, "a disabled rule does not decide and does not fire", "`true`"),
    Field(
        "action",
        FieldType.STRING,
        "`cache`, `bypass`, `deny` or `invalidate`",
        "`invalidate` if `invalidateRules` is given, else `cache`",
    ),
    Field("conditions", FieldType.OBJECT, "when the rule matches", "`{}`, which matches everything"),
    Field(
        "ttlSeconds",
        FieldType.INTEGER,
        "how long a cached result, and a marker on this rule, is valid",
        f"`{DEFAULT_TTL_SECONDS}`",
        minimum=1,
        maximum=31_536_000,
    ),
    Field(
        "staleWhileRevalidate",
        FieldType.INTEGER,
        "how many seconds an expired result may be served while a fresh one is fetched",
        "absent: never",
        minimum=0,
        maximum=604_800,
    ),
    Field(
        "varyBy",
        FieldType.COLUMNS,
        "the columns of the request that a cached result depends on; `[]`: the same result for everybody",
        "absent: as `[]`",
    ),
    Field(
        "invalidateRules",
        FieldType.IDS,
        "the cache rules whose results become stale after a matching statement has succeeded",
        "absent: none",
    ),
    Field(
        "requireInvalidation",
        FieldType.BOOLEAN,
        "the statement is refused (`INVALIDATION_ERROR`) if its markers cannot be recorded",
        "`false`",
    ),
)

#: Every field of a rule by name, in the order in which rules are stored.
RULE_FIELDS: Final[dict[str, Field]] = {field.name: field for field in _FIELDS}

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
