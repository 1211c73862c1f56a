"""Warnings about what conditions select, or do not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from rules.conditions.keys import CONDITION_KEYS, Operator
from rules.conditions.normal import NEVER
from rules.dialects.words import find_time
from rules.json_text import is_array, show_text
from rules.language import Action
from rules.lint import limits
from rules.lint.finding import Severity
from rules.lint.nodes import Operation, RuleList, RuleNode, ValidRule
from rules.lint.reach import find_wider
from rules.lint.registry import Context, Problem, declare
from rules.lint.spelling import MAX_NAMED, ask_nearest, find_other_spellings
from rules.tables.names import Likeness

if TYPE_CHECKING:
    from rules.conditions.normal import Conjunction, Literal
    from rules.json_text import Path
    from rules.lint.spelling import OtherSpellings
    from rules.tables.warehouse import WarehouseTables

MATCHES_EVERYTHING = declare(
    "matches-everything",
    Severity.WARNING,
    "The conditions of a rule match every statement. (For a deny rule, see `unconditional-deny`.)",
)


@MATCHES_EVERYTHING.check(ValidRule)
def check_matches_everything(node: ValidRule, _context: Context) -> Iterator[Problem]:
    """Warn about rules that match everything: conditions may have been forgotten."""
    if node.rule.action is not Action.DENY and node.matches_everything:
        yield Problem(node.path, "This rule matches every statement.")


TABLE_SPELLED_OTHERWISE = declare(
    "table-spelled-otherwise",
    Severity.WARNING,
    "The log of the last 28 days spells a table in a way that a negative condition, or an earlier bypass or "
    "deny rule, does not match. Checked by write and restore, and in drafts, not by validate.",
)
#: The operators that take one name, and those that take several.
_SEVERAL: Final = {Operator.EQ: Operator.IN, Operator.NE: Operator.NOT_IN}


@TABLE_SPELLED_OTHERWISE.check(RuleList)
def check_table_spelled_otherwise(node: RuleList, context: Context) -> Iterator[Problem]:
    """Warn about tables that are kept out of the cache in some of their spellings only."""
    if not node.tables.logged:
        return
    is_late = partial(context.has_used, limits.WARNINGS_SECONDS)
    for found in find_other_spellings(node.valid, node.tables, is_late=is_late):
        yield Problem(
            found.rule.key_path(found.test),
            f"The log of the last 28 days {_describe_names(found, node.tables)}. Conditions compare text, so "
            f"this one does not match. {_describe_cure(found)}",
        )
    if is_late():
        context.incomplete += [rule.rule.path for rule in node.valid[:1]]


def _describe_names(found: OtherSpellings, warehouse: WarehouseTables) -> str:
    said = []
    for name, text in islice(found.names.items(), MAX_NAMED):
        likeness = warehouse.pattern(text).compare(warehouse.read(name))
        meant = "is" if likeness is Likeness.SAME else "may be"
        said.append(f"names {show_text(name)}, which {meant} {show_text(text)}")
    return "; ".join(said) + ("; and more such names" if len(found.names) > MAX_NAMED else "")


def _describe_cure(found: OtherSpellings) -> str:
    if found.differ_by_case:
        return 'Write "ignoreCase": true beside the operator.'
    names = ", ".join(show_text(name) for name in islice(found.names, MAX_NAMED))
    several = _SEVERAL.get(found.test.operator)
    return f"Add {names} to its names{f', with the operator {several}' if several else ''}."


UNREACHABLE_RULE = declare(
    "unreachable-rule",
    Severity.WARNING,
    "An earlier enabled rule matches everything that this rule matches, so this rule never decides.",
)


@UNREACHABLE_RULE.check(RuleList)
def check_unreachable_rule(node: RuleList, context: Context) -> Iterator[Problem]:
    """Warn about rules behind a wider one, because the first match decides.

    A rule that only invalidates still fires, unless the wider one denies.
    """
    enabled = [rule for rule in node.valid if rule.rule.enabled]
    covers, incomplete = find_wider(
        [rule.normal for rule in enabled], is_late=partial(context.has_used, limits.WARNINGS_SECONDS)
    )
    context.incomplete += [enabled[index].rule.path for index in incomplete]
    for rule, cover in zip(enabled, covers, strict=True):
        if cover is None:
            continue
        earlier = enabled[cover].rule
        still_fires = bool(rule.rule.targets) and earlier.action is not Action.DENY
        if not (still_fires and rule.rule.action is Action.INVALIDATE):
            yield Problem(
                rule.rule.path,
                f"{_name_rule(earlier)} comes before this rule and matches everything that it matches"
                + ("; its invalidations still fire." if still_fires else "."),
                caused_by=earlier.id,
            )


def _name_rule(rule: RuleNode) -> str:
    return f"The rule {rule.id}" if rule.id is not None else f"Rule {rule.index + 1} in the list"


DUPLICATE_CONDITIONS = declare(
    "duplicate-conditions", Severity.WARNING, "An earlier enabled rule has conditions with the same meaning."
)


@DUPLICATE_CONDITIONS.check(RuleList)
def check_duplicate_conditions(node: RuleList, _context: Context) -> Iterator[Problem]:
    """Warn about two enabled rules for the same statements."""
    first: dict[Conjunction, ValidRule] = {}
    for rule in node.valid:
        if not rule.rule.enabled or rule.normal is NEVER:
            continue
        earlier = first.setdefault(rule.normal, rule)
        if earlier is not rule:
            name = earlier.rule.id or f"number {earlier.rule.index + 1} in the list"
            yield Problem(rule.path, f"The rule {name} has conditions with the same meaning.")


CONTRADICTORY_CONDITIONS = declare(
    "contradictory-conditions",
    Severity.WARNING,
    "The conditions of a rule exclude each other: it never matches.",
)


@CONTRADICTORY_CONDITIONS.check(ValidRule)
def check_contradictory_conditions(node: ValidRule, _context: Context) -> Iterator[Problem]:
    """Warn about rules that can never match."""
    if node.normal is NEVER:
        yield Problem(node.path, "These conditions exclude each other, so the rule never matches.")


SPOOFABLE_CONDITION = declare(
    "spoofable-condition",
    Severity.WARNING,
    "A deny rule depends on a header that the caller can forge (`userAgent`, `host`, `origin`, `referer`).",
)
_HEADERS: Final = [key.name for key in CONDITION_KEYS.values() if key.caller_supplied]


@SPOOFABLE_CONDITION.check(ValidRule)
def check_spoofable_condition(node: ValidRule, _context: Context) -> Iterator[Problem]:
    """Warn that callers can avoid a deny rule by sending another header."""
    if node.rule.action is Action.DENY:
        for path in node.find_keys(_HEADERS, lambda _literal: True):
            yield Problem(
                path, f"The caller sets {path[-1]}: with another value, this deny rule does not match."
            )


CACHES_NON_DETERMINISTIC = declare(
    "caches-non-deterministic",
    Severity.WARNING,
    "A cache rule selects statements that call non-deterministic functions or depend on the time.",
    hurts=True,
)
_NON_DETERMINISTIC: Final = ("hasNonDeterministicFunctions",)


@CACHES_NON_DETERMINISTIC.check(ValidRule)
def check_caches_non_deterministic(node: ValidRule, _context: Context) -> Iterator[Problem]:
    """Warn about caching statements whose results differ at every call."""
    if node.rule.action is not Action.CACHE:
        return
    selecting = node.find_keys(_NON_DETERMINISTIC, lambda literal: literal.accepts_only(boolean=True))
    for path in [node.path] if node.matches_everything else selecting:
        yield Problem(
            path, "Non-deterministic functions give another result at every call; the cache repeats one."
        )
    for path, word in node.find_words(find_time):
        yield Problem(path, f"The result of {word} depends on the time; the cache repeats an earlier one.")


CACHES_WRITES = declare(
    "caches-writes",
    Severity.WARNING,
    "A cache rule selects statements that change data or the schema.",
    hurts=True,
)

#: By key, the value of a statement that writes.
_WRITING_VALUES: Final = {"isReadOnly": False, "isDataChange": True, "isDDL": True}
_WRITING_KEYS: Final = ("statementType", *_WRITING_VALUES)
_WRITING_TYPES: Final = frozenset(
    {
        "INSERT",
        "UPDATE",
        "DELETE",
        "MERGE",
        "UPSERT",
        "REPLACE",
        "TRUNCATE",
        "COPY",
        "CREATE",
        "ALTER",
        "DROP",
        "GRANT",
        "REVOKE",
    }
)


@CACHES_WRITES.check(ValidRule)
def check_caches_writes(node: ValidRule, _context: Context) -> Iterator[Problem]:
    """Warn about caching statements that write: from the cache, they would have no effect."""
    if node.rule.action is Action.CACHE:
        selecting = node.find_keys(_WRITING_KEYS, _selects_writes)
        for path in [node.path] if node.matches_everything else selecting:
            yield Problem(path, "A statement that writes has no effect if it is served from the cache.")


def _selects_writes(literal: Literal) -> bool:
    test = literal.test
    if test.key.name in _WRITING_VALUES:
        return literal.accepts_only(boolean=_WRITING_VALUES[test.key.name])
    if literal.negated or test.operator not in {Operator.EQ, Operator.IN}:
        return False
    return any(text.upper() in _WRITING_TYPES for text in test.texts)


UNKNOWN_VALUE = declare(
    "unknown-value",
    Severity.WARNING,
    "`statementType`, `operationType`, `adapterType` or `cacheOverride` is compared with a text that the log "
    "never has there. Case counts.",
)
_EQUALITIES: Final = frozenset({Operator.EQ, Operator.NE, Operator.IN, Operator.NOT_IN})
_PIECES: Final = {
    Operator.CONTAINS: str.__contains__,
    Operator.STARTS_WITH: str.startswith,
    Operator.ENDS_WITH: str.endswith,
}
_VERBS: Final = {
    Operator.CONTAINS: "contains",
    Operator.STARTS_WITH: "starts with",
    Operator.ENDS_WITH: "ends with",
}
_STATEMENTS: Final = """
    ALTER ANALYZE BEGIN CALL CLUSTER COMMENT COMMIT COPY CREATE DEALLOCATE DECLARE DELETE DESC DESCRIBE DROP
    EXECUTE EXPLAIN FETCH FROM GET GRANT INSERT LIST LOAD LOCK MERGE MSCK OPTIMIZE PREPARE PUT REFRESH REMOVE
    RENAME REPLACE RESET REVOKE ROLLBACK SELECT SET SHOW START TABLE TRUNCATE UNDROP UNSET UPDATE UPSERT USE
    VACUUM VALUES WITH
