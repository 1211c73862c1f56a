"""Lower case as in DuckDB: character by character, so that the length does not change."""

from __future__ import annotations


def fold_case(text: str) -> str:
    """Return a text in lower case like DuckDB's ``lower``.

    ``str.lower`` differs in two cases: it has another letter for a sigma at the end of a word, and two
    characters for ``İ``.
    """
    if text.isascii():
        return text.lower()
    return "".join("i" if character == "İ" else character.lower() for character in text)
