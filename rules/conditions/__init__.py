"""The conditions of cache rules: their keys and operators, how to evaluate them and compile them to SQL."""

from rules.conditions.evaluate import (
    ConditionTrace,
    InvalidRequest,
    Request,
    matches,
    matches_partly,
    read_request,
    trace,
)
from rules.conditions.keys import CONDITION_KEYS, MAX_DEPTH, OPERATORS, ConditionKey, Kind, Operator
from rules.conditions.model import InvalidConditions, parse_conditions
from rules.conditions.sql import compile_condition, compile_sql

__all__ = [
    "CONDITION_KEYS",
    "MAX_DEPTH",
    "OPERATORS",
    "ConditionKey",
    "ConditionTrace",
    "InvalidConditions",
    "InvalidRequest",
    "Kind",
    "Operator",
    "Request",
    "compile_condition",
    "compile_sql",
    "matches",
    "matches_partly",
    "parse_conditions",
    "read_request",
    "trace",
]
