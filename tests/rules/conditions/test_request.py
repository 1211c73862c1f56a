"""Reading the values of condition keys from requests and log rows."""

from __future__ import annotations

import pytest

from rules.conditions import CONDITION_KEYS, InvalidRequest, read_request


def test_absent_keys_are_null_and_other_columns_are_ignored() -> None:
    assert read_request({"responseSize": 3}) == dict.fromkeys(CONDITION_KEYS)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (["a.b", "a.b", "c"], frozenset({"a.b", "c"})),
        ('["a.b", 1, null, ["c"]]', frozenset({"a.b"})),
        ("[]", frozenset()),
        ("not json", None),
        ('{"a": 1}', None),
        ("", None),
    ],
)
def test_tables_are_a_list_or_its_json_text(value: object, names: frozenset[str] | None) -> None:
    assert read_request({"tables": value})["tables"] == names


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"userName": 1}, "userName must be a string or null, not a number"),
        ({"isDDL": 1}, "isDDL must be a boolean or null, not a number"),
        ({"tableCount": True}, "tableCount must be an integer or null, not a boolean"),
        ({"tableCount": 1.5}, "tableCount must be an integer or null, not a number"),
        ({"tables": {}}, "tables must be a JSON array of strings, or its text or null, not an object"),
    ],
)
def test_the_error_names_a_value_of_a_wrong_type(row: dict[str, object], problem: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^{problem}$"):
        read_request(row)
