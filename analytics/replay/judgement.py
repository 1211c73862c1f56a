"""Say in words what a replay means for a decision: REST, the dashboard and the staff pages show the same."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from analytics.replay.left_out import count_days, say_left_out
from tenantadmin.lib.core.formats import count, duration, number, percent
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.replay.outdated import Outdated

#: What a request can end as that is not cached.
NOT_CACHED: Final = ("bypassed", "passed")
#: What a request can end as that counts nowhere, as in docs/words.md.
UNCOUNTED: Final = ("holds", "blocked", "errors", "invalidationErrors")
#: Fewer requests are not worth the cost of emptying the cache.
_NO_CHANGE: Final = 0.5
#: A smaller share of all requests, and of all warehouse time, hardly changes anything.
_LITTLE: Final = 0.001
#: The purpose of recommendations that save waiting time of users, and no warehouse time.
NO_WAITING: Final = "no waiting"
#: Purposes of recommendations that hits and warehouse time do not show.
_OTHER_PURPOSES: Final = (NO_WAITING, "less stored", "simpler rules")


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
    is_outdated: Annotated[
        bool,
        Meta(description="True if the draft or the rules in force have changed since. ``text`` says which."),
    ] = False
    is_against_earlier: Annotated[
        bool, Meta(description="True if the figures compare with rules that are no longer in force.")
    ] = False


def middle(bounds: Mapping[str, Any]) -> float:
    """Return the likely value, or the mean of the bounds."""
    likely: float | None = bounds.get("likely")
    return (bounds["low"] + bounds["high"]) / 2 if likely is None else likely


def count_not_cached(counts: Mapping[str, Any]) -> int:
    """Return how many requests no rule cached."""
    return sum(counts[name] for name in NOT_CACHED)


def count_requests(counts: Mapping[str, Any]) -> int:
    """Return how many requests are hits, misses or not cached."""
    requests: int = counts["requests"] - count_others(counts)
    return requests


def count_others(counts: Mapping[str, Any]) -> int:
    """Return how many log entries count as no request: they wait, are refused or fail."""
    return sum(counts[name] for name in UNCOUNTED)


def bound_misses(counts: Mapping[str, Any]) -> dict[str, int | None]:
    """Return the bounds of the misses: each hit fewer is a miss more.

    So hits, misses and requests that are not cached add up to the requests.
    """
    hits = counts["hits"]
    most = count_requests(counts) - count_not_cached(counts)
    low, likely, high = (
        None if hits[name] is None else max(most - hits[name], 0) for name in ("high", "likely", "low")
    )
    return {"low": low, "likely": likely, "high": high}


def hit_rate(counts: Mapping[str, Any]) -> float | None:
    """Return the likely share of hits in hits, misses and requests that are not cached."""
    requests = count_requests(counts)
    return middle(counts["hits"]) / requests if requests else None


def judge(
    result: Mapping[str, Any], *, purpose: str = "", outdated: Outdated | None = None
) -> ReplayJudgement:
    """Judge the result of a replay (`ReplayResult` as JSON).

    Args:
        purpose: what the recommendation of these rules is good for, if there is one.
        outdated: what has changed since the replay.
    """
    judged = _judge(result, purpose) if result["total"]["requests"] else _judge_nothing(result)
    if not outdated:
        return judged
    again = "Replay it again before you decide."
    advice = again if outdated.can_repeat else "To replay these rules again, make a draft of them."
    return ReplayJudgement(
        tone=Tone.WARN,
        text=f"{outdated.text} {judged.text}",
        next=advice,
        is_outdated=True,
        is_against_earlier=outdated.is_against_earlier,
    )


def _judge_nothing(result: Mapping[str, Any]) -> ReplayJudgement:
    text = f"No request was replayed. {say_left_out(result['window'])}"
    return ReplayJudgement(tone=Tone.BAD, text=text.strip(), next="Replay other days.")


def _judge(result: Mapping[str, Any], purpose: str) -> ReplayJudgement:
    then, now = result["total"], result["against"]["total"]
    hits, saved = (middle(then[name]) - middle(now[name]) for name in ("hits", "savedMs"))
    risk = then["risk"]["high"] - now["risk"]["high"]
    leaks = result.get("leaks") or {"ended": [], "begun": []}
    if abs(hits) < _NO_CHANGE and not saved:
        text = f"These rules would do the same as the rules in force, with all {_requests(then)}."
    else:
        time = _say_time(saved, then, now, waits=purpose == NO_WAITING)
        text = f"{_say_hits(hits, result)} and {time}{_say_rate(then, now)}."
        if by := _find_cause(hits, result):
            text += f" Most of it is due to {by}."
    if ended := leaks["ended"]:
        text = _say_cost(hits, saved, then, now) or text
    text += _say_bill(result.get("billed"))
    if risk:
        change = count(abs(risk), f"{'more' if risk > 0 else 'fewer'} hit")
        text += f" Up to {change} may be older than a change of their tables."
    tone, advice = _advise(hits, saved, risk)
    if tone is Tone.GOOD and (little := _say_little(hits, saved, result)):
        tone, advice = Tone.WARN, little
    if purpose in _OTHER_PURPOSES and not (hits > 0 and saved > 0):
        tone, advice = Tone.WARN, f"Their purpose is “{purpose}”: publish them if that is worth it."
    if result["calibration"]["grade"] == "poor":
        tone, advice = (
            Tone.BAD,
            "Do not decide by this: the replay of the rules in force differs much from the log.",
        )
    if ended:
        served = f"{_statements(ended)} of {_names(ended)} served {_users(ended)} the results of others"
        text = f"{served[0].upper()}{served[1:]}. With these rules, each user gets their own. {text}"
        tone = Tone.GOOD if tone is Tone.GOOD else Tone.WARN
        advice = "Publish them: that closes the leak."
    if begun := leaks["begun"]:
        shared = f"{_statements(begun)} of {_names(begun)} would serve {_users(begun)} the results of others"
        text = f"{shared[0].upper()}{shared[1:]}. {text}"
        tone, advice = Tone.BAD, "Do not publish them: users would share results that depend on who asks."
    return ReplayJudgement(tone=tone, text=text, next=advice)


def _advise(hits: float, saved: float, risk: int) -> tuple[Tone, str]:
    if risk < 0 and (hits <= 0 or saved <= 0):
        return Tone.WARN, "Publish them if fresh results are worth that."
    if abs(hits) < _NO_CHANGE and not saved:
        return Tone.WARN, "Publishing would only empty the cache."
    if hits <= 0 and saved <= 0:
        return Tone.BAD, "Keep the present rules, unless fewer hits are what you want."
    if hits < 0 or saved < 0:
        return Tone.WARN, "It gains on one side and loses on the other: look at the rules below."
    if risk > 0:
        return Tone.WARN, "Publish them if results as old as that are good enough."
    return Tone.GOOD, "Publish them."


def _say_little(hits: float, saved: float, result: Mapping[str, Any]) -> str | None:
    """Advise to wait, or when to publish, if a gain is less than what publishing may cost; else None."""
    then, best = result["total"], result["publishCost"]["best"]
    time = middle(then["savedMs"]) + then["spentMs"]
    is_small = hits < _LITTLE * count_requests(then) and saved < _LITTLE * time
    if saved > best["extraMs"] and not (is_small and hits <= best["extraMisses"]):
        most = max(hour["extraMs"] for hour in result["publishCost"]["byHour"])
        return (
            None
            if saved > most
            else (
                "Publish them in an hour in which little is lost: emptying the cache costs from "
                f"{duration(best['extraMs'])} to {duration(most)} of warehouse time once, by the hour."
            )
        )
    cost = f"{count(best['extraMisses'], 'request')} and {duration(best['extraMs'])}"
    wait = f"Publish them with other changes: emptying the cache costs at least {cost} of warehouse time."
    return f"That hardly changes anything. {wait}" if is_small else wait


def _statements(leaks: Sequence[Mapping[str, Any]]) -> str:
    number_of_them = sum(leak["statements"] for leak in leaks)
    return "one statement" if number_of_them == 1 else count(number_of_them, "statement")


def _users(leaks: Sequence[Mapping[str, Any]]) -> str:
    return count(max(leak["users"] for leak in leaks), "user")


def _names(leaks: Sequence[Mapping[str, Any]]) -> str:
    return " and ".join(leak["ruleName"] for leak in leaks)


def _say_cost(hits: float, saved: float, then: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Say what closing a leak costs, or None if it costs no hits."""
    if hits > -_NO_CHANGE or saved > 0:
        return None
    about = say_about(then["hits"], now["hits"], then["savedMs"], now["savedMs"])
    time = f" and {duration(round(-saved))} of warehouse time" if saved else ""
    return f"That costs {about}{count(round(-hits), 'hit')}{time}{_say_rate(then, now)}."


