"""What goes with the action of a rule: targets, a stale window, columns to vary by."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from rules.json_text import read_integer, show_text, show_value
from rules.language import RULE_FIELDS, VARY_COLUMNS, Action
from rules.lint import limits
from rules.lint.finding import Severity
from rules.lint.nodes import RuleList, RuleNode, ValidRule
from rules.lint.registry import Context, Problem, declare
from rules.lint.sharing import find_shared
from rules.lint.spelling import ask_nearest

DANGLING_INVALIDATE_REFERENCE = declare(
    "dangling-invalidate-reference",
    Severity.ERROR,
    "An element of `invalidateRules` is not the id of a rule.",
)


@DANGLING_INVALIDATE_REFERENCE.check(RuleList)
def check_dangling_invalidate_reference(node: RuleList, context: Context) -> Iterator[Problem]:
    """Require that each target exists. Otherwise its stale results would stay in the cache."""
    for rule in node.rules:
        for index, target in enumerate(rule.targets):
            if isinstance(target, str) and target not in node.by_id:
                nearest = context.suggester.find_nearest(target, node.by_id)
                yield Problem(
                    (*rule.path, "invalidateRules", index),
                    f"There is no rule {show_text(target)} to invalidate{ask_nearest(nearest)}",
                    nearest,
                    subject=target,
                )


INVALIDATE_TARGET_NOT_CACHE = declare(
    "invalidate-target-not-cache",
    Severity.ERROR,
    "An element of `invalidateRules` is not a cache rule.",
)


@INVALIDATE_TARGET_NOT_CACHE.check(RuleList)
def check_invalidate_target_not_cache(node: RuleList, _context: Context) -> Iterator[Problem]:
    """Require that targets are cache rules: only they have results that can become stale."""
    for rule in node.rules:
        for index, target in enumerate(rule.targets):
            target_rule = node.by_id.get(target) if isinstance(target, str) else None
            if target_rule is not None and target_rule.action not in {Action.CACHE, None}:
                yield Problem(
                    (*rule.path, "invalidateRules", index),
                    f"The rule {target} has the action {target_rule.action}; only cache rules have results.",
                )


INVALIDATE_WITHOUT_TARGETS = declare(
    "invalidate-without-targets",
    Severity.ERROR,
    "A rule has the action `invalidate`, given or by default, but no `invalidateRules`.",
)


@INVALIDATE_WITHOUT_TARGETS.check(RuleNode, names=["action", "invalidateRules"])
def check_invalidate_without_targets(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Require at least one target."""
    if node.action is Action.INVALIDATE and node.lacks_targets:
        yield Problem(
            (*node.path, "invalidateRules"),
            "A rule with the action invalidate must name at least one cache rule in invalidateRules.",
        )


SWR_OUT_OF_RANGE = declare(
    "swr-out-of-range", Severity.ERROR, "`staleWhileRevalidate` is not between 0 and 604800 seconds (a week)."
)


