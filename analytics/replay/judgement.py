"""Say in words what a replay means for a decision: REST, the dashboard and the staff pages show the same."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from tenantadmin.lib.core.formats import count, duration, number, percent
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What a request can end as besides a hit and a miss.
OTHER: Final = ("holds", "bypassed", "blocked", "passed", "errors", "invalidationErrors")
#: Fewer requests are not worth the cost of emptying the cache.
_NO_CHANGE: Final = 0.5


class Tone(StrEnum):
    """What speaks for publishing: all, not all, or nothing."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


class ReplayJudgement(JsonStruct):
    """What the replay says about publishing the rules, for people to read."""

    tone: Tone
    text: Annotated[str, Meta(description="What the rules would do, in a sentence or two.")]
    next: Annotated[str, Meta(description="What to do now.")]


def middle(bounds: Mapping[str, Any]) -> float:
    """Return the likely value, or the mean of the bounds."""
    likely: float | None = bounds.get("likely")
    return (bounds["low"] + bounds["high"]) / 2 if likely is None else likely


def count_others(counts: Mapping[str, Any]) -> int:
    """Return how many requests are neither hits nor misses."""
    return sum(counts[name] for name in OTHER)


def bound_misses(counts: Mapping[str, Any]) -> dict[str, int | None]:
    """Return the bounds of the misses: each hit fewer is a miss more.

    So hits, misses and others add up to the requests.
    """
    hits = counts["hits"]
    most = counts["requests"] - count_others(counts)
    low, likely, high = (
        None if hits[name] is None else max(most - hits[name], 0) for name in ("high", "likely", "low")
    )
    return {"low": low, "likely": likely, "high": high}


def hit_rate(counts: Mapping[str, Any]) -> float | None:
    """Return the likely share of hits in hits and misses."""
    hits = middle(counts["hits"])
    asked = hits + middle(bound_misses(counts))
    return hits / asked if asked else None


def judge(result: Mapping[str, Any]) -> ReplayJudgement:
    """Judge the result of a replay (`ReplayResult` as JSON)."""
    then, now = result["total"], result["against"]["total"]
    hits, saved = (middle(then[name]) - middle(now[name]) for name in ("hits", "savedMs"))
    risk = then["risk"]["high"] - now["risk"]["high"]
    text = f"{_say_hits(hits, then, now)} and {_say_time(saved, then, now)}{_say_rate(hits, then, now)}."
    if abs(hits) < _NO_CHANGE and not saved:
        all_of_them = count(then["requests"], "request")
        text = f"These rules would do the same as the rules in force, with all {all_of_them}."
    elif by := _find_cause(hits, result):
        text += f" Most of it is due to {by}."
    if risk > 0:
        text += f" Up to {count(risk, 'more hit')} may be older than a change of their tables."
    tone, advice = _advise(hits, saved, risk)
    if tone is Tone.GOOD and saved <= result["publishCost"]["best"]["extraMs"]:
        tone, advice = (
            Tone.WARN,
            "Publish them with other changes: emptying the cache costs more.",
        )
    if result["calibration"]["grade"] == "poor":
        tone, advice = (
            Tone.BAD,
            "Do not decide by this: the replay of the rules in force differs much from the log.",
        )
    return ReplayJudgement(tone=tone, text=text, next=advice)


def _advise(hits: float, saved: float, risk: int) -> tuple[Tone, str]:
    if abs(hits) < _NO_CHANGE and not saved:
        return Tone.WARN, "Publishing would only empty the cache."
    if hits <= 0 and saved <= 0:
        return Tone.BAD, "Keep the present rules, unless fewer hits are what you want."
    if hits < 0 or saved < 0:
        return Tone.WARN, "It gains on one side and loses on the other: look at the rules below."
    if risk > 0:
        return Tone.WARN, "Publish them if results as old as that are good enough."
    return Tone.GOOD, "Publish them."


def _say_hits(change: float, then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    of = f"(of {number(then['requests'])})"
    if abs(change) < _NO_CHANGE:
        return f"These rules would answer as many requests from the cache as the rules in force {of}"
    about = _about(then["hits"], now["hits"])
    requests = count(round(abs(change)), f"{'more' if change > 0 else 'fewer'} request")
    return f"These rules would answer {about}{requests} from the cache {of}"


def _say_time(change: float, then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    if not change:
        return "spare no more warehouse time"
    about = _about(then["savedMs"], now["savedMs"])
    verb = "spare" if change > 0 else "cost"
    return f"{verb} the warehouse {about}{duration(round(abs(change)))}"


def _say_rate(change: float, then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    before, after = hit_rate(now), hit_rate(then)
    if before is None or after is None or percent(before) == percent(after):
        return ""
    said = f"; hit rate {percent(before)} → {percent(after)}"
    asked = then["requests"] - count_others(then) - now["requests"] + count_others(now)
    if change * (after - before) < 0 and asked:
        # Of hits and misses: more of both can be a lower rate.
        requests = count(abs(asked), f"{'more' if asked > 0 else 'fewer'} request")
        said += f", because {requests} may be cached"
    return said


def _about(*bounds: Mapping[str, Any]) -> str:
    return "" if all(it["low"] == it["high"] for it in bounds) else "about "


def _find_cause(hits: float, result: Mapping[str, Any]) -> str | None:
    """Return the rule that makes most of the change in hits, if there is one."""
    before = {row["ruleId"]: middle(row["hits"]) for row in result["against"]["rules"]}
    after = {row["ruleId"]: middle(row["hits"]) for row in result["rules"]}
    changes = {
        rule_id: after.get(rule_id, 0) - before.get(rule_id, 0) for rule_id in {**before, **after} if rule_id
    }
    by, change = max(changes.items(), key=lambda it: it[1] * hits, default=(None, 0))
    is_most = change * hits > hits * hits / 2 and len(changes) > 1
    return f"the rule “{by}”" if by and is_most else None