def _requests(counts: Mapping[str, Any]) -> str:
    return count(count_requests(counts), "request")


def _say_hits(change: float, result: Mapping[str, Any]) -> str:
    then, now = result["total"], result["against"]["total"]
    days, all_days = count_days(result["window"])
    on = "" if days == all_days else f" on {days} of {count(all_days, 'day')}"
    of = f"(of {number(count_requests(then))}{on})"
    if abs(change) < _NO_CHANGE:
        return f"These rules would answer as many requests from the cache as the rules in force {of}"
    about = say_about(then["hits"], now["hits"])
    requests = count(round(abs(change)), f"{'more' if change > 0 else 'fewer'} request")
    return f"These rules would answer {about}{requests} from the cache {of}"


def _say_time(change: float, then: Mapping[str, Any], now: Mapping[str, Any], *, waits: bool) -> str:
    if not change:
        return "spare no more warehouse time"
    about = say_about(then["savedMs"], now["savedMs"])
    verb = "spare" if change > 0 else "cost"
    time = f"{about}{duration(round(abs(change)))}"
    return f"{verb} users {time} of waiting" if waits else f"{verb} the warehouse {time}"


def _say_bill(billed: Mapping[str, Any] | None) -> str:
    """Say what of the time is money: little, where the warehouse is awake for other requests anyway."""
    money = billed and billed["gain"].get("money")
    if not money:
        return ""
    low, high = Decimal(money["low"]), Decimal(money["high"])
    if low == high == 0:
        return " What you pay would stay the same."
    if low < 0 < high:
        return f" What you pay: from {-low:,f} less to {high:,f} {money['currency']} more."
    ends = sorted({abs(low), abs(high)})
    amounts = " to ".join(f"{it:,f}" for it in ends)
    return f" What you pay would {'fall' if low < 0 else 'rise'} by {amounts} {money['currency']}."


def _say_rate(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    before, after = hit_rate(now), hit_rate(then)
    if before is None or after is None or percent(before) == percent(after):
        return ""
    return f"; hit rate {percent(before)} → {percent(after)}"


def say_about(*bounds: Mapping[str, Any]) -> str:
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
    name = (result.get("names") or {}).get(by, by)
    return f"the rule “{name}”" if by and is_most else None
