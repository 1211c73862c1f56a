"""The allowed records of a parse tree, with their allowed fields.

A record is identified by its family, which follows from the field that contains it, and its variant, the
value of the member named in `SELECTORS`. Each field maps to the family of the records that it contains, or to
`Plain` if it contains only names, numbers or flags. This is the tree of the DuckDB release
``functions.ENGINE_VERSION``.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class Plain(Enum):
    """Marks a field that contains nothing to check."""

    PLAIN = "plain"


_P: Final = Plain.PLAIN

Fields = dict[str, str | Plain]

#: By family, the member of a record that holds its variant. Other families have only one variant, "".
SELECTORS: Final[dict[str, str]] = {
    "node": "type",
    "modifier": "type",
    "table": "type",
    "expression": "class",
    "type info": "type",
}

_NODE: Final[Fields] = {"type": _P, "modifiers": "modifier", "cte_map": "cte map"}
_TABLE: Final[Fields] = {"type": _P, "alias": _P, "query_location": _P, "sample": "sample"}
_EXPRESSION: Final[Fields] = {"class": _P, "type": _P, "alias": _P, "query_location": _P}

#: The allowed fields of each record, by (family, variant).
GRAMMAR: Final[dict[tuple[str, str], Fields]] = {
    # Parameters are refused as expressions, where their position is known.
    ("statement", ""): {"node": "node", "named_param_map": _P},
    # Queries
    ("node", "SELECT_NODE"): {
        **_NODE,
        "select_list": "expression",
        "from_table": "table",
        "where_clause": "expression",
        "group_expressions": "expression",
        "group_sets": _P,
        "aggregate_handling": _P,
        "having": "expression",
        "sample": "sample",
        "qualify": "expression",
    },
    ("node", "SET_OPERATION_NODE"): {
        **_NODE,
        "setop_type": _P,
        "setop_all": _P,
        "left": "node",
        "right": "node",
    },
    ("node", "RECURSIVE_CTE_NODE"): {
        **_NODE,
        "cte_name": _P,
        "union_all": _P,
        "left": "node",
        "right": "node",
        "aliases": _P,
        "key_targets": "expression",
    },
    # The guard itself visits the entries of the map, because it tracks the scope of their names.
    ("cte map", ""): {"map": _P},
    ("cte", ""): {"query": "statement", "aliases": _P, "materialized": _P, "key_targets": "expression"},
    # Result modifiers
    ("modifier", "LIMIT_MODIFIER"): {"type": _P, "limit": "expression", "offset": "expression"},
    ("modifier", "LIMIT_PERCENT_MODIFIER"): {"type": _P, "limit": "expression", "offset": "expression"},
    ("modifier", "DISTINCT_MODIFIER"): {"type": _P, "distinct_on_targets": "expression"},
    ("modifier", "ORDER_MODIFIER"): {"type": _P, "orders": "order"},
    ("order", ""): {"type": _P, "null_order": _P, "expression": "expression"},
    ("sample", ""): {"sample_size": _P, "is_percentage": _P, "method": _P, "seed": _P},
    # Table references
    ("table", "BASE_TABLE"): {
        **_TABLE,
        "table_name": _P,
        "schema_name": _P,
        "catalog_name": _P,
        "column_name_alias": _P,
    },
    ("table", "SUBQUERY"): {**_TABLE, "subquery": "statement", "column_name_alias": _P},
    ("table", "JOIN"): {
        **_TABLE,
        "left": "table",
        "right": "table",
        "condition": "expression",
        "join_type": _P,
        "ref_type": _P,
        "using_columns": _P,
    },
    ("table", "TABLE_FUNCTION"): {
        **_TABLE,
        # The guard checks the name of the function when it visits the table.
        "function": "table call",
        "column_name_alias": _P,
        "with_ordinality": _P,
    },
    ("table", "EXPRESSION_LIST"): {**_TABLE, "values": "expression"},
    ("table", "EMPTY"): {**_TABLE},
    ("table", "PIVOT"): {
        **_TABLE,
        "source": "table",
        "aggregates": "expression",
        "unpivot_names": _P,
        "pivots": "pivot",
        "groups": _P,
        "column_name_alias": _P,
        "include_nulls": _P,
    },
    ("pivot", ""): {"pivot_expressions": "expression", "unpivot_names": _P, "entries": "pivot entry"},
    ("pivot entry", ""): {
        "values": _P,
        "alias": _P,
        "star_expr": "expression",
    },
    ("table call", ""): {
        **_EXPRESSION,
        "function_name": _P,
        "schema": _P,
        "catalog": _P,
        "children": "expression",
        "order_bys": "modifier",
    },
    # Expressions
    ("expression", "BETWEEN"): {
        **_EXPRESSION,
        "input": "expression",
        "lower": "expression",
        "upper": "expression",
    },
    ("expression", "CASE"): {**_EXPRESSION, "case_checks": "case check", "else_expr": "expression"},
    ("case check", ""): {"when_expr": "expression", "then_expr": "expression"},
    ("expression", "CAST"): {**_EXPRESSION, "child": "expression", "cast_type": "type", "try_cast": _P},
    ("expression", "COLLATE"): {**_EXPRESSION, "child": "expression", "collation": _P},
    ("expression", "COLUMN_REF"): {**_EXPRESSION, "column_names": _P},
    ("expression", "COMPARISON"): {**_EXPRESSION, "left": "expression", "right": "expression"},
    ("expression", "CONJUNCTION"): {**_EXPRESSION, "children": "expression"},
    ("expression", "CONSTANT"): {**_EXPRESSION, "value": _P},
    ("expression", "FUNCTION"): {
        **_EXPRESSION,
        "function_name": _P,
        "schema": _P,
        "catalog": _P,
        "children": "expression",
        "filter": "expression",
        "order_bys": "modifier",
        "distinct": _P,
        "is_operator": _P,
    },
    ("expression", "LAMBDA"): {**_EXPRESSION, "lhs": "expression", "expr": "expression"},
    ("expression", "OPERATOR"): {**_EXPRESSION, "children": "expression"},
    ("expression", "POSITIONAL_REFERENCE"): {**_EXPRESSION, "index": _P},
    ("expression", "STAR"): {
        **_EXPRESSION,
        "relation_name": _P,
        "exclude_list": _P,
        "qualified_exclude_list": _P,
        "replace_list": "replacement",
        "rename_list": _P,
        "columns": _P,
        "expr": "expression",
    },
    ("replacement", ""): {"key": _P, "value": "expression"},
    ("expression", "SUBQUERY"): {
        **_EXPRESSION,
        "subquery_type": _P,
        "subquery": "statement",
        "child": "expression",
        "comparison_type": _P,
    },
    ("expression", "WINDOW"): {
        **_EXPRESSION,
        "function_name": _P,
        "schema": _P,
        "catalog": _P,
        "children": "expression",
        "partitions": "expression",
        "orders": "order",
        "start": _P,
        "end": _P,
        "start_expr": "expression",
        "end_expr": "expression",
        "offset_expr": "expression",
        "default_expr": "expression",
        "ignore_nulls": _P,
        "filter_expr": "expression",
        "exclude_clause": _P,
        "distinct": _P,
        "arg_orders": "order",
    },
    # Types
    ("type", ""): {"id": _P, "type_info": "type info"},
    ("type info", "ARRAY_TYPE_INFO"): {"type": _P, "child_type": "type", "size": _P},
    ("type info", "DECIMAL_TYPE_INFO"): {"type": _P, "width": _P, "scale": _P},
    ("type info", "GENERIC_TYPE_INFO"): {"type": _P, "alias": _P},
    ("type info", "LIST_TYPE_INFO"): {"type": _P, "child_type": "type"},
    ("type info", "STRUCT_TYPE_INFO"): {"type": _P, "child_types": "named type"},
    ("type info", "UNBOUND_TYPE_INFO"): {
        "type": _P,
        "name": _P,
        "schema": _P,
        "user_type_modifiers": _P,
    },
    ("named type", ""): {"first": _P, "second": "type"},
}
