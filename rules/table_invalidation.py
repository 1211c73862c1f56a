"""Invalidate by table: a marker on each rule that may have cached results of a table.

Contract: Cache metadata and markers. A pipeline that has loaded tables knows their names and no rules.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction

from accounts.tenants.stamps import new_stamp
from rules.conditions.keys import Kind, Operator
from rules.conditions.model import iterate_tests
from rules.language import read_rule
from rules.lint.nodes import ValidRule, read_node
from rules.lint.registry import Context
from rules.lint.sharing import find_deciding
from rules.markers import (
    MarkerDocument,
    cutoffs,
    database_now,
    describe_marker,
    lock_ruleset,
    make_marker,
    save_markers,
)
from rules.models import Marker
from rules.ruleset import read_tables, with_log
from rules.tables.names import is_any
from rules.tables.warehouse import ANY_TABLES, WarehouseTables
from tenantadmin.lib.core.errors import ValidationFailed

if TYPE_CHECKING:
    from rules.language import Rule

#: Processor time to look for rules, in seconds. After that, each further cache rule gets a marker.
_SECONDS = 1.0
#: The longest ``triggeredBy`` of a marker.
_MAX_TRIGGER = 200


def find_rules(
    rules: Sequence[dict[str, Any]],
    tables: Sequence[str],
    warehouse: WarehouseTables = ANY_TABLES,
) -> list[dict[str, Any]]:
    """Return the enabled cache rules, in order, that can decide a statement which reads one of the tables.

    A statement may read a table through a view. A condition excludes a table by its spelling, as in lint:
    each spelling in the log counts as a table of its own.

    Args:
        rules: stored rules.
        tables: names and patterns.
    """
    context = Context()
    valid = [ValidRule(read_node(rule, index)) for index, rule in enumerate(rules)]
    tables = warehouse.with_views(tables)
    deciding = find_deciding(valid, tables, warehouse, is_late=lambda: context.has_used(_SECONDS))
    return [rules[rule.rule.index] for rule in deciding]


def named_tables(rule: Rule) -> list[str]:
    """Return the names and patterns of tables that a rule is about, each once, in order.

    Tables that a rule is not about (``not``, ``ne``) are left out.
    """
    tests = [
        test
        for test, negated in iterate_tests(rule.condition)
        if test.key.kind is Kind.TABLES
        and negated == (test.operator in {Operator.NE, Operator.NOT_IN})
        and test.operator is not Operator.EXISTS
    ]
    return list(dict.fromkeys(text for test in tests for text in test.texts))


def names_table(rule: Rule, tables: Sequence[str], warehouse: WarehouseTables) -> bool:
    """Return True if the rule is about one of these names or patterns, or may be."""
    named, wanted = ([warehouse.pattern(name) for name in names] for names in (named_tables(rule), tables))
    return any(is_any(one.name, wanted) for one in named) or any(is_any(one.name, named) for one in wanted)


def invalidate_tables(
    tenant_id: UUID,
    *,
    tables: Sequence[str],
    reason: str | None,
    actor: str,
    only: Sequence[str] | None = None,
) -> list[MarkerDocument]:
    """Create one marker on each rule of `find_rules`, or on those with an id in ``only``, all or none.

    Raises:
        TenantNotFound: there is no such live tenant.
        ValidationFailed: a rule in ``only`` is not one of `find_rules`.
    """
    with transaction.atomic():
        rules = find_rules(lock_ruleset(tenant_id), tables, with_log(read_tables(tenant_id), tenant_id))
        if only is not None:
            chosen = dict.fromkeys(only)
            rules = [rule for rule in rules if rule["id"] in chosen]
            for rule_id in chosen.keys() - {rule["id"] for rule in rules}:
                message = f"The rule {rule_id!r} cannot have results of these tables now. Preview again."
                raise ValidationFailed.at("/ruleIds", "unknown-rule", message)
        created_at, changed_at = database_now(), new_stamp(Marker, "changed_at")
        cutoffs(tenant_id, [rule["id"] for rule in rules]).update(changed_at=changed_at)
        token = secrets.token_hex(8)
        trigger = f"Tables {', '.join(tables)}"
        markers = [
            make_marker(
                tenant_id,
                target=read_rule(rule),
                at=created_at,
                changed_at=changed_at,
                actor=actor,
                marker_id=f"{rule['id']}.{token}-TableInvalidation",
                metadata={} if reason is None else {"reason": reason},
                invalidated_by={"ruleId": rule["id"], "triggeredBy": trigger[:_MAX_TRIGGER]},
            )
            for rule in rules
        ]
        save_markers(tenant_id, markers)
    return [describe_marker(marker, superseded=False) for marker in markers]
