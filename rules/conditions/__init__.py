"""The conditions of cache rules: their keys and operators, how to evaluate them and compile them to SQL."""

from rules.conditions.evaluate import ConditionTrace, matches, matches_partly, trace
from rules.conditions.keys import CONDITION_KEYS, MAX_DEPTH, ConditionKey, Kind
from rules.conditions.operators import OPERATORS, Operator
from rules.conditions.parse import InvalidConditions, parse_conditions
from rules.conditions.request import InvalidRequest, Request, read_request
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
