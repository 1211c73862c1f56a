"""The rows of the policies and their page. In a file that needs no database, so that it takes no time."""

from __future__ import annotations

from pathlib import Path

from scripts.permissions import permissions_markdown


def test_the_documentation_is_current() -> None:
    page = Path(__file__).parents[2] / "docs" / "permissions.md"
    assert page.read_text() == permissions_markdown(), "run 'make contract'"
