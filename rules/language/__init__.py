"""The fields of a rule and their defaults, and the complete form in which rules are stored."""

from rules.language.document import (
    READ_ONLY_PROPERTIES,
    Action,
    CachingDefaults,
    Rule,
    complete_rule,
    default_action,
    read_rule,
    read_rules,
    rule_ids,
)
from rules.language.fields import RULE_FIELDS, USER_COLUMNS, VARY_COLUMNS, Field

__all__ = [
    "READ_ONLY_PROPERTIES",
    "RULE_FIELDS",
    "USER_COLUMNS",
    "VARY_COLUMNS",
    "Action",
    "CachingDefaults",
    "Field",
    "Rule",
    "complete_rule",
    "default_action",
    "read_rule",
    "read_rules",
    "rule_ids",
]
