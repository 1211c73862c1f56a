"""What a replay means for a decision, in words: REST and the dashboard show the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from itertools import groupby
from math import isclose
from typing import Annotated, Any, Final

from msgspec import Meta

from analytics.replay.figures import (
    NO_WAITING,
    bounds_of,
    count_others,
    count_requests,
    hit_rate,
    middle,
    pair_rules,
)
from analytics.replay.result import Caveat
from logs.definitions import HIT, STORED_MISS
from rules.conditions.keys import CONDITION_KEYS
from tenantadmin.lib.core.formats import (
    count,
    day_in_words,
    days_between,
    duration,
    money,
    money_between,
    number,
    percent,
)
from tenantadmin.lib.core.structs import JsonStruct


@dataclass(frozen=True, slots=True)
class Outdated:
    """What has changed since a replay, for a sentence, and whether it can be done again.

    A replay against earlier rules does not tell what publishing would do.
    """

    reasons: Sequence[str]
    can_repeat: bool = True
    is_against_earlier: bool = False

    def __bool__(self) -> bool:
        return bool(self.reasons)

    @property
    def text(self) -> str:
        return f"This replay is {', and '.join(self.reasons)}."


#: Sentences for the caveats of replays (docs/replay.md) and recommendations (docs/advice.md).
_CAVEATS: Final = {
    Caveat.WRITES_PAST_GATEWAY: "Writes past the Gateway are not in the log, nor is what triggers, foreign "
    "keys, rules, inheritance and streams change in the warehouse: the risk may be higher.",
    Caveat.LITERALS_HIDDEN: "The log hides literals of some statements, so hits have bounds.",
    Caveat.GATEWAY_UNKNOWN: "The log does not say what the Gateway declines by itself: the bounds are wider.",
    Caveat.KEYS_PER_USER: "The Gateway of this log keeps users apart, also where the rules do not vary.",
    Caveat.COMMENTS_VARY: "A comment changes from request to request, so that nothing repeats. Statements "
    "are counted without comments: results are shared only if the Gateway leaves them out of its keys, too.",
    Caveat.DAYS_LEFT_OUT: "Days without usable entries in the log were left out.",
    Caveat.COLUMNS_ABSENT: "The history of the warehouse lacks what rules test, so they count as absent.",
    Caveat.COLD_START: "The days before the window have no data: the cache starts cold.",
    Caveat.SAMPLED: "The log is large, so a sample was replayed. The bounds hold in 95 of 100 samples. "
    "Counts without bounds are estimates. What the warehouse bills is not known.",
    Caveat.CACHE_DISABLED: "The configuration switches caching off: the Gateway declines every cache rule.",
    Caveat.CALIBRATION_FAIR: "The replay of the rules in force differs a little from the log.",
    Caveat.CALIBRATION_POOR: "The replay of the rules in force differs much from the log: do not trust this.",
    Caveat.WITHOUT_SCHEMA: "Tables are named without a schema: with another search path, they are others.",
    Caveat.SESSIONS_INVISIBLE: "The log does not show database, schema, role, time zone and format of a "
    "session. Where sessions differ in them, hits are fewer.",
    "row-level-security-invisible": "No statement tells whether the warehouse shows each user other rows.",
}


def describe_caveat(code: str) -> str:
    """Return the sentence for a caveat, or the code if it is unknown."""
    return _CAVEATS.get(code, code)


def describe_sample(sample: Mapping[str, Any]) -> str:
    """Say what was replayed of a large log (`Sample`)."""
    return (
        f"Replayed were {percent(sample['share'])} of the log entries: {number(sample['entries'])} of "
        f"{count(sample['identities'], 'statement')} with their values, the heaviest and some of the others."
    )


def describe_days(window: Mapping[str, Any]) -> str:
    """Say the counted days of a `ReplayWindow`: ``6 of the 7 days 20 to 26 November``."""
    days, all_days = count_days(window)
    named = _name(date.fromisoformat(window["from"]), date.fromisoformat(window["to"]))
    return named if days == all_days else f"{days} of the {all_days} days {named}"


def count_days(window: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many days of a `ReplayWindow` are counted, and how many it has."""
    first, last = date.fromisoformat(window["from"]), date.fromisoformat(window["to"])
    left_out = [day for day in window.get("daysLeftOut") or () if day >= window["from"]]
    days = (last - first).days + 1
    return days - len(left_out), days


def describe_left_out(window: Mapping[str, Any]) -> str:
    """Name the days that were left out, and say why."""
    empty = window.get("emptyColumns")
    by_reason: dict[str, list[str]] = defaultdict(list)
    for day in sorted(window["daysLeftOut"]):
        by_reason[_describe_reason(None if empty is None else empty.get(day, ()))].append(day)
    sentences = [
        f"{_name_days(map(date.fromisoformat, found))} {'were' if found[1:] else 'was'} left out: {reason}."
        for reason, found in by_reason.items()
    ]
    days, all_days = count_days(window)
    if days == 0:
        sentences.append("So there are no figures.")
    elif days < all_days:
        sentences.append(f"The figures are of the other {count(days, 'day') if days > 1 else 'day'}.")
    return " ".join(sentences)