@SWR_OUT_OF_RANGE.check(RuleNode, names=["staleWhileRevalidate"])
def check_swr_out_of_range(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Check the bounds of the stale window."""
    field = RULE_FIELDS["staleWhileRevalidate"]
    window = read_integer(node.fields.get(field.name))
    if window is not None and node.stale_while_revalidate is None:
        yield Problem(
            (*node.path, field.name),
            f"{field.name} must be {field.minimum} to {field.maximum} seconds, not {show_value(window)}.",
        )


SWR_NOT_CACHEABLE = declare(
    "swr-not-cacheable",
    Severity.ERROR,
    "A rule with `staleWhileRevalidate` has another action than `cache`.",
)


@SWR_NOT_CACHEABLE.check(RuleNode, names=["staleWhileRevalidate"])
def check_swr_not_cacheable(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Allow ``staleWhileRevalidate`` only on cache rules."""
    if "staleWhileRevalidate" in node.fields and node.action not in {Action.CACHE, None}:
        yield Problem(
            (*node.path, "staleWhileRevalidate"),
            f"A rule with the action {node.action} has no cached results: remove staleWhileRevalidate.",
        )


SWR_EXCEEDS_TTL = declare(
    "swr-exceeds-ttl",
    Severity.ERROR,
    "`staleWhileRevalidate` is longer than `ttlSeconds`, given or by default.",
)


@SWR_EXCEEDS_TTL.check(RuleNode, names=["staleWhileRevalidate"])
def check_swr_exceeds_ttl(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Limit the stale window to the TTL."""
    window, ttl = node.stale_while_revalidate, node.ttl_seconds
    if window is not None and ttl is not None and window > ttl:
        yield Problem(
            (*node.path, "staleWhileRevalidate"),
            f"staleWhileRevalidate ({window} s) must not be longer than ttlSeconds ({ttl} s).",
            str(ttl),
        )


REQUIRE_INVALIDATION_WITHOUT_TARGETS = declare(
    "require-invalidation-without-targets",
    Severity.ERROR,
    "`requireInvalidation` is true on a rule without `invalidateRules`.",
)


@REQUIRE_INVALIDATION_WITHOUT_TARGETS.check(RuleNode, names=["requireInvalidation"])
def check_require_invalidation_without_targets(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Require targets if invalidation is required."""
    if node.fields.get("requireInvalidation") is True and node.lacks_targets:
        yield Problem(
            (*node.path, "requireInvalidation"),
            "requireInvalidation needs at least one cache rule in invalidateRules.",
        )


UNCONDITIONAL_DENY = declare(
    "unconditional-deny", Severity.ERROR, "A deny rule matches every statement, also while it is disabled."
)


@UNCONDITIONAL_DENY.check(ValidRule)
def check_unconditional_deny(node: ValidRule, _context: Context) -> Iterator[Problem]:
    """Refuse deny rules that match everything. Enabling such a rule would lock out the tenant."""
    if node.rule.action is Action.DENY and node.matches_everything:
        yield Problem(node.path, "This deny rule would refuse every statement: give it conditions.")


VARY_NOT_CACHEABLE = declare(
    "vary-not-cacheable", Severity.ERROR, "A rule with `varyBy` has another action than `cache`."
)


@VARY_NOT_CACHEABLE.check(RuleNode, names=["varyBy"])
def check_vary_not_cacheable(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Allow ``varyBy`` only on cache rules."""
    if "varyBy" in node.fields and node.action not in {Action.CACHE, None}:
        yield Problem(
            (*node.path, "varyBy"),
            f"A rule with the action {node.action} has no cached results: remove varyBy.",
        )


UNKNOWN_VARY_COLUMN = declare(
    "unknown-vary-column", Severity.ERROR, "An element of `varyBy` is not a column that results can vary by."
)


@UNKNOWN_VARY_COLUMN.check(RuleNode, names=["varyBy"])
def check_unknown_vary_column(node: RuleNode, context: Context) -> Iterator[Problem]:
    """Allow only columns that a request carries."""
    for index, column in enumerate(node.vary_by):
        if isinstance(column, str) and column not in VARY_COLUMNS:
            nearest = context.suggester.find_nearest(column, VARY_COLUMNS)
            hint = ask_nearest(nearest, otherwise=f"; use {', '.join(VARY_COLUMNS)}.")
            yield Problem(
                (*node.path, "varyBy", index), f"Results cannot vary by {show_text(column)}{hint}", nearest
            )


PER_USER_TABLE_SHARED = declare(
    "per-user-table-shared",
    Severity.ERROR,
    "A cache rule can decide a statement that reads a table of `warehouse.perUserTables`, and its results do "
    "not vary by user. Checked by write and restore, not by validate.",
)


@PER_USER_TABLE_SHARED.check(RuleList)
def check_per_user_table_shared(node: RuleList, context: Context) -> Iterator[Problem]:
    """Refuse rules that would serve the rows of one user to another."""
    is_late = partial(context.has_used, limits.WARNINGS_SECONDS)
    for rule, tables, is_certain in find_shared(node.valid, node.tables, is_late=is_late):
        shown = ", ".join(show_text(table) for table in tables)
        bypass = '{"tables": {"containsAny": [' + shown + '], "ignoreCase": true}}'
        claim = (
            "All users share the results of this rule, which can decide"
            if is_certain
            else "All users share the results of this rule, and there was no time to exclude that it decides"
        )
        yield Problem(
            (*rule.rule.path, "varyBy") if "varyBy" in rule.rule.fields else rule.rule.path,
            f"{claim} statements that read {shown}, which differ per user. Add userName to varyBy, or put a "
            f"bypass rule for {bypass} before this one.",
            "userName",
        )
