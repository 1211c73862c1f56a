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
from accounts.models.tenants import tenant_name_key
from accounts.tenants.names import normalize_name
from tenantadmin.lib.core.hosts import lies_in, normalize_fqdn


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
    assert [(change.field, change.before, change.after) for change in changes] == said


def test_labels_are_those_of_the_form() -> None:
    form = Path(settings.BASE_DIR, "tenantadmin/static/dashboard/pages/config.js").read_text()
    assert [label for label in LABELS.values() if f'"{label}"' not in form] == []


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("SQL.Example.ORG", "sql.example.org"),
        ("bücher.example.org", "xn--bcher-kva.example.org"),
        ("BÜCHER.example.org", "xn--bcher-kva.example.org"),
        ("bu\u0308cher.example.org", "xn--bcher-kva.example.org"),
        ("xn--bcher-kva.example.org", "xn--bcher-kva.example.org"),
        ("faß.example.org", "xn--fa-hia.example.org"),
        ("1.example.org", "1.example.org"),
    ],
)
def test_a_host_name_has_one_spelling(text: str, stored: str) -> None:
    assert normalize_fqdn(text) == stored


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "localhost",
        "a..b",
        ".a.b",
        "a.b.",
        "a.b。",
        "-a.example.org",
        "a-.example.org",
        "ab--c.example.org",
        "xn--a.example.org",
        "a_b.example.org",
        "*.example.org",
        "a b.example.org",
        "a.example.org:443",
        "http://a.example.org",
        "user@example.org",
        "10.0.0.1",
        "a.0x7f",
        "::1",
        "[::1].example.org",
        "ｅxample.org",
        "\u212a.example.org",
        "☃.example.org",
        "a\u200db.example.org",
        "x" * 64 + ".example.org",
        ".".join(["a" * 60] * 5),
        "a\0.example.org",
        "a\n.example.org",
    ],
)
def test_an_invalid_host_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        normalize_fqdn(text)


@given(st.text())
def test_a_stored_host_name_is_its_own_spelling_and_ascii(text: str) -> None:
    for candidate in (text, f"{text}.example.org"):
        try:
            stored = normalize_fqdn(candidate)
        except ValueError:
            continue
        assert normalize_fqdn(stored) == stored
        assert stored.isascii()
        assert stored == stored.lower()
        assert len(stored) <= 253


@given(st.text(min_size=1, max_size=120))
def test_a_stored_tenant_name_is_its_own_spelling(text: str) -> None:
    try:
        stored = normalize_name(text)
    except ValueError:
        return
    assert normalize_name(stored) == stored
    assert 1 <= len(stored) <= 100
    assert tenant_name_key(stored) == tenant_name_key(text)


@pytest.mark.parametrize("character", ["\u202e", "\u200b", "\u2066", "\ufeff", "\u00ad", "\n", "\0"])
def test_a_name_has_no_invisible_character(character: str) -> None:
    with pytest.raises(ValueError, match=r"A name must not contain (invisible|control) characters\."):
        normalize_name(f"Ac{character}me")


@pytest.mark.parametrize("name", ["👩\u200d💻 Ada", "می\u200cخواهم"])
def test_a_name_may_have_joiners(name: str) -> None:
    assert normalize_name(name) == name


@pytest.mark.parametrize(
    ("one", "other"),
    [("Straße", "STRASSE"), ("Caf\u00e9", "CAFE\u0301"), (" Lager", "lager\t"), ("ΣΑΣ", "σας")],
)
def test_spellings_of_one_name(one: str, other: str) -> None:
    assert tenant_name_key(one) == tenant_name_key(other)


def test_lying_in_a_domain_counts_whole_labels() -> None:
    assert lies_in("example.org", "example.org")
    assert lies_in("a.b.example.org", "example.org")
    assert not lies_in("notexample.org", "example.org")
    assert not lies_in("example.org", "a.example.org")
