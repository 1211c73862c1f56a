"""Tests of the one form of email addresses. Contract: User."""

from __future__ import annotations

import unicodedata
from typing import Any

import idna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantadmin.lib.core.emails import check_email, normalize_email


@pytest.mark.parametrize(
    ("text", "email"),
    [
        (" Ada@Example.ORG\t", "ada@example.org"),
        ("zoe@bücher.example", "zoe@xn--bcher-kva.example"),
        ("zoe@BÜCHER.example", "zoe@xn--bcher-kva.example"),
        ("zoe@bu\u0308cher.example", "zoe@xn--bcher-kva.example"),
        ("zoe@XN--BCHER-KVA.example", "zoe@xn--bcher-kva.example"),
        ("zoe@straße.example", "zoe@xn--strae-oqa.example"),
        ("zoe@STRAẞE.example", "zoe@xn--strae-oqa.example"),
        ("zoe@strasse.example", "zoe@strasse.example"),
        ("a+b'%@example.org", "a+b'%@example.org"),
    ],
)
def test_its_form(text: str, email: str) -> None:
    assert check_email(text) == email
    assert normalize_email(text) == email


@pytest.mark.parametrize(
    "text",
    [
        "ada",
        "@example.org",
        "ada@",
        "ada@org",
        "ada@localhost",
        "ada@example.org.",
        "ada@[127.0.0.1]",
        "ada@[IPv6:::1]",
        "ada@127.0.0.1",
        "ada@0x7f.1",
        '"ada"@example.org',
        '"a b"@example.org',
        "a/b@example.org",
        "é@example.org",
        "\u212aarl@example.org",  # the Kelvin sign
        "karl@\u212aino.example",
        "ada@e\uff58ample.org",  # full-width x
        "ada@example\u3002org",  # ideographic full stop
        "ada@exam\u00adple.org",  # soft hyphen
        "ada@ﬁsh.example",
        "ada@example.ΒΌΛΟΣ",
        "ada@xn--a.example",
        "ada@a_b.example",
        "ada@example.org\nBcc: eve@example.org",
        "ada\r\n@example.org",
        f"{'a' * 310}@example.org",
    ],
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        check_email(text)
    stripped = text.strip()
    assert normalize_email(text) == (stripped.lower() if stripped.isascii() else stripped)


def test_localhost_is_a_domain_in_development(settings: Any) -> None:
    settings.DEBUG = True
    assert check_email("Ada@LOCALHOST") == "ada@localhost"


#: Letters that mapping, folding or composition treats in a peculiar way.
PECULIAR = "aAzZ09-.ßẞſıİKÅüÜu\u0308σςΣéÉx\uff58\u3002\u00ad\u200dﬁ日本"


@given(st.text(st.sampled_from(PECULIAR), min_size=1, max_size=12), st.sampled_from(["ada", "A.D.a+x"]))
def test_one_host_has_one_form(label: str, local: str) -> None:
    text = f"{local}@{label}.example"
    try:
        email = check_email(text)
    except ValueError:
        return
    host = email.rpartition("@")[2]
    assert email.isascii()
    assert check_email(email) == email
    # All ways to write the host lead to it.
    assert check_email(f"{local}@{idna.decode(host)}") == email
    for form in ("NFC", "NFD"):
        assert check_email(unicodedata.normalize(form, text)) == email
    # A program that maps names reaches the same host.
    assert idna.encode(f"{label}.example", uts46=True, transitional=False).decode() == host
