"""Whether two names may be one table, in plain Python, character by character.

It was written from the decisions before the code that it judges, and shares nothing with it.
"""

from __future__ import annotations

from functools import cache

CLOSING = {'"': '"', "`": "`", "[": "]"}
SPACES = " \t\n\r\f\v"


def parse(name: str, database: str = "") -> list[str]:
    """Return the parts of a name, the table last."""
    raw: list[str] = []
    rest = name
    while True:
        part, rest, ended = _take(rest)
        raw.append(part)
        if ended:
            break
    parts = [fold(part) for part in raw]
    while len(parts) > 1 and parts[0] == "":
        parts.pop(0)
    parts = [part or "public" for part in parts[:-1]] + parts[-1:]
    if database and len(parts) == 2:
        parts = parse(database) + parts
    return parts


def _take(text: str) -> tuple[str, str, bool]:
    """Return the first part, the text after its dot, and whether there is no further part."""
    start = text.lstrip(SPACES)
    if start and start[0] in CLOSING:
        closing, content, at = CLOSING[start[0]], "", 1
        while at < len(start):
            if start[at] != closing:
                content += start[at]
                at += 1
            elif start[at + 1 : at + 2] == closing:
                content += closing
                at += 2
            else:
                after = start[at + 1 :].lstrip(SPACES)
                if after == "" or after[0] == ".":
                    return content, after[1:], after == ""
                break
    part, dot, rest = text.partition(".")
    return part.strip(SPACES), rest, not dot


def fold(text: str) -> str:
    """Return the text without differences of case; a letter stays one letter."""
    return "".join(folded if len(folded := letter.casefold()) == 1 else letter.lower() for letter in text)


def compare(one: list[str], other: list[str]) -> str:
    """Return ``same``, ``doubt`` or ``different``."""
    if any(mine != theirs for mine, theirs in zip(reversed(one), reversed(other), strict=False)):
        return "different"
    return "same" if len(one) == len(other) else "doubt"


def compare_pattern(pattern: str, name: str, database: str = "") -> str:
    written, filled, parts = parse(pattern), parse(pattern, database), parse(name, database)
    if "*" not in pattern:
        return compare(filled, parts)
    if _glob(written, parts) or _glob(filled, parts):
        return "same"
    if any(_glob(filled, parts[start:]) for start in range(1, len(parts))):
        return "doubt"
    if len(parts) < len(filled):
        pairs = zip(reversed(filled), reversed(parts), strict=False)
        if all(_glob([mine], [theirs]) for mine, theirs in pairs):
            return "doubt"
    return "different"


def _glob(pattern: list[str], parts: list[str]) -> bool:
    """Return True if the whole pattern matches the whole name. A ``*`` also matches the end of a part."""
    # A private character ends each part, so that a dot in quotes is no end.
    text, wanted = "\ue000".join(parts), "\ue000".join(pattern)

    @cache
    def matches(at: int, position: int) -> bool:
        if at == len(wanted):
            return position == len(text)
        if wanted[at] == "*":
            return matches(at + 1, position) or (position < len(text) and matches(at, position + 1))
        return position < len(text) and text[position] == wanted[at] and matches(at + 1, position + 1)

    return matches(0, 0)
