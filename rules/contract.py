"""What others are told of the language of rules: schemas, and words to complete. Contract: Cache rules."""

from __future__ import annotations

from typing import Any, Final

from rules.conditions.keys import (
    COMBINATORS,
    CONDITION_KEYS,
    IGNORE_CASE,
    MAX_DEPTH,
    OPERATORS,
    Kind,
    OperatorSpec,
    Shape,
)
from rules.language import RULE_FIELDS, VARY_COLUMNS, Action

_NAMES: Final = {
    Kind.TEXT: "TextOperators",
    Kind.NUMBER: "NumberOperators",
    Kind.BOOL: "BooleanOperators",
    Kind.TABLES: "TablesOperators",
    Kind.IP: "AddressOperators",
}
_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_SCALARS: Final = {Kind.NUMBER: {"type": "number"}, Kind.BOOL: {"type": "boolean"}}
#: Forbids other members, as ``False`` does. Generated clients drop what ``False`` forbids without a word, so
#: that a misspelt condition would be no condition; with this they keep it, and the service refuses it.
NOTHING_ELSE: Final[dict[str, Any]] = {"not": {}}
#: Documents that people write by hand, in which a dropped member changes what the rules do.
_WRITTEN_BY_HAND: Final = ("Rule", "RuleRequest", "TenantRules", "TenantRulesRequest", "CheckedRulesRequest")
_CONDITIONS: Final = {"$ref": "#/components/schemas/Conditions"}
#: The value of a request, by the kind of its key. Null is the same as absent.
_VALUES: Final[dict[Kind, dict[str, Any]]] = {
    Kind.TEXT: {"type": "string", "nullable": True},
    Kind.IP: {"type": "string", "nullable": True},
    Kind.BOOL: {"type": "boolean", "nullable": True},
    Kind.NUMBER: {"type": "integer", "nullable": True},
    Kind.TABLES: {"oneOf": [{"type": "array", "items": {}}, {"type": "string", "nullable": True}]},
}


def rule_words() -> list[tuple[str, str]]:
    """Return the words that an editor completes: fields, actions, keys and operators, each with its kind."""
    return [
        *((name, "field") for name in RULE_FIELDS),
        *((action.value, "action") for action in Action),
        *((name, "condition key") for name in CONDITION_KEYS),
        *((name, "combines conditions") for name in COMBINATORS),
        *((operator.value, "operator") for operator in OPERATORS),
        (IGNORE_CASE, "operator"),
    ]


def rule_schemas() -> dict[str, Any]:
    """Return the schemas by name: `Conditions`, the operators of each kind of key, `RequestColumns`."""
    return {
        "Conditions": _conditions(),
        **{name: _operators(kind) for kind, name in _NAMES.items()},
        "RequestColumns": {
            "type": "object",
            "description": "A request: columns of `proxy_logs` that rules test or vary by. Absent is null.",
            "properties": {
                **{
                    key.name: {**_VALUES[key.kind], "description": key.meaning}
                    for key in CONDITION_KEYS.values()
                },
                **{
                    column: {**_VALUES[Kind.TEXT], "description": "a column that results can vary by"}
                    for column in VARY_COLUMNS
                    if column not in CONDITION_KEYS
                },
            },
            "additionalProperties": False,
        },
    }


def forbid_other_members(schemas: dict[str, Any]) -> None:
    """Forbid other members of rules, in a way that generated clients pass on to the service."""
    for name in _WRITTEN_BY_HAND:
        schemas[name]["additionalProperties"] = NOTHING_ELSE


def _conditions() -> dict[str, Any]:
    return {
        "type": "object",
        "description": "All members must hold; none matches every request. "
        f"`all`, `any` and `not` nest up to {MAX_DEPTH} deep.",
        "properties": {
            "all": {"type": "array", "items": _CONDITIONS, "description": "Each of these must hold."},
            "any": {"type": "array", "items": _CONDITIONS, "description": "One of these must hold."},
            "not": {"allOf": [_CONDITIONS], "description": "This must not hold."},
            **{
                key.name: {
                    "oneOf": [_scalar(key.kind), {"$ref": f"#/components/schemas/{_NAMES[key.kind]}"}],
                    "description": f"{key.meaning}. A plain value means `eq`.",
                }
                for key in CONDITION_KEYS.values()
            },
        },
        "additionalProperties": NOTHING_ELSE,
    }


def _operators(kind: Kind) -> dict[str, Any]:
    """Return the schema of an object of the operators that fit a kind of keys."""
    properties = {
        operator.value: {**_operand(spec, kind), "description": spec.meaning}
        for operator, spec in OPERATORS.items()
        if kind in spec.kinds
    }
    if kind in {Kind.TEXT, Kind.IP, Kind.TABLES}:
        properties[IGNORE_CASE] = {"type": "boolean", "description": "Texts are compared in any case."}
    return {
        "type": "object",
        "description": "Operators; each must hold.",
        "minProperties": 1,
        "properties": properties,
        "additionalProperties": NOTHING_ELSE,
    }


def _scalar(kind: Kind) -> dict[str, Any]:
    return _SCALARS.get(kind, _TEXT)


def _operand(spec: OperatorSpec, kind: Kind) -> dict[str, Any]:
    match spec.shape:
        case Shape.SCALAR:
            return _scalar(kind)
        case Shape.SCALARS:
            return {"type": "array", "items": _scalar(kind)}
        case Shape.BOOLEAN:
            return {"type": "boolean"}
        case Shape.TEXT:
            return _TEXT
        case Shape.NUMBER:
            return {"type": "number"}
        case Shape.TEXTS:
            return _TEXTS
        case Shape.TEXT_OR_TEXTS:
            return {"oneOf": [_TEXT, _TEXTS]}
