"""The parts of a ruleset that checks look at.

The document is walked once. Most nodes may contain any JSON, so that all problems are found at once. After
the walk, checks get :class:`ValidRule` for each rule with valid conditions, and one :class:`RuleList`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from rules.conditions.implication import matches_everything
from rules.conditions.keys import (
    CONDITION_KEYS,
    IGNORE_CASE,
    MAX_DEPTH,
    OPERATORS,
    ConditionKey,
    Operator,
    find_operator,
)
from rules.conditions.model import iterate_tests, parse_conditions
from rules.conditions.normal import Literal, Normal, normalize
from rules.json_text import is_array, is_object, read_integer
from rules.language import DEFAULT_TTL_SECONDS, RULE_FIELDS, USER_COLUMNS, Action, default_action
from rules.tables.warehouse import ANY_TABLES, WarehouseTables

if TYPE_CHECKING:
    from rules.conditions.model import All, Test
    from rules.json_text import JsonObject, Path

#: The operators that name what a statement has.
_NAMING: Final = {
    *(Operator.EQ, Operator.IN, Operator.CONTAINS, Operator.STARTS_WITH, Operator.ENDS_WITH),
    *(Operator.CONTAINS_ANY, Operator.CONTAINS_ALL),
}
#: What comes before an operand of a condition key in a statement.
_BEFORE_WORDS: Final = {"standardizedSql": "", "tables": "FROM "}
RULE_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_ACTIONS: Final = {action.value: action for action in Action}


class Unnamed:
    """A node that all checks of its type are called for."""

    __slots__ = ()

    @property
    def names(self) -> Iterable[str]:
        """Nothing that a check could select."""
        return ()


@dataclass(frozen=True)
class Root(Unnamed):
    """The whole document."""

    value: JsonObject


@dataclass(slots=True)
class RuleNode:
    """One element of ``rules``. The value of an invalid field is None.

    Attributes:
        fields: all fields; empty if the element is not an object.
        action, ttl_seconds: the default if the field is absent.
        targets, vary_by: the elements of ``invalidateRules`` and ``varyBy``, of any type.
    """

    value: object
    index: int
    path: Path
    fields: JsonObject
    id: str | None
    enabled: bool
    action: Action | None
    ttl_seconds: int | None
    stale_while_revalidate: int | None
    targets: Sequence[object]
    vary_by: Sequence[object]

    @property
    def names(self) -> Iterable[str]:
        """The names of the fields."""
        return self.fields

    @property
    def lacks_targets(self) -> bool:
        """True if ``invalidateRules`` is absent or empty; False if it has a wrong type."""
        return self.fields.get("invalidateRules", []) == []

    @property
    def shares_results(self) -> bool:
        """True if the rule, when it is enabled, can serve the result of one user to another."""
        return self.action is Action.CACHE and USER_COLUMNS.isdisjoint(self.columns)

    @property
    def is_shared(self) -> bool:
        """True if the rule can serve the result of one user to another."""
        return self.enabled and self.shares_results

    @property
    def columns(self) -> tuple[str, ...]:
        """The texts in ``varyBy``."""
        return tuple(column for column in self.vary_by if isinstance(column, str))


def read_node(value: object, index: int, *, ttl_seconds: int = DEFAULT_TTL_SECONDS) -> RuleNode:
    """Read an element of ``rules``, which may be invalid. ``ttl_seconds`` is the default."""
    fields: JsonObject = value if is_object(value) else {}
    rule_id = fields.get("id")
    action = fields["action"] if "action" in fields else default_action(fields)
    targets, columns = fields.get("invalidateRules"), fields.get("varyBy")
    return RuleNode(
        value=value,
        index=index,
        path=("rules", index),
        fields=fields,
        id=rule_id if isinstance(rule_id, str) and RULE_ID.fullmatch(rule_id) else None,
        enabled=fields.get("enabled") is not False,
        action=_ACTIONS.get(action) if isinstance(action, str) else None,
        ttl_seconds=_read_bounded(fields, "ttlSeconds", default=ttl_seconds),
        stale_while_revalidate=_read_bounded(fields, "staleWhileRevalidate", default=None),
        targets=targets if is_array(targets) else (),
        vary_by=columns if is_array(columns) else (),
    )


def _read_bounded(fields: JsonObject, name: str, *, default: int | None) -> int | None:
    if name not in fields:
        return default
    field, value = RULE_FIELDS[name], read_integer(fields[name])
    if value is None or field.minimum is None or field.maximum is None:
        return None
    return value if field.minimum <= value <= field.maximum else None


@dataclass(slots=True)
class Group(Unnamed):
    """An object of conditions: ``conditions``, an element of ``all`` or ``any``, or the value of ``not``.

    ``depth`` is the number of combinators around it.
    """

    value: object
    depth: int
    path: Path


@dataclass(slots=True)
class Combinator(Unnamed):
    """The value of ``all`` or ``any``."""

    value: object
    path: Path


@dataclass(slots=True)
class Operators(Unnamed):
    """The object of operators of a condition key."""

    key: ConditionKey
    value: Mapping[str, object]
    path: Path


@dataclass(slots=True)
class Operation:
    """A known operator with its operand. A key's plain value is an ``eq`` at the path of the key."""

    key: ConditionKey
    operator: Operator
    operand: object
    path: Path
    ignore_case: bool = False

    @property
    def names(self) -> Iterable[str]:
        """The names of the key and of the operator."""
        return (self.key.name, self.operator)

    @property
    def fits(self) -> bool:
        """True if the operator fits the kind of the key."""
        return self.key.kind in OPERATORS[self.operator].kinds


