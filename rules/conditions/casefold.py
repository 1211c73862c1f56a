"""Unicode's simple case folding, character by character, so that the length does not change.

RE2's ``(?i)``, Go's ``strings.EqualFold`` and JavaScript's regexes with ``iu`` fold in the same way. A folded
text is in lower case, and has one letter for all that fold to the same.
"""

from __future__ import annotations

from typing import Final

#: Letters that lower case leaves apart from the letter that they fold to.
_APART: Final = "ſµ\u0345\u1fbeϐϵϑϰϖϱςϕᲀᲁᲂᲃᲄᲅᲆᲇᲈẛ"
_TOGETHER: Final = "sμιιβεθκπρσφвдосттъѣꙋṡ"
_FOLDS: Final = str.maketrans(_APART, _TOGETHER)
#: The only letter that lower case changes and folding does not.
_KEPT: Final = "İ"


def fold_case(text: str) -> str:
    """Return a text without differences of case."""
    if text.isascii():
        return text.lower()
    lowered = "".join(letter if letter == _KEPT else letter.lower() for letter in text)
    return lowered.translate(_FOLDS)


def fold_case_sql(text: str) -> str:
    """Return SQL for `fold_case` of an expression. It is null if the expression is null."""
    folded = f"translate(lower(part), '{_APART}', '{_TOGETHER}')"
    parts = f"list_transform(string_split({text}, '{_KEPT}'), lambda part: {folded})"
    # ``translate`` is slow, and a text that has as many bytes as characters is ASCII.
    ascii_only = f"strlen({text}) = length({text})"
    return f"CASE WHEN {ascii_only} THEN lower({text}) ELSE array_to_string({parts}, '{_KEPT}') END"
