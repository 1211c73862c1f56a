"""The checks. Each file is named after its finding, and registers its checks when it is imported.

The order of the imports is the order in docs/rules.md, and the order of findings at the same place.
"""

from rules.lint.checks import (  # noqa: F401, I001 - imported to register, in this order
    unknown_property,
    missing_property,
    wrong_type,
    out_of_range,
    duplicate_rule_id,
    invalid_rule_id,
    unknown_condition_key,
    unknown_operator,
    operator_type_mismatch,
    invalid_regex,
    invalid_cidr,
    conditions_too_deep,
    dangling_invalidate_reference,
    invalidate_target_not_cache,
    invalidate_without_targets,
    swr_out_of_range,
    swr_not_cacheable,
    swr_exceeds_ttl,
    require_invalidation_without_targets,
    unconditional_deny,
    rule_removed_still_referenced,
    rule_removed_active_marker,
    matches_everything,
    unreachable_rule,
    duplicate_conditions,
    contradictory_conditions,
    spoofable_condition,
    caches_non_deterministic,
    caches_writes,
    ttl_very_short,
    ttl_very_long,
    disabled_invalidator,
)