def _describe_reason(columns: Sequence[str] | None) -> str:
    """Say why days were left out. Replays of earlier releases do not name the columns: None."""
    if columns is None:
        return "the log has no usable entries"
    if not columns:
        return "there is no log, or it is not built yet"
    *others, last = (CONDITION_KEYS[name].said for name in columns)
    asked = f"{', '.join(others)} and {last}" if others else last
    return f"no log entry shows {asked}, and the rules ask for that"


def _name_days(days: Iterable[date]) -> str:
    """Name sorted days, days in a row together."""
    named = []
    for _, run in groupby(enumerate(days), lambda pair: pair[1].toordinal() - pair[0]):
        first, *others = [day for _, day in run]
        named.append(_name(first, others[-1] if others else first))
    return "; ".join(named)


def _name(first: date, last: date) -> str:
    return day_in_words(first, first) if first == last else days_between(first, last, today=first)


#: Fewer requests are not worth the cost of emptying the cache.
_NO_CHANGE: Final = 0.5
#: A smaller share of all requests, and of all warehouse time, hardly changes anything.
_LITTLE: Final = 0.001
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
    text = f"No request was replayed. {describe_left_out(result['window'])}"
    return ReplayJudgement(tone=Tone.BAD, text=text.strip(), next="Replay other days.")


def _judge(result: Mapping[str, Any], purpose: str) -> ReplayJudgement:
    then, now = result["total"], result["against"]["total"]
    hits, saved = (middle(then[name]) - middle(now[name]) for name in ("hits", "savedMs"))
    risk = then["risk"]["high"] - now["risk"]["high"]
    leaks = result.get("leaks") or {"ended": [], "begun": []}
    if abs(hits) < _NO_CHANGE and not saved:
        requests = count(count_requests(then), "request")
        text = f"These rules would do the same as the rules in force, with all {requests}."
    else:
        time = _describe_time(saved, then, now, waits=purpose == NO_WAITING)
        text = f"{_describe_hits(hits, result)} and {time}{_describe_rate(then, now)}."
        if by := _find_cause(hits, result):
            text += f" Most of it is due to {by}."
    if ended := leaks["ended"]:
        text = _describe_cost(hits, saved, then, now) or text
    text += _describe_bill(result.get("billed"))
    if risk:
        change = count(abs(risk), f"{'more' if risk > 0 else 'fewer'} hit")
        text += f" Up to {change} may be older than a change of their tables."
    tone, advice = _advise(hits, saved, risk)
    if tone is Tone.GOOD and (little := _describe_little(hits, saved, result)):
        tone, advice = Tone.WARN, little
    if purpose in _OTHER_PURPOSES and not (hits > 0 and saved > 0):
        tone, advice = Tone.WARN, f"Their purpose is “{purpose}”: publish them if that is worth it."
    if result["calibration"]["grade"] == "poor":
        tone, advice = (
            Tone.BAD,
            "Do not decide by this: the replay of the rules in force differs much from the log.",
        )
    if ended:
        text = f"{_describe_leaks(ended, 'served')} With these rules, each user gets their own. {text}"
        tone = Tone.GOOD if tone is Tone.GOOD else Tone.WARN
        advice = "Publish them: that closes the leak."
    if begun := leaks["begun"]:
        text = f"{_describe_leaks(begun, 'would serve')} {text}"
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


def _describe_little(hits: float, saved: float, result: Mapping[str, Any]) -> str | None:
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


def _describe_leaks(leaks: Sequence[Mapping[str, Any]], serve: str) -> str:
    """Say that the statements of rules serve users the results of others."""
    statements = sum(leak["statements"] for leak in leaks)
    of = "One statement" if statements == 1 else count(statements, "statement")
    names = " and ".join(leak["ruleName"] for leak in leaks)
    users = count(max(leak["users"] for leak in leaks), "user")
    return f"{of} of {names} {serve} {users} the results of others."


