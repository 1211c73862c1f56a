"""A digest as markdown, plain text and paragraphs of HTML."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.utils.html import conditional_escape, format_html
from django.utils.safestring import mark_safe

from analytics.digest.facts import NameKind, fill, show_fact, show_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

#: Characters of a statement that a text shows. The document has all of it.
_STATEMENT: Final = 160
#: A statement and the name of a rule come from the log and may contain anything.
_SPACE: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
#: Invisible characters that change the direction or hide parts of a text.
_INVISIBLE: Final = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
_BACKTICKS: Final = re.compile("`+")


@dataclass(frozen=True, slots=True)
class ShownSection:
    """A section with its facts and names filled in."""

    heading: str
    lines: Sequence[str]


def digest_title(document: Mapping[str, Any], *, tenant: str) -> str:
    """Return the title of a digest for the tenant named ``tenant``."""
    name = _plain(tenant)
    if document["kind"] == "day":
        return f"{name}: digest of {document['period']}"
    return f"{name}: digest of week {document['period']}, {document['from']} to {document['to']}"


def as_text(document: Mapping[str, Any], texts: Sequence[str], *, tenant: str) -> str:
    """Return the digest as plain text. ``texts`` are those of its sections: templates or their rewrites."""
    title = digest_title(document, tenant=tenant)
    parts = [f"{title}\n{'=' * len(title)}"]
    for section in _filled(document, texts, {it["id"]: _text_of(it) for it in document["names"]}):
        lines = "\n".join(f"- {line}" for line in section.lines)
        parts.append(f"{section.heading}\n\n{lines}")
    return "\n\n".join(parts) + "\n"


def as_markdown(document: Mapping[str, Any], texts: Sequence[str], *, tenant: str) -> str:
    """Return the digest as markdown; see `as_text`. Names are code, so that nothing in them is markup."""
    parts = [f"# {_escape_markdown(digest_title(document, tenant=tenant))}"]
    for section in _filled(document, texts, {it["id"]: _code_of(it) for it in document["names"]}):
        lines = "\n".join(f"- {line}" for line in section.lines)
        parts.append(f"## {section.heading}\n\n{lines}")
    return "\n\n".join(parts) + "\n"


def as_html_sections(
    document: Mapping[str, Any],
    texts: Sequence[str],
    *,
    link_fact: Callable[[Mapping[str, Any]], str] | None = None,
) -> list[ShownSection]:
    """Return the sections as safe HTML: names are elements, all else is escaped. See `as_text`.

    ``link_fact`` returns the address to which the number of a fact (as JSON) leads.
    """
    names = {it["id"]: format_html("<code>{}</code>", _text_of(it)) for it in document["names"]}
    if link_fact is not None:
        names |= {
            it["id"]: format_html('<a href="{}">{}</a>', link_fact(it), show_fact(it))
            for it in document["facts"]
        }
    # Escaping leaves the braces of the ids.
    escaped = [conditional_escape(text) for text in texts]
    return [
        ShownSection(section.heading, [mark_safe(line) for line in section.lines])  # noqa: S308  # escaped
        for section in _filled(document, escaped, names)
    ]


def _filled(
    document: Mapping[str, Any], texts: Sequence[str], names: Mapping[str, str]
) -> Iterator[ShownSection]:
    values = show_values(document, show_name=lambda name: names[name["id"]]) | dict(names)
    for section, text in zip(document["sections"], texts, strict=True):
        yield ShownSection(section["heading"], [fill(line, values) for line in text.splitlines() if line])


def _text_of(name: Mapping[str, Any]) -> str:
    text = _plain(name["value"])
    is_long = name["kind"] == NameKind.STATEMENT and len(text) > _STATEMENT
    return f"{text[:_STATEMENT]}…" if is_long else text


def _code_of(name: Mapping[str, Any]) -> str:
    """Return a name as a code span of markdown, whose fence is longer than any run of backticks in it."""
    text = _text_of(name)
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}" if longest else f"`{text}`"


def _plain(text: str) -> str:
    """Return a text on one line, without control characters and invisible ones."""
    return _SPACE.sub(" ", _INVISIBLE.sub("", text)).strip()


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~&])", r"\\\1", text)
