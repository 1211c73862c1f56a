"""Find the word that makes the result of a statement depend on who asks, in which session, or when.

In Python and in SQL with the same results. A word counts where it is called, never where it is a column after
a dot, an alias, a text or in a comment. In doubt it counts: the words of all dialects count in each of them,
where a function of that name may exist too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import re2

from rules.conditions.literals import quote_text
from rules.dialects.text import without_text, without_text_sql
from rules.dialects.words import WORDS, Form, On

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rules.dialects.words import Words

#: The forms of a word that may be a column, or a table that is the same for all.
_DOUBTFUL: Final = frozenset({Form.COLUMN, Form.TABLE})
#: What comes before a word. No dot and no colon: there it is a column of a table, a function of a schema that
#: people made, or a member of JSON.
_ALONE: Final = r"(?:^\s*|[^\pL\pN_$#@.:\s]|[^.:\s]\s+)"
_BUILT_IN: Final = rf"(?:{_ALONE}|\b(?:pg_catalog|builtin)\s*\.\s*)"
_ANYWHERE: Final = r"(?:^|[^\pL\pN_$#@])"
_FROM: Final = r"\b(?:pg_catalog\s*\.\s*|(?:from|join)\s+(?:only\s+)?(?:pg_catalog\s*\.\s*)?)"
_START: Final = r"^[\s(]*"
#: What comes after a word that is not called, and is no table whose column follows.
_NO_CALL: Final = r"\s*(?:[^\pL\pN_$#@.\](\s]|\s[^.\](\s]|$)"
#: By form, what comes after a function. A word can be called too; in PostgreSQL, times have a precision.
_CALLED: Final = {Form.CALL: r"\s*\(", Form.EMPTY: r"\s*\(\s*\)"}
_CALLED_WORD: Final = r"\s*\(\s*[\d?]?\s*\)"
#: By form, what comes before a name that is not called, and after it.
_AROUND: Final = {
    Form.WORD: (_ALONE, _NO_CALL),
    Form.COLUMN: (_ALONE, _NO_CALL),
    Form.SCHEMA: (_ANYWHERE, r"\s*\."),
    # Behind another dollar sign, the rest is the end of a text.
    Form.MARK: (_ANYWHERE, r"(?:[^\pL\pN_$]|$)"),
    Form.TABLE: (_FROM, r"(?:[^\pL\pN_$#@(\s]|\s+[^(\s]|\s*$)"),
    Form.FIRST: (_START, r"\s"),
}
#: Quoted names that may be called, or are a schema or a table of the catalogue, lose their quotes. The others
#: are removed.
_QUOTED: Final = (
    (r'["`](\w+)["`](\s*[.(])', r"\1\2"),
    (r'["`](pg_\w+)["`]', r"\1"),
    (r'"(?:[^"]|"")*"|`(?:[^`]|``)*`', " "),
)
#: The parentheses at the end of a call.
_PARENTHESES: Final = r"\s*\([\s\d?)]*$"


def _names(words: Iterable[Words]) -> list[str]:
    return sorted({name for row in words for name in row.names.split()})


_COLUMNS: Final = _names(row for row in WORDS if row.form is Form.COLUMN)
_ALIASES: Final = _names(row for row in WORDS if row.form in {Form.WORD, Form.COLUMN})
#: Names that are no calls: an alias, and a table with the name of a word that is a likely name.
_NAMES: Final = (
    rf"(?i)\b(?:as\s+(?:{'|'.join(_ALIASES)})"
    rf"|(?:from|join|into|update|table|only)\s+(?:{'|'.join(_COLUMNS)}))\b"
)
#: Python's placeholder.
_PLACEHOLDER: Final = r"%\(\w+\)s"
_REMOVED: Final = (*_QUOTED, (_PLACEHOLDER, " "), (_NAMES, " "))


@dataclass(frozen=True, slots=True)
class _Patterns:
    """Patterns whose group is a word: of one that is called, and of the others, the doubtful last."""

    called: str
    others: tuple[str, ...]


def _patterns(on: frozenset[On]) -> _Patterns:
    found = {form: _names(row for row in WORDS if row.on in on and row.form is form) for form in Form}
    words = [name for name in found[Form.WORD] if name not in _COLUMNS]
    called = (
        ([*found[Form.WORD], *found[Form.COLUMN]], _CALLED_WORD),
        *((found[form], after) for form, after in _CALLED.items()),
    )
    inner = "|".join(f"(?:{'|'.join(names)}){after}" for names, after in called)
    others = {**found, Form.WORD: words}
    return _Patterns(
        f"(?i){_BUILT_IN}({inner})",
        tuple(
            f"(?i){before}({'|'.join(others[form])}){after}"
            for form, (before, after) in _AROUND.items()
            if others[form]
        ),
    )


_ASKS: Final = _patterns(frozenset({On.IDENTITY, On.SESSION}))
_WHEN: Final = _patterns(frozenset({On.TIME}))
_DOUBTED: Final = f"(?i){'|'.join(_names(row for row in WORDS if row.form in _DOUBTFUL))}"
_compile: Final = cache(re2.compile)


def find_word(statement: str) -> str | None:
    """Return a word on which the result depends by who asks or by the session, as the statement writes it.

    A function has empty parentheses.
    """
    return _find(statement, _ASKS)


def find_certain_word(statement: str) -> str | None:
    """Return the word of `find_word`, or None if it may be a column, or a table that is the same for all."""
    word = find_word(statement)
    return None if word is None or _compile(_DOUBTED).fullmatch(word) else word


def find_time(statement: str) -> str | None:
    """Return a word on which the result depends by the time, as `find_word` does."""
    return _find(statement, _WHEN)


def _find(statement: str, patterns: _Patterns) -> str | None:
    plain = without_text(statement)
    for pattern, instead in _REMOVED:
        plain = _compile(pattern).sub(instead, plain)
    if match := _compile(patterns.called).search(plain):
        return str(_compile(_PARENTHESES).sub("()", match[1]))
    found = (_compile(pattern).search(plain) for pattern in patterns.others)
    return next((str(match[1]) for match in found if match), None)


def word_sql(statement: str) -> str:
    """Return SQL for `find_word` of a column."""
    plain = without_text_sql(statement)
    for pattern, instead in _REMOVED:
        plain = f"regexp_replace({plain}, {quote_text(pattern)}, {quote_text(instead)}, 'g')"
    called, *others = (
        f"nullif(regexp_extract(text, {quote_text(pattern)}, 1), '')"
        for pattern in (_ASKS.called, *_ASKS.others)
    )
    called = f"regexp_replace({called}, {quote_text(_PARENTHESES)}, '()')"
    return f"list_transform([{plain}], lambda text: coalesce({', '.join((called, *others))}))[1]"


def is_certain_sql(word: str, adapter_type: str) -> str:
    """Return SQL for whether a word of `word_sql` is certain: it can be no column, and no table for all.

    In some dialects of the column ``adapter_type``, SQL reserves a word that is a likely column in another.
    """
    reserved = [
        f"({adapter_type} IS NOT DISTINCT FROM {quote_text(row.dialect)}"
        f" AND regexp_full_match({word}, {quote_text(f'(?i){name}')}))"
        for row in WORDS
        for name in row.names.split()
        if row.form is Form.WORD and name in _COLUMNS
    ]
    return f"({' OR '.join([f'NOT regexp_full_match({word}, {quote_text(_DOUBTED)})', *reserved])})"