def _describe_cost(hits: float, saved: float, then: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Say what closing a leak costs, or None if it costs no hits."""
    if hits > -_NO_CHANGE or saved > 0:
        return None
    about = _about(then, now, "hits", "savedMs")
    time = f" and {duration(round(-saved))} of warehouse time" if saved else ""
    return f"That costs {about}{count(round(-hits), 'hit')}{time}{_describe_rate(then, now)}."


def _describe_hits(change: float, result: Mapping[str, Any]) -> str:
    then, now = result["total"], result["against"]["total"]
    days, all_days = count_days(result["window"])
    on = "" if days == all_days else f" on {days} of {count(all_days, 'day')}"
    of = f"(of {number(count_requests(then))}{on})"
    if abs(change) < _NO_CHANGE:
        return f"These rules would answer as many requests from the cache as the rules in force {of}"
    about = _about(then, now, "hits")
    requests = count(round(abs(change)), f"{'more' if change > 0 else 'fewer'} request")
    return f"These rules would answer {about}{requests} from the cache {of}"


def _describe_time(change: float, then: Mapping[str, Any], now: Mapping[str, Any], *, waits: bool) -> str:
    if not change:
        return "spare no more warehouse time"
    about = _about(then, now, "savedMs")
    verb = "spare" if change > 0 else "cost"
    time = f"{about}{duration(round(abs(change)))}"
    return f"{verb} users {time} of waiting" if waits else f"{verb} the warehouse {time}"


def _describe_bill(billed: Mapping[str, Any] | None) -> str:
    """Say what of the time is money: little, where the warehouse is awake for other requests anyway."""
    gain = billed and billed["gain"].get("money")
    if not gain:
        return ""
    low, high, currency = Decimal(gain["low"]), Decimal(gain["high"]), gain["currency"]
    if low == high == 0:
        return " What you pay would stay the same."
    if low < 0 < high:
        less, more = (money(str(abs(end)), currency) for end in (low, high))
        return f" What you pay: from {less} less to {more} more."
    amounts = money_between((str(abs(low)), str(abs(high))), currency)
    return f" What you pay would {'fall' if low < 0 else 'rise'} by {amounts}."


def _describe_rate(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    before, after = hit_rate(now), hit_rate(then)
    if before is None or after is None or percent(before) == percent(after):
        return ""
    return f"; hit rate {percent(before)} → {percent(after)}"


def _about(then: Mapping[str, Any], now: Mapping[str, Any], *names: str) -> str:
    bounds = [bounds_of(counts, name) for counts in (then, now) for name in names]
    return "" if all(one["low"] == one["high"] for one in bounds) else "about "


def _find_cause(hits: float, result: Mapping[str, Any]) -> str | None:
    """Return the rule that makes most of the change in hits, if there is one."""
    before = {row["ruleId"]: middle(row["hits"]) for row in result["against"]["rules"]}
    after = {row["ruleId"]: middle(row["hits"]) for row in result["rules"]}
    changes = {
        rule_id: after.get(rule_id, 0) - before.get(rule_id, 0) for rule_id in {**before, **after} if rule_id
    }
    by, change = max(changes.items(), key=lambda pair: pair[1] * hits, default=(None, 0))
    is_most = change * hits > hits * hits / 2 and len(changes) > 1
    name = (result.get("names") or {}).get(by, by)
    return f"the rule “{name}”" if by and is_most else None


def describe_notes(result: Mapping[str, Any]) -> list[str]:
    """Say how far a replay agrees with the log, what counts as a request, and its caveats."""
    then = result["total"]
    # The judgement says why.
    if not then["requests"]:
        return []
    counted = (
        f"With these rules, {number(count_requests(then))} of these log entries are requests: hits, misses "
        f"or not cached. The other {number(count_others(then))} wait, are refused or fail."
    )
    changed = sum(after != before for after, before in pair_rules(result).values())
    others = "A changed rule changes other rules too, if it decides their requests or ends their results."
    expiry = (
        "Results that are stored at other times expire at other times: so some hits become misses, also "
        "where results stay fresh for longer."
    )
    loses = any(row["from"] in HIT and row["to"] in STORED_MISS for row in result["moved"])
    return [
        _describe_agreement(result),
        *([describe_sample(result["sample"])] if result.get("sample") else []),
        counted,
        *([others] if changed > 1 else []),
        *([expiry] if loses else []),
        *(
            describe_left_out(result["window"])
            if code == Caveat.DAYS_LEFT_OUT
            else _describe_absent(result["window"])
            if code == Caveat.COLUMNS_ABSENT
            else describe_caveat(code)
            for code in result["caveats"]
        ),
    ]


def _describe_absent(window: Mapping[str, Any]) -> str:
    """Say what the history of an assessment lacks."""
    names = ", ".join(window["absentColumns"])
    return f"The history of the warehouse has nothing for {names}: rules that test it read it as absent."


def _describe_agreement(result: Mapping[str, Any]) -> str:
    """Say how far the replay agrees with the log, and why it compares with other hits than the log has."""
    calibration, against = result["calibration"], result["against"]
    logged, replayed = (
        sum(rule["hits"][side] for rule in calibration["rules"]) for side in ("logged", "replayed")
    )
    # Absent in replays of earlier releases.
    requests = calibration.get("requests")
    of = f" in {count(requests['logged'], 'request')}" if requests else ""
    about = "about " if result.get("sample") else ""
    text = (
        f"The log of these days has {about}{count(logged, 'hit')}{of}, as the overview has. A replay of the "
        f"rules that were in force ends as in the log for {percent(calibration['share'])} of "
        f"{count(calibration['rows'], 'log entry', 'log entries')}; these also have what waited, was refused "
        "or failed."
    )
    was = against["total"]["hits"]
    if round(middle(was)) == logged:
        return text
    seq = against.get("seq")
    before = "the rules in force now" if seq is None else f"revision {seq}"
    hits = f"{_about(against['total'], against['total'], 'hits')}{count(round(middle(was)), 'hit')}"
    # The counts of a sample are rounded one by one.
    if isclose(was["low"], replayed, rel_tol=0.001 if result.get("sample") else 0):
        return f"{text} The changes compare with a replay of {before} ({hits})."
    return (
        f"{text} The changes compare with {before} on all days ({hits}); on some of them, other rules were "
        "in force."
    )
