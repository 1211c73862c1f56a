"""Which of several media types an answer takes. Contract: "SQL over the log" (`Accept`); RFC 9110, 12.5.1."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from django.http.request import MediaType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def preferred_media_type(accept: str, offered: Sequence[str]) -> str:
    """Return the media type of ``offered`` that an Accept header weighs most; the first where none fits.

    The most specific range decides the weight of a type, and 0 excludes it. Of equal weights a type that is
    named goes before one that a wildcard covers, and the earlier in the header before the later. Parameters
    other than the weight do not tell apart what is offered here.
    """
    ranges = list(_ranges(accept))
    best = offered[0]
    best_rank = (0.0, 0, 0)
    for media_type in offered:
        main, _, sub = media_type.partition("/")
        fitting = [
            (_breadth(entry), position, entry.quality)
            for position, entry in enumerate(ranges)
            if (entry.main_type, entry.sub_type) in {(main, sub), (main, "*"), ("*", "*")}
        ]
        if not fitting:
            continue
        breadth, position, quality = min(fitting)
        rank = (quality, -breadth, -position)
        if quality > 0 and rank > best_rank:
            best, best_rank = media_type, rank
    return best


def _ranges(accept: str) -> Iterator[MediaType]:
    for part in accept.split(","):
        # Of a parameter in a charset that nobody knows.
        with suppress(ValueError):
            yield MediaType(part)


def _breadth(entry: MediaType) -> int:
    return (entry.main_type, entry.sub_type).count("*")
