"""What of SQLAlchemy's tests is tried, and what is not, with the reasons."""

from __future__ import annotations

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

#: Tests that SQLAlchemy leaves out unless a dialect asks for them.
TRIED = """
    aggregate_order_by boolean_col_expressions cast_precision_numerics_many_significant_digits ctes
    ctes_with_values date_historic datetime_historic datetime_interval datetime_literals
    datetime_timezone datetime_timezone_historic except_ fetch_expression fetch_first
    fetch_no_order_by get_isolation_level_values implicit_default_schema intersect
    json_array_indexes json_type legacy_unconditional_json_extract like_escapes nested_aggregates
    nullsordering numeric_received_as_decimal_untyped order_by_collation order_by_label_with_expression
    percent_schema_names precision_numerics_enotation_large precision_numerics_enotation_small
    precision_numerics_many_significant_digits precision_numerics_retains_significant_digits
    regexp_match regexp_replace standalone_binds supports_bitwise_and supports_bitwise_not
    supports_bitwise_or supports_bitwise_shift supports_bitwise_xor supports_distinct_on
    supports_is_distinct_from table_value_constructor time_timezone timestamp_microseconds
    timestamp_microseconds_implicit_bound tuple_in tuple_in_w_empty unicode_ddl uuid_data_type
    window_functions window_range_non_numeric
    """.split()  # noqa: SIM905

_READ_ONLY = "the log can only be read"
_REFLECTION = "the only table is `proxy_logs`; `test_dbapi.py` reads its columns"
_TRANSACTIONS = "there are no transactions, so `AUTOCOMMIT` is the only level"
_INFINITE = "the JSON of the service has null for an infinite number"
_ORDER = "the test expects an order, and asks for none"
_FETCH = "DuckDB has neither `PERCENT` nor `WITH TIES`"
_JSON = "DuckDB reads the numbers of JSON as DOUBLEs"
_DIVISION = "DuckDB divides DECIMALs as DOUBLEs: 5.52 / 2.4 is 2.3000000000000003"

#: Requirements that the log does not fulfil, and why.
CLOSED = {
    **dict.fromkeys(
        [
            *("autoincrement_insert", "comment_reflection", "computed_columns", "create_or_replace_view"),
            *("create_table_as", "create_temp_table_as", "ctes_on_dml", "ctes_with_update_delete"),
            *("delete_from", "duplicate_key_raises_integrity_error", "empty_inserts"),
            *("empty_inserts_executemany", "has_temp_table", "identity_columns", "index_ddl_if_exists"),
            *("insert_executemany_returning", "insert_from_select", "insert_returning"),
            *("materialized_views", "repeated_column_foreign_keys", "returning", "sane_rowcount"),
            *("savepoints", "sequences", "table_ddl_if_exists", "temp_table_reflection"),
            *("temporary_tables", "temporary_views", "two_phase_transactions", "update_from", "views"),
        ],
        _READ_ONLY,
    ),
    **dict.fromkeys(["default_schema_name_switch", "reflect_tables_no_columns"], _REFLECTION),
    "server_side_cursors": "an answer of the service has all rows",
    **dict.fromkeys(["autocommit", "isolation_level"], _TRANSACTIONS),
    "infinity_floats": _INFINITE,
    **dict.fromkeys(["window_range", "window_range_numeric"], _ORDER),
    **dict.fromkeys(["fetch_offset_with_options", "fetch_percent", "fetch_ties"], _FETCH),
}
#: Tests that no requirement leaves out, by the beginnings of their names, and why.
EXCLUDED = {
    "BizarroCharacterTest": _REFLECTION,
    "HasTableTest::test_has_table_cache": _REFLECTION,
    "ComponentReflectionTest": _REFLECTION,
    "CompositeKeyReflectionTest": _REFLECTION,
    "HasIndexTest": _REFLECTION,
    "LongNameBlowoutTest": _REFLECTION,
    "NormalizedNameTest": _REFLECTION,
    "QuotedNameArgumentTest": _REFLECTION,
    "TableViaSelectTest::test_without_metadata": _REFLECTION,
    "UnicodeSchemaTest": _REFLECTION,
    "IdentityAutoincrementTest": _READ_ONLY,
    "InsertBehaviorTest": _READ_ONLY,
    "ReturningGuardsTest": _READ_ONLY,
    "JSONTest::test_eval_none_flag_orm": _READ_ONLY,
    "JSONTest::test_index_typed_access[_decimal1]": _JSON,
    "JSONTest::test_index_typed_comparison[_decimal1]": _JSON,
    "JSONTest::test_path_typed_comparison[_decimal1]": _JSON,
    "TrueDivTest::test_truediv_divisor[numeric_38_digit_divisor": _DIVISION,
    "TrueDivTest::test_truediv_divisor[numeric_many_decimals": _DIVISION,
    "TrueDivTest::test_truediv_numeric": _DIVISION,
}
REASONS = {*CLOSED.values(), *EXCLUDED.values()}


class Requirements(SuiteRequirements):
    """A requirement is open if the log fulfils it."""

    def get_order_by_collation(self, config: object) -> str:
        return "NOCASE"


for _name in TRIED:
    setattr(Requirements, _name, property(lambda _: exclusions.open()))
for _name, _reason in CLOSED.items():
    _closed = exclusions.skip_if(exclusions.BooleanPredicate(True, _reason))
    setattr(Requirements, _name, property(lambda _, closed=_closed: closed))
