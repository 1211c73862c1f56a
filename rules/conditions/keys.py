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
    """One condition key.

    Attributes:
        said: what the log says about a request, in the words of a sentence.
        caller_supplied: it is a request header, which the caller can forge.
        is_optional: a request may be without it, so null is a value too.
    """

    name: str
    kind: Kind
    meaning: str
    said: str
    caller_supplied: bool = False
    is_optional: bool = False

    @property
    def is_textual(self) -> bool:
        """True if values are compared as text, so that ``ignoreCase`` is allowed."""
        return self.kind in {Kind.TEXT, Kind.IP, Kind.TABLES}


_KEYS: Final = (
    ConditionKey(
        "standardizedSql", Kind.TEXT, "the statement, normalized, literals removed", "the statement"
    ),
    ConditionKey("statementType", Kind.TEXT, "`SELECT`, `INSERT` and so on", "the type of the statement"),
    ConditionKey(
        "tables",
        Kind.TABLES,
        "the names of the tables that the statement refers to",
        "the tables",
        is_optional=True,
    ),
    ConditionKey(
        "tableCount", Kind.NUMBER, "how many tables the statement refers to", "the number of tables"
    ),
    ConditionKey("isReadOnly", Kind.BOOL, "the statement only reads", "whether it only reads"),
    ConditionKey("isDataChange", Kind.BOOL, "the statement modifies data", "whether it changes data"),
    ConditionKey("isDDL", Kind.BOOL, "the statement changes the schema", "whether it changes a schema"),
    ConditionKey("hasParameters", Kind.BOOL, "the statement is parameterized", "whether it has parameters"),
    ConditionKey(
        "hasNonDeterministicFunctions",
        Kind.BOOL,
        "the statement calls functions such as `now()`",
        "whether it calls functions such as now()",
    ),
    ConditionKey(
        "cacheOverride",
        Kind.TEXT,
        "`cache` or `nocache` from a comment in the statement",
        "whether a comment is for or against the cache",
        is_optional=True,
    ),
    ConditionKey("userName", Kind.TEXT, "display name of the consumer", "the user"),
    ConditionKey(
        "clientIp", Kind.IP, "the client's address, resolved by the Gateway", "the client’s address"
    ),
    ConditionKey(
        "userAgent",
        Kind.TEXT,
        "the `User-Agent` header, verbatim",
        "the client application",
        caller_supplied=True,
    ),
    ConditionKey(
        "host", Kind.TEXT, "the `Host` header, verbatim", "the host that was asked", caller_supplied=True
    ),
    ConditionKey(
        "origin",
        Kind.TEXT,
        "the `Origin` header, verbatim",
        "the origin",
        caller_supplied=True,
        is_optional=True,
    ),
    ConditionKey(
        "referer",
        Kind.TEXT,
        "the `Referer` header, verbatim",
        "the referer",
        caller_supplied=True,
        is_optional=True,
    ),
    ConditionKey("operationType", Kind.TEXT, "the kind of operation", "the kind of operation"),
    ConditionKey(
        "adapterType", Kind.TEXT, "`databricks`, `snowflake` or `postgresql`", "the kind of warehouse"
    ),
    ConditionKey("serverHostname", Kind.TEXT, "host of the warehouse", "the host of the warehouse"),
)

#: All condition keys by name, in the order of docs/rules.md.
CONDITION_KEYS: Final[dict[str, ConditionKey]] = {key.name: key for key in _KEYS}

#: The keys that combine conditions instead of testing a column.
COMBINATORS: Final = ("all", "any", "not")

#: Maximum depth of nested combinators.
MAX_DEPTH: Final = 8
