"""Check a language model's rewrite of a digest. It may not contain numbers.

The model must write ``{id}`` in place of each number and name. A text is refused if it has digits, words for
numbers, unknown or missing ids, or twice the length of its template. It is also refused for what could
mislead a reader: markup, links, letters that English does not use, a cause, a direction (rise or fall) that
the template does not have, or a request to the reader. Then the template is shown.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any, Final

from analytics.digest.facts import PLACEHOLDER, placeholders

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: A rewrite of this many times the length of its template is refused.
MAX_GROWTH: Final = 2
_SMALL: Final = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS: Final = ("twenty", "thirty", "forty", "fourty", "fifty", "sixty", "seventy", "eighty", "ninety")
_LARGE: Final = ("hundred", "thousand", "million", "billion", "trillion", "quadrillion", "dozen", "score")
_ORDINALS: Final = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
    "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth",
    "eighteenth", "nineteenth", "twentieth", "thirtieth", "fortieth", "fiftieth", "sixtieth",
    "seventieth", "eightieth", "ninetieth", "hundredth", "thousandth", "millionth", "billionth",
)  # fmt: skip
_OTHERS: Final = (
    "zero", "nil", "nought", "naught", "none", "null", "once", "twice", "thrice", "both", "pair", "couple",
    "half", "halves", "halve", "halved", "halving", "quarter", "quartered", "single", "double", "doubled",
    "doubling", "triple", "tripled", "tripling", "treble", "quadruple", "quadrupled", "quintuple",
    "tenfold", "percent", "percentage", "decade", "century", "infinite", "infinity",
)  # fmt: skip
_WORDS: Final = frozenset({*_SMALL, *_TENS, *_LARGE, *_ORDINALS, *_OTHERS})
#: A number with an ending or another number: ``twentyfold``, ``hundredsome``, ``twentytwo``, ``dozens``.
_PART: Final = "|".join(sorted({*_SMALL, *_TENS, *_LARGE, *_ORDINALS, "half", "and"}, key=len, reverse=True))
_COMPOUND: Final = re.compile(rf"(?:{_PART})+(?:fold|some|ish|odd|plus|s|es|ths?)?")
_LETTERS: Final = re.compile(r"[a-z]+")
#: Letters that are separated one by one: ``t w o``, ``t.w.o``.
_SPACED: Final = re.compile(r"(?:\b[a-z][^a-z]{1,3}){2,}[a-z]\b")
#: Roman numerals of two letters and more, in capitals.
_ROMAN: Final = re.compile(r"\b[IVXLCDM]{2,}\b")
_LINK: Final = re.compile(
    r"://|\bwww\b|\bmailto\b|@|\b\w+\.(?:com|net|org|io|info|dev|biz|co|ru|cn)\b", re.IGNORECASE
)
#: Letters that look like digits: ``lOO``.
_LOOKALIKE: Final = re.compile(r"\b[OIlo]{2,}\b")
#: A digest names coincidences, never causes.
_CAUSE: Final = re.compile(
    r"\b(?:caus\w*|because|due to|owing to|thanks to|le(?:d|ads?|ading) to|result(?:ed|ing|s)? (?:from|in)"
    r"|trigger\w*|blame\w*|responsible)\b"
)
_RISE: Final = re.compile(
    r"\b(?:rose|ris(?:e|es|en|ing)|increas\w*|grew|grow\w*|climb\w*|jump\w*|surg\w*|soar\w*|higher|more|up"
    r"|improv\w*|better|above|exceed\w*|gain\w*)\b"
)
_FALL: Final = re.compile(
    r"\b(?:fell|fall\w*|decreas\w*|declin\w*|drop\w*|sank|sink\w*|plung\w*|shr[aiu]nk\w*|lower\w*|less|fewer"
    r"|down|worse\w*|below|lost|los[es]\w*)\b"
)
#: A digest tells and asks for nothing. Who wants to lure a reader needs such a word.
_APPEAL: Final = re.compile(
    r"\b(?:you\w*|please|must|click\w*|tap|press|call\w*|dial|phone\w*|text|reply|repl(?:y|ies)|e?mail\w*"
    r"|write to|send\w*|contact\w*|visit\w*|go to|open\w*|download\w*|install\w*|run|execute|enter\w*|type"
    r"|passwords?|passcodes?|credentials?|secrets?|tokens?|accounts?|log ?(?:in|on)|sign ?in|signed out"
    r"|verif\w*|confirm\w*|authenticat\w*|authoriz\w*|approv\w*|unlock\w*|reset\w*|renew\w*|expir\w*"
    r"|suspend\w*|lock\w*|block\w*|urgent\w*|immediate\w*|support|help ?desk|administrators?|security"
    r"|pay\w*|invoice\w*|refund\w*|free|won|prize|gift\w*|ignore|disregard|grant\w*|drop (?:the|a|all)"
    r"|delet\w*|disabl\w*|turn off|transfer\w*)\b"
)
_MARKUP: Final = frozenset("<>[]`*_|#\\^~$={}%")
_PUNCTUATION: Final = frozenset("–—‘’“”…")


class RewriteRefused(Exception):
    """A rewrite was refused. The message says why."""


def check_rewrite(document: Mapping[str, Any], texts: Sequence[str]) -> None:
    """Check the rewritten texts of all sections of a digest.

    Raises:
        RewriteRefused: one of them may not replace its template.
    """
    sections = document["sections"]
    if len(texts) != len(sections):
        raise RewriteRefused(f"There are {len(sections)} texts, and {len(texts)} came back.")
    for section, text in zip(sections, texts, strict=True):
        _check_text(section["text"], text)


def _check_text(template: str, text: str) -> None:
    if not text.strip():
        raise RewriteRefused("A text is empty.")
    if len(text) >= MAX_GROWTH * len(template):
        raise RewriteRefused("A text has twice the length of its template.")
    expected, used = set(placeholders(template)), set(placeholders(text))
    if unknown := sorted(used - expected):
        raise RewriteRefused(f"The id {unknown[0]} is not one of this text.")
    if missing := sorted(expected - used):
        raise RewriteRefused(f"The id {missing[0]} is missing.")
    # A space, so that the letters around an id do not form a word.
    words = PLACEHOLDER.sub(" ", text)
    _check_characters(words)
    _check_words(words)
    _check_claims(PLACEHOLDER.sub(" ", template).lower(), words.lower())


def _check_characters(words: str) -> None:
    for character in words:
        if character.isnumeric() or unicodedata.normalize("NFKC", character).isnumeric():
            raise RewriteRefused("A text has a digit.")
        if character in _MARKUP:
            raise RewriteRefused(f"A text has the character {character!r}.")
        if not character.isascii() and character not in _PUNCTUATION:
            raise RewriteRefused("A text has a character that English does not use.")
        if not character.isprintable() and character != "\n":
            raise RewriteRefused("A text has a control character.")


def _check_words(words: str) -> None:
    if _LINK.search(words):
        raise RewriteRefused("A text has a link or an address.")
    if _ROMAN.search(words):
        raise RewriteRefused("A text has a Roman numeral.")
    if _LOOKALIKE.search(words):
        raise RewriteRefused("A text has letters that look like digits.")
    lower = words.lower()
    if _SPACED.search(lower):
        raise RewriteRefused("A text has a word with spaces between its letters.")
    parts = _LETTERS.findall(lower)
    for start, word in enumerate(parts):
        if word in _WORDS or (_COMPOUND.fullmatch(word) and word != "and"):
            raise RewriteRefused(f"The word {word!r} is a number.")
        # Also "tw-o" and "th re e".
        for length in (2, 3):
            if (joined := "".join(parts[start : start + length])) in _WORDS:
                raise RewriteRefused(f"The word {joined!r} is a number.")


def _check_claims(template: str, words: str) -> None:
    if _CAUSE.search(words):
        raise RewriteRefused("A text names a cause.")
    appeals = {match.group() for match in _APPEAL.finditer(words)}
    if added := sorted(appeals - {match.group() for match in _APPEAL.finditer(template)}):
        raise RewriteRefused(f"A digest asks its reader for nothing: {added[0]!r}.")
    for direction in (_RISE, _FALL):
        match = direction.search(words)
        if match and not direction.search(template):
            raise RewriteRefused(f"The template does not say {match.group()!r}.")
