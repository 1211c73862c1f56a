"""What users wrote, in mails of the service."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantadmin.lib.core.emails import named, quoted, unlinked


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://evil.example/a?b", "[web address left out]"),
        ("see HTTP://evil.example.", "see [web address left out]"),
        ("www.evil.example/x y", "[web address left out] y"),
        ("hxxp:/evil.example", "[web address left out]"),
        ("evil.example/a", "evil[.]example/a"),
        ("mail.evil.example", "mail[.]evil[.]example"),
        ("bücher。example", "bücher[.]example"),
        ("Sales 2.0, v1.2 and 12.5 %. Then", "Sales 2.0, v1.2 and 12.5 %. Then"),
        ("ratio: a/b", "ratio: a/b"),
    ],
)
def test_no_mail_program_makes_a_link(text: str, shown: str) -> None:
    assert unlinked(text) == shown


@given(st.text(), st.text())
def test_each_line_is_quoted(before: str, after: str) -> None:
    lines = quoted(f"{before}\n{after}").splitlines()
    assert all(line.startswith(">") for line in lines)


@given(st.text())
def test_a_name_stays_within_its_quotation_marks(name: str) -> None:
    shown = named(name)
    assert (shown[0], shown[-1], len(shown.splitlines())) == ("“", "”", 1)
    assert not {*'“”„‟"«»'} & {*shown[1:-1]}
