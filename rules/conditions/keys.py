"""The condition keys, which are columns of ``proxy_logs``, and the operators with their kinds and operands.

Contract: "Tenants and configuration", docs/decisions/0008-rule-language.md. The app ``rules`` does not import
``logs``, so the names are repeated here; a test compares both.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rules.json_text import is_array, is_number


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


class Operator(StrEnum):
    """The name of an operator in a document."""

    EQ = "eq"
    NE = "ne"
    IN = "in"
    NOT_IN = "notIn"
    EXISTS = "exists"
    CONTAINS = "contains"
    STARTS_WITH = "startsWith"
    ENDS_WITH = "endsWith"
    REGEX = "regex"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    CONTAINS_ANY = "containsAny"
    CONTAINS_ALL = "containsAll"
    CIDR = "cidr"

    #: Conditions are hashed often, and Enum's own hash function is slow.
    __hash__ = str.__hash__


#: Modifies the operators in the same object.
IGNORE_CASE: Final = "ignoreCase"


class Shape(StrEnum):
    """The type of an operand."""

    SCALAR = "scalar"
    SCALARS = "array of scalars"
    BOOLEAN = "boolean"
    TEXT = "text"
    NUMBER = "number"
    TEXTS = "array of texts"
    TEXT_OR_TEXTS = "text or array of texts"


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """The kinds of keys that an operator fits, the type of its operand, and its meaning for docs/rules.md."""

    kinds: frozenset[Kind]
    shape: Shape
    meaning: str


_ALL: Final = frozenset(Kind)

_TEXT: Final = frozenset({Kind.TEXT, Kind.IP})

_NUMBER: Final = frozenset({Kind.NUMBER})

_TABLES: Final = frozenset({Kind.TABLES})

OPERATORS: Final[dict[Operator, OperatorSpec]] = {
    Operator.EQ: OperatorSpec(_ALL, Shape.SCALAR, "equals the operand"),
    Operator.NE: OperatorSpec(_ALL, Shape.SCALAR, "differs from the operand, or is null"),
    Operator.IN: OperatorSpec(_ALL, Shape.SCALARS, "equals one of the operands"),
    Operator.NOT_IN: OperatorSpec(_ALL, Shape.SCALARS, "equals none of the operands, or is null"),
    Operator.EXISTS: OperatorSpec(_ALL, Shape.BOOLEAN, "is not null (`true`) or is null (`false`)"),
    Operator.CONTAINS: OperatorSpec(_TEXT, Shape.TEXT, "contains the operand"),
    Operator.STARTS_WITH: OperatorSpec(_TEXT, Shape.TEXT, "starts with the operand"),
    Operator.ENDS_WITH: OperatorSpec(_TEXT, Shape.TEXT, "ends with the operand"),
    Operator.REGEX: OperatorSpec(_TEXT, Shape.TEXT, "the RE2 pattern is found anywhere in it"),
    Operator.GT: OperatorSpec(_NUMBER, Shape.NUMBER, "is greater than the operand"),
    Operator.GTE: OperatorSpec(_NUMBER, Shape.NUMBER, "is greater than the operand or equal"),
    Operator.LT: OperatorSpec(_NUMBER, Shape.NUMBER, "is less than the operand"),
    Operator.LTE: OperatorSpec(_NUMBER, Shape.NUMBER, "is less than the operand or equal"),
    Operator.CONTAINS_ANY: OperatorSpec(_TABLES, Shape.TEXTS, "at least one pattern matches a table"),
    Operator.CONTAINS_ALL: OperatorSpec(_TABLES, Shape.TEXTS, "every pattern matches a table"),
    Operator.CIDR: OperatorSpec(
        frozenset({Kind.IP}), Shape.TEXT_OR_TEXTS, "is an address in the network, or in one of them"
    ),
}

#: Names of operators in other languages, for suggestions.
OPERATOR_ALIASES: Final[dict[str, Operator]] = {
    "=": Operator.EQ,
    "==": Operator.EQ,
    "equals": Operator.EQ,
    "is": Operator.EQ,
    "!=": Operator.NE,
    "<>": Operator.NE,
    "neq": Operator.NE,
    "not": Operator.NE,
    "nin": Operator.NOT_IN,
    "not_in": Operator.NOT_IN,
    "like": Operator.CONTAINS,
    "matches": Operator.REGEX,
    "pattern": Operator.REGEX,
    "prefix": Operator.STARTS_WITH,
    "suffix": Operator.ENDS_WITH,
    ">": Operator.GT,
    ">=": Operator.GTE,
    "<": Operator.LT,
    "<=": Operator.LTE,
    "min": Operator.GTE,
    "max": Operator.LTE,
}


def find_operator(name: str) -> Operator | None:
    """Return the operator with this name, or None."""
    return _BY_NAME.get(name)


_BY_NAME: Final = {operator.value: operator for operator in Operator}


def is_scalar_of(kind: Kind, value: object) -> bool:
    """Return True if keys of this kind can be compared with a value. For null, use ``exists``."""
    match kind:
        case Kind.BOOL:
            return isinstance(value, bool)
        case Kind.NUMBER:
            return is_number(value)
        case _:
            return isinstance(value, str)


_SCALAR_NAMES: Final = {Kind.BOOL: "a boolean", Kind.NUMBER: "a number"}


def describe_shape(key: ConditionKey, operator: Operator) -> str:
    """Return the type of the operand for a message: ``a number``, ``an array of strings``."""
    scalar = _SCALAR_NAMES.get(key.kind, "a string")
    match OPERATORS[operator].shape:
        case Shape.SCALAR:
            return scalar
        case Shape.SCALARS:
            return f"an array of {scalar.removeprefix('a ')}s"
        case Shape.BOOLEAN:
            return "a boolean"
        case Shape.TEXT:
            return "a string"
        case Shape.NUMBER:
            return "a number"
        case Shape.TEXTS:
            return "an array of strings"
        case Shape.TEXT_OR_TEXTS:
            return "a string or an array of strings"


def find_wrong_elements(key: ConditionKey, operator: Operator, operand: object) -> list[int] | None:
    """Return the indexes of the elements of an operand that have a wrong type.

    Return None if the operand itself has a wrong type, and an empty list if it is valid.
    """
    match OPERATORS[operator].shape:
        case Shape.SCALAR:
            return [] if is_scalar_of(key.kind, operand) else None
        case Shape.BOOLEAN:
            return [] if isinstance(operand, bool) else None
        case Shape.NUMBER:
            return [] if is_number(operand) else None
        case Shape.TEXT:
            return [] if isinstance(operand, str) else None
        case Shape.SCALARS:
            kind = key.kind
        case Shape.TEXTS:
            kind = Kind.TEXT
        case Shape.TEXT_OR_TEXTS:
            if isinstance(operand, str):
                return []
            kind = Kind.TEXT
    if not is_array(operand):
        return None
    return [index for index, element in enumerate(operand) if not is_scalar_of(kind, element)]
