"""docs/security.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs/security.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/.:]+)`", TEXT)))


def test_the_page_names_tests() -> None:
    assert len(NAMED) > 30


@pytest.mark.parametrize("name", NAMED)
def test_a_named_test_exists(name: str) -> None:
    file, *members = name.split("::")
    text = (ROOT / file).read_text()
    for member in members:
        assert re.search(rf"^\s*(def|class) {member}\b", text, re.MULTILINE)
