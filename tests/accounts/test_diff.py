"""What changed between two revisions of a document."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from accounts.diff import LABELS, describe_fields, diff_documents


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, object, object]]:
    return [
        (change.path, change.before, change.after) for change in diff_documents(before=before, after=after)
    ]


def test_members_that_come_and_go() -> None:
    assert changes({"a": 1, "b": {"x/y": 1}}, {"b": {"z": None}, "c": {}}) == [
        ("/a", 1, None),
        ("/b/x~1y", 1, None),
        ("/b/z", None, None),
        ("/c", None, {}),
    ]


def test_types_count_and_the_writing_of_a_number_does_not() -> None:
    assert changes({"a": 1, "b": 1, "c": [1, {"d": True}]}, {"a": True, "b": 1.0, "c": [1.0, {"d": 1}]}) == [
        ("/a", 1, True),
        ("/c", [1, {"d": True}], [1.0, {"d": 1}]),
    ]


def test_an_object_that_becomes_something_else_is_one_change() -> None:
    assert changes({"a": {"b": 1}}, {"a": [1]}) == [("/a", {"b": 1}, [1])]


_documents = st.dictionaries(
    st.text("ab/~", max_size=2),
    st.recursive(
        st.none() | st.booleans() | st.integers(0, 2),
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", max_size=1), inner, max_size=2)
        ),
        max_leaves=6,
    ),
    max_size=4,
)


@given(before=_documents, after=_documents)
def test_a_document_differs_from_its_copy_in_nothing(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert changes(before, copy.deepcopy(before)) == []
    forward, backward = changes(before, after), changes(after, before)
    assert sorted(path for path, _, _ in forward) == sorted(path for path, _, _ in backward)
    if not forward:
        assert before == after


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            {"defaults": {"cacheEnabled": True, "ttlSeconds": 3600}, "fqdns": ["a.example", "b.example"]},
            {"defaults": {"cacheEnabled": False, "ttlSeconds": 90}, "fqdns": []},
            [
                ("The cache is on", "yes", "no"),
                ("Results live for", "1 h", "90 s"),
                ("Addresses that programs connect to", "a.example, b.example", "–"),
            ],
        ),
        (
            {"labels": {"team": "a"}},
            {"labels": {"a/b": "c"}, "warehouse": {"adapterType": "databricks", "port": 443}},
            [
                ("Label team", "a", "–"),
                ("Label a/b", "–", "c"),
                ("Kind", "–", "databricks"),
                ("Port", "–", "443"),
            ],
        ),
        (
            {},
            {"access": {"staffApproval": "required"}, "billingEmail": "a@example.org"},
            [
                ("When staff of the service want to read it", "–", "an owner approves it first"),
                ("Billing email", "–", "a@example.org"),
            ],
        ),
    ],
)
def test_fields_are_said_with_their_labels(
    before: dict[str, Any], after: dict[str, Any], said: list[tuple[str, str, str]]
) -> None:
    changes = describe_fields(diff_documents(before=before, after=after))
    assert [(it.field, it.before, it.after) for it in changes] == said


def test_labels_are_those_of_the_form() -> None:
    form = Path(settings.BASE_DIR, "tenantadmin/static/dashboard/pages/config.js").read_text()
    assert [label for label in LABELS.values() if f'"{label}"' not in form] == []
