"""Names of one line."""

from __future__ import annotations

import pytest

from tenantadmin.lib.core.emails import is_line


@pytest.mark.parametrize("text", ["", "Ada Lovelace", "Größe 1 — “x”", "データ", "👩‍💻", "a\u00a0b"])
def test_a_name_is_a_line(text: str) -> None:
    assert is_line(text)


@pytest.mark.parametrize(
    "text", ["a\nb", "a\r\nb", "a\tb", "\0", "a\x85b", "a\u2028b", "a\u2029b", "\x1b[31m"]
)
def test_what_breaks_it(text: str) -> None:
    assert not is_line(text)