ConditionNode = Group | Combinator | Operators | Operation


def walk_conditions(rule: RuleNode) -> Iterator[ConditionNode]:
    """Yield the nodes in the conditions of a rule. Groups beyond the depth limit are not entered."""
    conditions = rule.fields.get("conditions")
    if is_object(conditions):
        yield from _walk_group(Group(conditions, 0, (*rule.path, "conditions")))


def _walk_group(group: Group) -> Iterator[ConditionNode]:
    yield group
    if not is_object(group.value) or group.depth > MAX_DEPTH:
        return
    for name, value in group.value.items():
        path = (*group.path, name)
        if name == "not":
            yield from _walk_group(Group(value, group.depth + 1, path))
        elif name in {"all", "any"}:
            yield Combinator(value, path)
            for index, element in enumerate(value if is_array(value) else ()):
                yield from _walk_group(Group(element, group.depth + 1, (*path, index)))
        elif (key := CONDITION_KEYS.get(name)) is None:
            continue
        elif is_object(value):
            yield Operators(key, value, path)
            ignore_case = value.get(IGNORE_CASE) is True
            for operator_name, operand in value.items():
                if (operator := find_operator(operator_name)) is not None:
                    yield Operation(key, operator, operand, (*path, operator_name), ignore_case)
        else:
            yield Operation(key, Operator.EQ, value, path)


@dataclass(frozen=True)
class ValidRule(Unnamed):
    """A rule whose conditions have no errors, so that checks can compare what they mean."""

    rule: RuleNode

    @cached_property
    def condition(self) -> All:
        """The conditions as a tree."""
        conditions = self.rule.fields.get("conditions")
        return parse_conditions(conditions if is_object(conditions) else {})

    @cached_property
    def normal(self) -> Normal:
        """The normal form of the conditions; None if they never match."""
        return normalize(self.condition)

    @cached_property
    def matches_everything(self) -> bool:
        """True if the conditions match every statement, however they say it."""
        return matches_everything(self.condition)

    @property
    def path(self) -> Path:
        """The path of the conditions, or of the rule if it has none."""
        return (*self.rule.path, "conditions") if "conditions" in self.rule.fields else self.rule.path

    def key_path(self, test: Test) -> Path:
        """Return the path of the condition key of a test."""
        ends_at_key = test.path[-1] == test.key.name
        return (*self.path, *(test.path if ends_at_key else test.path[:-1]))

    def find_keys(self, names: Container[str], accepts: Callable[[Literal], bool]) -> list[Path]:
        """Return the paths of the keys among ``names`` with an accepted test. Each path is returned once."""
        paths = (
            self.key_path(test)
            for test, negated in iterate_tests(self.condition)
            if test.key.name in names and accepts(Literal(test, negated))
        )
        return list(dict.fromkeys(paths))

    def find_words(self, find: Callable[[str], str | None]) -> Iterator[tuple[Path, str]]:
        """Yield the paths of tests that select statements with a word that ``find`` finds, with the word."""
        for test, negated in iterate_tests(self.condition):
            before = _BEFORE_WORDS.get(test.key.name)
            if before is not None and test.operator in _NAMING and not negated:
                # One search for all is quick, however many they are.
                word = find(" ;".join(f"{before}{text}" for text in test.texts))
                if word is not None:
                    yield self.key_path(test), word


@dataclass(frozen=True)
class RuleList(Unnamed):
    """All rules in order, those with valid conditions, and what the tenant says of its tables."""

    rules: tuple[RuleNode, ...]
    valid: tuple[ValidRule, ...]
    tables: WarehouseTables = ANY_TABLES

    @cached_property
    def by_id(self) -> dict[str, RuleNode]:
        """The first rule with each id."""
        by_id: dict[str, RuleNode] = {}
        for rule in self.rules:
            if rule.id is not None:
                by_id.setdefault(rule.id, rule)
        return by_id
