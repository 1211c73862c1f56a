"""Read the HTML of the admin site's lists and pages."""

from __future__ import annotations

import re
from html import unescape

_CELL = r'<(t[hd]) class="[^"]*?\bfield-(\w+)[^>]*>(.*?)</\1>'


def cells(listed: str, *names: str) -> list[tuple[str, str]]:
    """Return (column, text) of the cells of a list in the columns ``names``, row by row."""
    found = [(name, text_of(cell)) for _, name, cell in re.findall(_CELL, listed, re.DOTALL)]
    return [(name, text) for name, text in found if name in names]


def text_of(html: str) -> str:
    """Return the text of a piece of HTML, with single spaces."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def labels(shown: str) -> set[str]:
    """Return the labels of the fields on the page of a row."""
    return {text_of(label) for label in re.findall(r"<label[^>]*>(.*?)</label>", shown, re.DOTALL)}