"""
_OPERATIONS: Final = """
    CANCEL_OPERATION CLOSE_OPERATION CLOSE_SESSION EXECUTE_STATEMENT FETCH_RESULTS GET_CATALOGS GET_COLUMNS
    GET_FUNCTIONS GET_INFO GET_OPERATION_STATUS GET_PRIMARY_KEYS GET_RESULT_SET_METADATA GET_SCHEMAS
    GET_TABLES GET_TABLE_TYPES GET_TYPE_INFO OPEN_SESSION TELEMETRY
"""
_LOGGED_VALUES: Final = {
    "adapterType": ("databricks", "snowflake", "postgresql"),
    "cacheOverride": ("cache", "nocache"),
    "statementType": tuple(_STATEMENTS.split()),
    "operationType": tuple(_OPERATIONS.split()),
}
#: Gateways write other names of statements and operations too, but all in capitals.
_CAPITALS: Final = {
    "statementType": re.compile(r"[A-Z][A-Z0-9_ ]*", re.ASCII),
    "operationType": re.compile(r"[A-Z][A-Z0-9_]*", re.ASCII),
}
#: How similar a name in capitals is to a known one if it is taken for a misspelling.
_MISSPELT: Final = 0.8


@UNKNOWN_VALUE.check(Operation, names=_LOGGED_VALUES)
def check_unknown_value(node: Operation, context: Context) -> Iterator[Problem]:
    """Warn about values that match no statement, such as ``"statementType": "select"``."""
    if node.operator in _PIECES:
        yield from _check_piece(node)
    elif node.operator not in _EQUALITIES:
        return
    elif node.operator in {Operator.IN, Operator.NOT_IN}:
        for index, element in enumerate(node.operand if is_array(node.operand) else ()):
            yield from _check_value(node, element, (*node.path, index), context)
    else:
        yield from _check_value(node, node.operand, node.path, context)


def _check_value(node: Operation, value: object, path: Path, context: Context) -> Iterator[Problem]:
    if not isinstance(value, str):
        return
    known, capitals = _LOGGED_VALUES[node.key.name], _CAPITALS.get(node.key.name)
    if node.ignore_case:
        if value.lower() in {name.lower() for name in known}:
            return
        value = value if capitals is None else value.upper()
    if value in known:
        return
    similarity = _MISSPELT if capitals is not None and capitals.fullmatch(value) else None
    nearest = context.suggester.find_nearest(value, known, similarity=similarity)
    if similarity is None or nearest is not None:
        message = f"The log never has {show_text(value)} in {node.key.name}{ask_nearest(nearest)}"
        yield Problem(path, message, nearest)


def _check_piece(node: Operation) -> Iterator[Problem]:
    piece, capitals = node.operand, _CAPITALS.get(node.key.name)
    if not isinstance(piece, str) or not piece:
        return
    written = piece
    if capitals is not None:
        # A value may begin with anything before the piece.
        is_known = capitals.fullmatch("A" + (piece.upper() if node.ignore_case else piece)) is not None
    else:
        piece = piece.lower() if node.ignore_case else piece
        is_known = any(_PIECES[node.operator](name, piece) for name in _LOGGED_VALUES[node.key.name])
    if not is_known:
        yield Problem(
            node.path, f"No {node.key.name} of the log {_VERBS[node.operator]} {show_text(written)}."
        )
