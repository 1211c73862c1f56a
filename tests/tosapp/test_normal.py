"""The normal form of the terms and their hash. Contract: Terms of service."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tosapp.normal import normalize, terms_of

TEXTS = st.text(alphabet=st.sampled_from("a# \t\r\n\x0b\u00a0é"), max_size=40)


@pytest.mark.parametrize(
    ("markdown", "normal"),
    [
        ("# Terms", "# Terms"),
        ("# Terms\r\n\r\nText\r\n", "# Terms\n\nText"),
        ("\n \n\t\n# Terms\n\n\n", "# Terms"),
        ("a  \nb\t \n", "a\nb"),
        ("  indented\n\n\n  twice", "  indented\n\n\n  twice"),
        ("a\rb", "a\rb"),
        ("a\r", "a"),
        ("a\r\r\nb", "a\nb"),
        ("X\n\nAnnex X\n", "X\n\nAnnex X"),
        ("", ""),
        (" \r\n\t\r\n", ""),
    ],
)
def test_normalization(markdown: str, normal: str) -> None:
    assert normalize(markdown) == normal


def test_the_hash_is_the_md5_of_the_normal_form() -> None:
    terms = terms_of("# Términos \r\n")
    assert terms is not None
    assert terms.markdown == "# Términos"
    assert terms.hash == "741f36e51229d44e59ab389ffd944963"
    assert terms_of(" \r\n ") is None


@given(TEXTS)
def test_it_is_idempotent_and_normal(text: str) -> None:
    normal = normalize(text)
    assert normalize(normal) == normal
    lines = normal.split("\n")
    assert "\r\n" not in normal
    assert all(line == line.rstrip() for line in lines)
    assert not normal or (lines[0] and lines[-1])


@given(TEXTS, st.sampled_from(["", "\n", " \n", "\r\n\r\n"]), st.sampled_from(["", "\n", "\r\n \t\n"]))
def test_whitespace_around_a_document_does_not_change_it(text: str, before: str, after: str) -> None:
    if text.startswith(("\n", "\r")) or text.endswith("\r"):
        return
    assert normalize(before + text + after) == normalize(text)
