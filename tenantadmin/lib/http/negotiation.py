"""Choose the media type of a response by ``Accept``. Contract: "SQL over the log"; RFC 9110, 12.5.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http.request import MediaType

from tenantadmin.lib.core.errors import NotAcceptable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rest_framework.request import Request


def preferred_media_type(accept: str, offered: Sequence[str]) -> str:
    """Return the type of ``offered`` with the highest weight in ``accept``. Without a header, the first.

    The most specific range that fits a type gives its weight. A weight of 0 excludes the type. If weights are
    equal, an exact name goes before a wildcard, then the earlier range before the later. Parameters
    are ignored, unless a type is offered with them, such as ``text/csv; for=people``.

    Raises:
        NotAcceptable: none fits.
    """
    if not accept.strip():
        return offered[0]
    variants = [MediaType(media_type) for media_type in offered if ";" in media_type]
    ranges = [(entry, _variant(entry, variants)) for entry in _ranges(accept)]
    best = None
    best_rank = (0.0, 0, 0)
    for media_type in offered:
        main, _, sub = media_type.partition("/")
        matches = [
            (_count_wildcards(entry), position, entry.quality)
            for position, (entry, variant) in enumerate(ranges)
            if variant == media_type
            or (not variant and (entry.main_type, entry.sub_type) in {(main, sub), (main, "*"), ("*", "*")})
        ]
        if not matches:
            continue
        wildcards, position, quality = min(matches)
        rank = (quality, -wildcards, -position)
        if quality > 0 and rank > best_rank:
            best, best_rank = media_type, rank
    if best is None:
        raise NotAcceptable(f"None of the types in Accept is offered. Ask for {', '.join(offered)} or */*.")
    return best


def accepts_gzip(request: Request) -> bool:
    """Return True if ``Accept-Encoding`` names gzip with a weight that is not 0."""
    for part in request.headers.get("Accept-Encoding", "").split(","):
        coding, _, weight = part.replace(" ", "").lower().partition(";q=")
        if coding == "gzip":
            return weight.rstrip("0") not in {"0", "0.", ""} if weight else True
    return False


def _ranges(accept: str) -> Iterator[MediaType]:
    for part in accept.split(","):
        try:
            yield MediaType(part)
        except ValueError:  # a parameter in an unknown charset
            yield MediaType(part.partition(";")[0])


def _variant(entry: MediaType, variants: Sequence[MediaType]) -> str:
    """Return the type with parameters that a range names, or an empty text."""
    named = {name.lower(): value.lower() for name, value in entry.params.items()}
    fitting = (
        str(variant)
        for variant in variants
        if (entry.main_type, entry.sub_type) == (variant.main_type, variant.sub_type)
        and variant.params.items() <= named.items()
    )
    return next(fitting, "")


def _count_wildcards(entry: MediaType) -> int:
    return (entry.main_type, entry.sub_type).count("*")
