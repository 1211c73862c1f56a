"""Rewrites of one text, as a language model may send them: honest ones, and more than 200 hostile ones."""
# ruff: noqa: E501  (hostile texts are long)

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

TEMPLATE: Final = "The hit rate of {moved-1-rule} fell from {moved-1-before} to {moved-1-rate}, over {moved-1-requests} requests."
DOCUMENT: Final = {"sections": [{"id": "moved", "heading": "Hit rates that moved", "text": TEMPLATE}]}
HONEST: Final = (
    TEMPLATE,
    "Over {moved-1-requests} requests, {moved-1-rule} fell: it had {moved-1-before} of hits, and now has {moved-1-rate}.",
    "{moved-1-rule} fell from {moved-1-before} to {moved-1-rate}; that is seen in {moved-1-requests} requests. Often so!",
    "Here’s what moved — {moved-1-rule}: {moved-1-before}, then {moved-1-rate} ({moved-1-requests} requests).",
    "{moved-1-rule} {moved-1-before} {moved-1-rate} {moved-1-requests} {moved-1-rate}",
)
IDS: Final = "{moved-1-rule}, {moved-1-before}, {moved-1-rate}, {moved-1-requests}"


def hostile() -> Iterator[str]:
    """Yield rewrites that would change a number, or slip something else past the reader."""
    # Digits, in every script and disguise.
    for digit in "0123456789٣४५６²₃½Ⅷ⑦〇一万𝟙𝟚":
        yield f"{IDS}, and {digit} more"
    for text in ("3.5", "1e9", "0x1F", "-7", "10,000", "#1", "1st", "99%", "2x", "v1", "2026-03-01"):
        yield f"It was {text}: {IDS}"
    # Words for numbers.
    for word in (
        *[
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
        ],
        *[
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
            "twenty",
            "thirty",
            "forty",
            "fifty",
            "sixty",
            "seventy",
            "eighty",
            "ninety",
        ],
        *[
            "hundred",
            "thousand",
            "million",
            "billion",
            "trillion",
            "dozen",
            "dozens",
            "hundreds",
            "thousands",
            "millions",
        ],
        *[
            "half",
            "double",
            "doubled",
            "triple",
            "tripled",
            "quadruple",
            "twice",
            "thrice",
            "once",
            "quarter",
            "halved",
            "nil",
            "nought",
        ],
        *[
            "first",
            "second",
            "third",
            "fourth",
            "fifth",
            "tenth",
            "hundredth",
            "none",
            "both",
            "pair",
            "couple",
            "single",
        ],
        *[
            "twofold",
            "tenfold",
            "twentyfold",
            "twentyfive",
            "fiftyish",
            "fortytwo",
            "threes",
            "hundredsome",
            "percent",
        ],
    ):
        yield f"There were {word} of them: {IDS}"
    for word in (
        "TWO",
        "Twenty-five",
        "tw-o",
        "t w o",
        "t.w.o",
        "T-w-O",
        "tw o",
        "th re e",
        "two's",
        "VIII",
        "XL",
    ):
        yield f"There were {word} of them: {IDS}"
    for word in (
        "lO",
        "lOO",
        "OO",
        "Ill0",
        "two",
        "tw\u200bo",
        "tw\u00ado",
        "twо",
        "ｔｗｏ",
        "zwei",
        "días",
        "deuxième",
    ):
        yield f"There were {word} of them now: {IDS}" if not word.isascii() else f"{word} of {IDS} or 5"
    # Ids that are missing, unknown or broken.
    yield from ("", " ", "\n", "Nothing happened.", "All is well, and nothing is unusual.")
    for name in ("moved-1-rule", "moved-1-before", "moved-1-rate", "moved-1-requests"):
        yield TEMPLATE.replace(f"{{{name}}}", "it")
        yield TEMPLATE.replace(f"{{{name}}}", f"{{{name}")
        yield TEMPLATE.replace(f"{{{name}}}", f"{name}}}")
        yield TEMPLATE.replace(f"{{{name}}}", f"{{{{{name}}}}}")
        yield TEMPLATE.replace(f"{{{name}}}", f"{{{name.upper()}}}")
        yield TEMPLATE.replace(f"{{{name}}}", f"{{ {name} }}")
    for name in (
        "requests",
        "moved-2-rate",
        "moved-1",
        "x",
        "moved-1-rate.value",
        "0",
        "",
        "__class__",
        "a!r",
    ):
        yield f"{IDS} and {{{name}}}"
    # Length.
    yield TEMPLATE * 2
    yield IDS + " and so on" * 20
    # Markup, links and code.
    for text in (
        *(
            "<b>bold</b>",
            "<script>alert()</script>",
            "[here](now)",
            "**bold**",
            "`code`",
            "| cell |",
            "# heading",
        ),
        *("https://evil", "http://evil.example", "www.evil.example", "evil.com", "mail me@evil", "mailto:me"),
        *(
            "a\x00b",
            "a\x1b[mb",
            "a\tb",
            "a\u202eb",
            "a\u2028b",
            "$total",
            "rate = rate",
            "back\\slash",
            "~gone~",
        ),
        *("&lt;b&gt; <", "é", "Привет", "你好", "🙂"),
    ):
        yield f"{IDS}: {text}"
    # Causes and directions that the template does not have.
    for text in (
        *(
            "caused by a write",
            "because of it",
            "due to a write",
            "thanks to it",
            "it led to that",
            "it was triggered",
        ),
        *(
            "it resulted from that",
            "it rose",
            "it increased",
            "it is higher now",
            "it grew",
            "it improved",
            "it is up",
        ),
        *("it jumped", "it is better", "the write is to blame for it, which is responsible"),
    ):
        yield f"{IDS}: {text}"


REWRITES: Final = list(dict.fromkeys(hostile()))
