"""PostgreSQL stores no NUL and no half of a surrogate pair."""

from __future__ import annotations

import json
from typing import Annotated

import pytest
from django.db import connection

from tenantadmin.lib.core.rendering import is_storable, make_storable
from tenantadmin.lib.core.structs import Count, JsonStruct


class Found(JsonStruct):
    rule_id: Annotated[str, "any text"]
    hits: Count
    by_user: dict[str, list[str | None]]


def test_a_struct_becomes_json_that_can_be_stored() -> None:
    found = Found(rule_id="a\0b", hits=2**63, by_user={"\0": ["\\u0000", None], "\ud800": []})
    assert make_storable(found) == {
        "ruleId": "a\ufffdb",
        "hits": 2**63,
        "byUser": {"\ufffd": ["\\u0000", None]} | {"\ufffd": []},
    }


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["", "a", "😀", "\\u0000", "\x01", "\uffff", "\0", "a\0", "\ud800"])
def test_what_is_storable_can_be_stored(text: str) -> None:
    stored = make_storable(text)
    assert is_storable(text) is (stored == text)
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::jsonb #>> '{}', %s", [json.dumps(stored), stored])
        assert cursor.fetchone() == (stored, stored)
