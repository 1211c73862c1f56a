"""``unknown-vary-column``: results vary by what a request carries."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import cache_rule, find_one, find_places

CODE = "unknown-vary-column"


def test_all_columns_of_the_contract_are_known() -> None:
    columns = [
        "userName",
        "userTokenHash",
        "sessionId",
        "serverHostname",
        "host",
        "clientIp",
        "operationType",
    ]
    assert find_places(CODE, cache_rule(varyBy=columns)) == []


@pytest.mark.parametrize("column", ["tables", "username", "userAgent", "", "\ud800"])
def test_other_columns_are_reported(column: str) -> None:
    assert find_places(CODE, cache_rule(varyBy=["host", column])) == ["/rules/0/varyBy/1"]


def test_the_nearest_column_is_suggested() -> None:
    assert find_one(CODE, cache_rule(varyBy=["username"])).suggestion == "userName"


def test_values_that_are_no_texts_have_the_wrong_type() -> None:
    assert find_places("wrong-type", cache_rule(varyBy=["host", 1, None])) == [
        "/rules/0/varyBy/1",
        "/rules/0/varyBy/2",
    ]
    assert find_places("wrong-type", cache_rule(varyBy="host")) == ["/rules/0/varyBy"]
    assert find_places("wrong-type", cache_rule(varyBy=None)) == ["/rules/0/varyBy"]


def test_a_column_is_named_once() -> None:
    assert find_places("out-of-range", cache_rule(varyBy=["host", "userName", "host"])) == [
        "/rules/0/varyBy/2"
    ]
