"""The fields of a rule: types, bounds, defaults and meaning. Lint and docs/rules.md use this table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


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
