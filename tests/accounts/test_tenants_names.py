"""Names in their one spelling. Contract: Tenant, FQDNs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.models.tenants import tenant_name_key
from accounts.tenants.names import normalize_name
from tenantadmin.lib.core.hosts import lies_in, normalize_fqdn


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
