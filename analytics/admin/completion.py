"""Words that the editors complete, with kind and meaning."""

# Queries consist of constants, column names and days.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict

from rules.conditions.keys import COMBINATORS, CONDITION_KEYS
from rules.conditions.operators import IGNORE_CASE, OPERATORS
from rules.language import Action
from rules.language.fields import RULE_FIELDS
from tenantadmin.lib.core.formats import count
from tenantadmin.lib.core.timestamps import days_before

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from analytics.reports.reading import LogReader

#: Days of the log that are read, and values offered per condition key.
VALUE_DAYS: Final = 7
_VALUES: Final = 50
#: Condition keys whose values are offered: names, not statements.
_VALUE_KEYS: Final = (
    "statementType", "userName", "clientIp", "userAgent", "host", "origin",
    "operationType", "adapterType", "serverHostname",
)  # fmt: skip


class Word(TypedDict):
    """A word that an editor offers: its text, kind and meaning."""

    value: str
    kind: str
    meaning: str


def _word(value: str, kind: str, meaning: str = "") -> Word:
    return {"value": value, "kind": kind, "meaning": meaning}


def rule_words(rules: Sequence[Any]) -> list[Word]:
    """Return the words of rules: fields, actions, condition keys, operators, and ids of ``rules``."""
    return [
        *(_word(name, "field", field.meaning) for name, field in RULE_FIELDS.items()),
        *(_word(action.value, "action") for action in Action),
        *(_word(name, "condition key", key.meaning) for name, key in CONDITION_KEYS.items()),
        *(_word(name, "combines conditions") for name in COMBINATORS),
        *(_word(operator.value, "operator", spec.meaning) for operator, spec in OPERATORS.items()),
        _word(IGNORE_CASE, "operator", "upper and lower case count as equal"),
        *(_word(rule["id"], "rule id", rule.get("name", "")) for rule in rules),
    ]


def log_words(log: LogReader, *, last: dt.date) -> list[Word]:
    """Return recent log values for each condition key, most frequent first. Includes user names.

    Runs one audited query.

    Raises:
        ApiError: the query failed.
    """
    rows = log.rows(_values_sql(first=days_before(last, VALUE_DAYS - 1), last=last))
    return [
        _word(
            row["value"],
            f"{row['name']} in the log",
            count(row["entries"], "log entry", "log entries"),
        )
        for row in rows
    ]


def _values_sql(*, first: dt.date, last: dt.date) -> str:
    days = f"FROM proxy_logs WHERE day BETWEEN '{first}' AND '{last}'"
    tables = "json_extract_string(CASE WHEN json_valid(tables) THEN tables END, '$[*]')"
    parts = [
        f"SELECT 'tables' AS name, unnest({tables}) AS value {days}",
        *(f"SELECT '{key}' AS name, {key} AS value {days}" for key in _VALUE_KEYS),
    ]
    return (
        f"SELECT name, value, count(*) AS entries FROM ({' UNION ALL '.join(parts)})"
        " WHERE value IS NOT NULL AND length(value) BETWEEN 1 AND 200 GROUP BY name, value"
        f" QUALIFY row_number() OVER (PARTITION BY name ORDER BY count(*) DESC, value) <= {_VALUES}"
        " ORDER BY name, entries DESC, value"
    )
