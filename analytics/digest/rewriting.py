"""What a language model may do with the text of a digest: write it anew, without a number of its own.

It writes ``{id}`` where a number or a name belongs. A text with digits, words for numbers, unknown or missing
ids, or twice the length is refused. So is what could mislead a reader by other means: markup, links, letters
that English does not use, a cause, and a direction that the template does not have. Then the template stays.
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
#: ``twentyfold``, ``hundredsome``, ``twentytwo``, ``dozens``: a number with an ending or another number.
_PART: Final = "|".join(sorted({*_SMALL, *_TENS, *_LARGE, *_ORDINALS, "half", "and"}, key=len, reverse=True))
_COMPOUND: Final = re.compile(rf"(?:{_PART})+(?:fold|some|ish|odd|plus|s|es|ths?)?")
_LETTERS: Final = re.compile(r"[a-z]+")
#: Letters with something between each: ``t w o``, ``t.w.o``.
_SPACED: Final = re.compile(r"(?:\b[a-z][^a-z]{1,3}){2,}[a-z]\b")
#: Roman numerals of two letters and more, in capitals.
_ROMAN: Final = re.compile(r"\b[IVXLCDM]{2,}\b")
_LINK: Final = re.compile(
    r"://|\bwww\b|\bmailto\b|@|\b\w+\.(?:com|net|org|io|info|dev|biz|co|ru|cn)\b", re.IGNORECASE
)
#: ``lOO``: letters that look like digits.
_LOOKALIKE: Final = re.compile(r"\b[OIlo]{2,}\b")
#: A digest says what coincides, never what caused something.
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
_MARKUP: Final = frozenset("<>[]`*_|#\\^~$={}%")
_PUNCTUATION: Final = frozenset("–—‘’“”…")


class Refused(Exception):
    """A rewrite was refused. The message says why."""


def check_rewrite(document: Mapping[str, Any], texts: Sequence[str]) -> None:
    """Check the rewritten texts of all sections of a digest.

    Raises:
        Refused: one of them may not take the place of its template.
    """
    sections = document["sections"]
    if len(texts) != len(sections):
        raise Refused(f"There are {len(sections)} texts, and {len(texts)} came back.")
    for section, text in zip(sections, texts, strict=True):
        _check_text(section["text"], text)


def _check_text(template: str, text: str) -> None:
    if not text.strip():
        raise Refused("A text is empty.")
    if len(text) >= MAX_GROWTH * len(template):
        raise Refused("A text has twice the length of its template.")
    wanted, given = set(placeholders(template)), set(placeholders(text))
    if unknown := sorted(given - wanted):
        raise Refused(f"The id {unknown[0]} is not one of this text.")
    if missing := sorted(wanted - given):
        raise Refused(f"The id {missing[0]} is missing.")
    # A space, so that what is around an id does not join to a word.
    words = PLACEHOLDER.sub(" ", text)
    _check_characters(words)
    _check_words(words)
    _check_claims(PLACEHOLDER.sub(" ", template).lower(), words.lower())


def _check_characters(words: str) -> None:
    for character in words:
        if character.isnumeric() or unicodedata.normalize("NFKC", character).isnumeric():
            raise Refused("A text has a digit.")
        if character in _MARKUP:
            raise Refused(f"A text has the character {character!r}.")
        if not character.isascii() and character not in _PUNCTUATION:
            raise Refused("A text has a character that English does not use.")
        if not character.isprintable() and character != "\n":
            raise Refused("A text has a control character.")


def _check_words(words: str) -> None:
    if _LINK.search(words):
        raise Refused("A text has a link or an address.")
    if _ROMAN.search(words):
        raise Refused("A text has a Roman numeral.")
    if _LOOKALIKE.search(words):
        raise Refused("A text has letters that look like digits.")
    lower = words.lower()
    if _SPACED.search(lower):
        raise Refused("A text has a word with spaces between its letters.")
    parts = _LETTERS.findall(lower)
    for start, word in enumerate(parts):
        if word in _WORDS or (_COMPOUND.fullmatch(word) and word != "and"):
            raise Refused(f"The word {word!r} is a number.")
        # Also "tw-o" and "th re e".
        for length in (2, 3):
            if (joined := "".join(parts[start : start + length])) in _WORDS:
                raise Refused(f"The word {joined!r} is a number.")


def _check_claims(template: str, words: str) -> None:
    if _CAUSE.search(words):
        raise Refused("A text names a cause.")
    for direction in (_RISE, _FALL):
        found = direction.search(words)
        if found and not direction.search(template):
            raise Refused(f"The template does not say {found.group()!r}.")
