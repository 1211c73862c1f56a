"""The condition keys: columns of ``proxy_logs`` that describe the request, so rules can be tested on the log.

Contract: "Tenants and configuration", docs/decisions/0008-rule-language.md. The app ``rules`` does not import
``logs``, so the names are repeated here; a test compares both.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """The kind of a key's values. It decides which operators fit the key."""

    TEXT = "text"
    NUMBER = "number"
    BOOL = "bool"
    TABLES = "tables"
    IP = "ip"


@dataclass(frozen=True, slots=True, eq=False)
class ConditionKey:
    """One condition key. If it is ``caller_supplied``, it is a request header, which the caller can forge."""

    name: str
    kind: Kind
    meaning: str
    caller_supplied: bool = False

    @property
    def is_textual(self) -> bool:
        """True if values are compared as text, so that ``ignoreCase`` is allowed."""
        return self.kind in {Kind.TEXT, Kind.IP, Kind.TABLES}


_KEYS: Final = (
    ConditionKey("standardizedSql", Kind.TEXT, "the statement, normalized, literals removed"),
    ConditionKey("statementType", Kind.TEXT, "`SELECT`, `INSERT` and so on"),
    ConditionKey("tables", Kind.TABLES, "the names of the tables that the statement refers to"),
    ConditionKey("tableCount", Kind.NUMBER, "how many tables the statement refers to"),
    ConditionKey("isReadOnly", Kind.BOOL, "the statement only reads"),
    ConditionKey("isDataChange", Kind.BOOL, "the statement modifies data"),
    ConditionKey("isDDL", Kind.BOOL, "the statement changes the schema"),
    ConditionKey("hasParameters", Kind.BOOL, "the statement is parameterized"),
    ConditionKey("hasNonDeterministicFunctions", Kind.BOOL, "the statement calls functions such as `now()`"),
    ConditionKey("cacheOverride", Kind.TEXT, "`cache` or `nocache` from a comment in the statement"),
    ConditionKey("userName", Kind.TEXT, "display name of the consumer"),
    ConditionKey("clientIp", Kind.IP, "the client's address, resolved by the Gateway"),
    ConditionKey("userAgent", Kind.TEXT, "the `User-Agent` header, verbatim", caller_supplied=True),
    ConditionKey("host", Kind.TEXT, "the `Host` header, verbatim", caller_supplied=True),
    ConditionKey("origin", Kind.TEXT, "the `Origin` header, verbatim", caller_supplied=True),
    ConditionKey("referer", Kind.TEXT, "the `Referer` header, verbatim", caller_supplied=True),
    ConditionKey("operationType", Kind.TEXT, "the kind of operation"),
    ConditionKey("adapterType", Kind.TEXT, "`databricks`, `snowflake` or `postgresql`"),
    ConditionKey("serverHostname", Kind.TEXT, "host of the warehouse"),
)

#: All condition keys by name, in the order of docs/rules.md.
CONDITION_KEYS: Final[dict[str, ConditionKey]] = {key.name: key for key in _KEYS}

#: The keys that combine conditions instead of testing a column.
COMBINATORS: Final = ("all", "any", "not")

#: Maximum depth of nested combinators.
MAX_DEPTH: Final = 8
