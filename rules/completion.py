"""Words that an editor of rules completes."""

from __future__ import annotations

from rules.conditions.keys import COMBINATORS, CONDITION_KEYS, IGNORE_CASE, OPERATORS
from rules.language import RULE_FIELDS, Action


def rule_words() -> list[tuple[str, str]]:
    """Return fields, actions, condition keys and operators of rules, each with its kind."""
    return [
        *((name, "field") for name in RULE_FIELDS),
        *((action.value, "action") for action in Action),
        *((name, "condition key") for name in CONDITION_KEYS),
        *((name, "combines conditions") for name in COMBINATORS),
        *((operator.value, "operator") for operator in OPERATORS),
        (IGNORE_CASE, "operator"),
    ]
