"""Render a digest as markdown, plain text or paragraphs of HTML."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from django.utils.html import conditional_escape, format_html
from django.utils.safestring import mark_safe

from analytics.digest.facts import NameKind, fill, show_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from django.utils.safestring import SafeString

#: The most characters of a statement in a text. The document has the whole statement.
_STATEMENT: Final = 160
#: Statements and rule names come from the log and may contain any character.
_SPACE: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
#: Invisible characters, which can change the direction of a text or hide parts of it.
_INVISIBLE: Final = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
_BACKTICKS: Final = re.compile("`+")


@dataclass(frozen=True, slots=True)
class ShownSection:
    """A section with its facts and names filled in."""

    id: str
    heading: str
    lines: Sequence[str]


def digest_title(document: Mapping[str, Any], *, tenant: str) -> str:
    """Return the title of a digest for the tenant named ``tenant``."""
    name = _plain(tenant)
    if document["kind"] == "day":
        return f"{name}: digest of {document['period']}"
    return f"{name}: digest of week {document['period']}, {document['from']} to {document['to']}"


def as_text(document: Mapping[str, Any], texts: Sequence[str], *, tenant: str) -> str:
    """Return the digest as plain text. ``texts`` has the template or the rewrite of each section."""
    title = digest_title(document, tenant=tenant)
    parts = [f"{title}\n{'=' * len(title)}"]
    for section in _filled(document, texts, {it["id"]: _text_of(it) for it in document["names"]}):
        lines = "\n".join(f"- {line}" for line in section.lines)
        parts.append(f"{section.heading}\n\n{lines}")
    return "\n\n".join(parts) + "\n"


def as_markdown(document: Mapping[str, Any], texts: Sequence[str], *, tenant: str) -> str:
    """Return the digest as markdown; see `as_text`. Names become code spans, so they contain no markup."""
    parts = [f"# {_escape_markdown(digest_title(document, tenant=tenant))}"]
    for section in _filled(document, texts, {it["id"]: _code_of(it) for it in document["names"]}):
        lines = "\n".join(f"- {line}" for line in section.lines)
        parts.append(f"## {section.heading}\n\n{lines}")
    return "\n\n".join(parts) + "\n"


def as_html_sections(
    document: Mapping[str, Any],
    texts: Sequence[str],
    *,
    link_name: Callable[[Mapping[str, Any]], str | None],
) -> list[ShownSection]:
    """Return the sections as safe HTML; see `as_text`. Names become elements, everything else is escaped.

    ``link_name`` returns the link of a name, or None.
    """
    names = {it["id"]: _element_of(it, link_name) for it in document["names"]}
    # Escaping does not change the braces of the ids.
    escaped = [conditional_escape(text) for text in texts]
    return [
        replace(section, lines=[mark_safe(line) for line in section.lines])  # noqa: S308  # escaped
        for section in _filled(document, escaped, names)
    ]


def _filled(
    document: Mapping[str, Any], texts: Sequence[str], names: Mapping[str, str]
) -> Iterator[ShownSection]:
    values = show_values(document, show_name=lambda name: names[name["id"]]) | dict(names)
    for section, text in zip(document["sections"], texts, strict=True):
        lines = [fill(line, values) for line in text.splitlines() if line]
        yield ShownSection(section["id"], section["heading"], lines)


def _text_of(name: Mapping[str, Any]) -> str:
    text = _plain(name.get("label") or name["value"])
    is_long = name["kind"] == NameKind.STATEMENT and len(text) > _STATEMENT
    return f"{text[:_STATEMENT]}…" if is_long else text


def _element_of(name: Mapping[str, Any], link_name: Callable[[Mapping[str, Any]], str | None]) -> SafeString:
    """Return a name as code, or as a link. A rule has its id in a tooltip."""
    text = _text_of(name)
    if name["kind"] == NameKind.RULE:
        shown = format_html('<strong title="{}">{}</strong>', name["value"], text)
    else:
        shown = format_html("<code>{}</code>", text)
    address = link_name(name)
    if address is None:
        return shown
    return format_html('<a href="{}">{}</a>', address, shown)


def _code_of(name: Mapping[str, Any]) -> str:
    """Return a name as a code span of markdown. The fence is longer than any run of backticks in the name."""
    text = _text_of(name)
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}" if longest else f"`{text}`"


def _plain(text: str) -> str:
    """Return a text on one line, without control characters and invisible characters."""
    return _SPACE.sub(" ", _INVISIBLE.sub("", text)).strip()


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~&])", r"\\\1", text)
