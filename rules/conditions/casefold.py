"""Lower case as the log's engine has it: character by character, never changing a text's length."""

from __future__ import annotations


def fold_case(text: str) -> str:
    """Lower a text as DuckDB's ``lower`` does.

    ``str.lower`` alone differs in two places: a final sigma depends on what stands before it, and
    ``İ`` becomes two characters.
    """
    if text.isascii():
        return text.lower()
    return "".join("i" if character == "İ" else character.lower() for character in text)
