"""Say in plain words why requests were misses, and what can be done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tenantadmin.lib.core.formats import duration, span

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What each reason means for one request. `say_reason` adds how long the result was kept.
_MEANINGS: Final[Mapping[str, str]] = {
    "restart": "The cache was emptied after the result was stored, for example when rules were published.",
    "ttl-expired": "The stored result had expired",
    "invalidation-marker": "An invalidation had ended the stored result.",
    "not-stored": "The last execution failed, so nothing was stored.",
    "no-cache-entry": "The cache had no result for this request.",
}
_UNKNOWN: Final = "The log gives no reason. Open a request: its page finds the reason from earlier requests."
#: What the reason of many requests means for the rule.
_ADVICE: Final[Mapping[str, str]] = {
    "ttl-expired": "A longer lifetime makes more of these hits, with results that are less fresh.",
    "invalidation-marker": "A table that it reads had changed, so a hit would have been stale.",
    "no-cache-entry": "It was the first with its values, or the cache was emptied since, as publishing does. "
    "A longer lifetime changes nothing here.",
}


def say_reason(reason: str, *, kept: tuple[int, int] | None = None, needed: int | None = None) -> str:
    """Return what the reason of a miss means.

    Args:
        kept: the least and the most seconds that the results were kept.
        needed: the least seconds with which the request would have been a hit.
    """
    text = _MEANINGS.get(reason, reason)
    if reason != "ttl-expired":
        return text
    if kept is not None:
        text += ": it was fresh for " + " to ".join(dict.fromkeys(map(span, kept)))
    if needed is None:
        return f"{text}."
    return f"{text}. It would have been a hit if the result had stayed fresh for {duration(1000 * needed)}."


def say_reasons(reason: str | None, *, kept: tuple[int, int] | None) -> str:
    """Return what it means that many misses have this reason, and what can be done."""
    if reason is None:
        return _UNKNOWN
    return f"{say_reason(reason, kept=kept)} {_ADVICE.get(reason, '')}".rstrip()
