"""What of SQLAlchemy's tests is tried, and what is not, with the reasons."""

from __future__ import annotations

import sqlalchemy
from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

#: Tests that SQLAlchemy leaves out unless a dialect asks for them.
TRIED = """
    aggregate_order_by boolean_col_expressions cast_precision_numerics_many_significant_digits ctes
    ctes_with_values date_historic datetime_historic datetime_interval datetime_literals
    datetime_timezone datetime_timezone_historic except_ fetch_expression fetch_first
    fetch_no_order_by get_isolation_level_values implicit_default_schema intersect
    json_array_indexes json_type like_escapes nested_aggregates nullsordering
    numeric_received_as_decimal_untyped order_by_collation order_by_label_with_expression
    percent_schema_names precision_numerics_enotation_large precision_numerics_enotation_small
    precision_numerics_many_significant_digits precision_numerics_retains_significant_digits
    regexp_match regexp_replace standalone_binds supports_bitwise_and supports_bitwise_not
    supports_bitwise_or supports_bitwise_shift supports_bitwise_xor supports_distinct_on
    supports_is_distinct_from table_value_constructor timestamp_microseconds
    timestamp_microseconds_implicit_bound tuple_in tuple_in_w_empty unicode_ddl uuid_data_type
    window_functions window_range_non_numeric
    """.split()  # noqa: SIM905

#: What the log lacks, and why.
CLOSED = {
    **dict.fromkeys(
        [
            *("autoincrement_insert", "empty_inserts", "empty_inserts_executemany"),
            *(
                "insert_from_select",
                "duplicate_key_raises_integrity_error",
                "savepoints",
                "temp_table_reflection",
            ),
            *("two_phase_transactions", "ctes_on_dml", "ctes_with_update_delete", "temporary_tables"),
        ],
        "the log can only be read",
    ),
    **dict.fromkeys(
        ["autocommit", "isolation_level"], "there are no transactions, so AUTOCOMMIT is the only level"
    ),
    "infinity_floats": "the JSON of the service has null for an infinite number",
    **dict.fromkeys(["window_range", "window_range_numeric"], "the tests expect an order, and ask for none"),
    **dict.fromkeys(["fetch_percent", "fetch_ties"], "DuckDB has neither"),
}

_REFLECTION = "the only table is proxy_logs; test_dbapi.py reads its columns"
_WRITES = "the log can only be read"
_JSON = "DuckDB reads the numbers of JSON as DOUBLEs"
_DIVISION = "DuckDB divides DECIMALs as DOUBLEs: 5.52 / 2.4 is 2.3000000000000003"
#: Tests that no requirement leaves out, by the beginnings of their names, and why.
EXCLUDED = {
    "BizarroCharacterTest": _REFLECTION,
    "HasTableTest::test_has_table_cache": "nothing is remembered: the only table is always there",
    "ComponentReflectionTest": _REFLECTION,
    "CompositeKeyReflectionTest": _REFLECTION,
    "HasIndexTest": _REFLECTION,
    "LongNameBlowoutTest": _REFLECTION,
    "NormalizedNameTest": _REFLECTION,
    "QuotedNameArgumentTest": _REFLECTION,
    "TableViaSelectTest::test_without_metadata": _REFLECTION,
    "UnicodeSchemaTest": _REFLECTION,
    "IdentityAutoincrementTest": _WRITES,
    "InsertBehaviorTest": _WRITES,
    "ReturningGuardsTest": _WRITES,
    "JSONTest::test_eval_none_flag_orm": "the log has no keys that it makes itself",
    "TrueDivTest::test_truediv_divisor[numeric_38_digit_divisor": _DIVISION,
    "TrueDivTest::test_truediv_divisor[numeric_many_decimals": _DIVISION,
    "TrueDivTest::test_truediv_numeric": _DIVISION,
}
if sqlalchemy.__version__.startswith("1.4."):
    # Later releases try decimals that a DOUBLE holds.
    EXCLUDED |= {
        "JSONTest::test_index_typed_access[_decimal1]": _JSON,
        "JSONTest::test_index_typed_comparison[_decimal1]": _JSON,
        "JSONTest::test_path_typed_comparison[_decimal1]": _JSON,
    }


class Requirements(SuiteRequirements):
    """A requirement is open if the log fulfils it."""

    def get_order_by_collation(self, config: object) -> str:
        return "NOCASE"


for _name in TRIED:
    setattr(Requirements, _name, property(lambda _: exclusions.open()))
for _name in CLOSED:
    setattr(Requirements, _name, property(lambda _: exclusions.closed()))
