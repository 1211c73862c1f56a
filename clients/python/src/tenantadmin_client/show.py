"""What ``tenantctl`` prints. Texts of the service are data, and cannot format or control a terminal."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

_out = Console(markup=False, highlight=False, emoji=False)
_err = Console(markup=False, highlight=False, emoji=False, stderr=True)
_NOT_ASCII = re.compile(r"[^ -~]")
_PARTS = ("withCache", "without", "saved")
#: Milliseconds of each unit in which times are shown, the largest first.
_UNITS = ((3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms"))


def show_line(text: str, *, style: str = "") -> None:
    """Print a line. Characters that are not printable become escapes, for example ``\\x1b``."""
    _out.print(visible(text), style=style, soft_wrap=True)


def show_error(text: str, *, style: str = "red") -> None:
    """Print a line on standard error."""
    _err.print(visible(text), style=style, soft_wrap=True)


def show_json(value: object) -> None:
    """Print JSON, for programs."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def show_table(
    names: Iterable[str], rows: Iterable[Iterable[object]], *, title: str = "", are_numbers: bool = False
) -> None:
    """Print a table. None is an empty cell. With ``are_numbers``, all columns but the first are numbers."""
    table = Table(title=Text(title) if title else None, title_justify="left")
    for index, name in enumerate(names):
        table.add_column(Text(visible(name)), justify="right" if are_numbers and index else "left")
    for row in rows:
        table.add_row(*(Text("" if value is None else visible(str(value))) for value in row))
    _out.print(table)


def show_findings(result: dict[str, Any]) -> None:
    """Print the findings of lint, errors first."""
    for finding in (*result["errors"], *result["warnings"]):
        show_line(f"  {finding['severity']}: {finding['path']}: {finding['message']}")


def has_changes(entry: dict[str, Any]) -> bool:
    """Return True if a plan changes anything of a tenant."""
    return bool(entry.get("reordered")) or any(
        part["added"] or part["removed"] or part["changed"] for part in (entry, *entry["sections"].values())
    )


def show_plan(entry: dict[str, Any]) -> None:
    """Print what would change of a tenant, what lint finds, and a replay."""
    show_line(f"{entry['file']} (tenant {entry['tenant']})", style="bold")
    _show_changes(entry)
    if entry["reordered"]:
        show_line("  the order of the rules changes")
    for name, section in entry["sections"].items():
        _show_changes(section, f"{name}: ")
    if not has_changes(entry):
        show_line("  no changes")
    show_findings(entry["lint"])
    if replay := entry.get("replay"):
        _show_replay(replay)


def _show_changes(part: dict[str, Any], place: str = "") -> None:
    for name in part["added"]:
        show_line(f"  + {place}{name}", style="green")
        for change in part["changed"].get(name, []):
            show_line(f"      {change['field']}: {json.dumps(change['after'])}")
    for name in part["removed"]:
        show_line(f"  - {place}{name}", style="red")
    for name in [name for name in part["changed"] if name not in part["added"]]:
        show_line(f"  ~ {place}{name}", style="yellow")
        for change in part["changed"][name]:
            before, after = json.dumps(change["before"]), json.dumps(change["after"])
            show_line(f"      {change['field']}: {before} -> {after}")


def _show_replay(replay: dict[str, Any]) -> None:
    if "total" not in replay:
        show_line(f"  no replay: {replay['error']}")
        return
    old, new = replay["against"]["total"], replay["total"]
    show_line(f"  replay of {replay['window']['from']} to {replay['window']['to']}, live rules -> this file:")
    show_line(f"    hits: {_range(old['hits'])} -> {_range(new['hits'])}")
    if sample := replay.get("sample"):
        change = replay["sampledChanges"]["total"]["hits"]
        show_line(
            f"      of a sample, {sample['share']:.1%} of the entries: in 95 of 100 samples the hits change"
            f" by {change['low']:+} to {change['high']:+}"
        )
    times = [_range(total["savedMs"], _time) for total in (old, new)]
    show_line(f"    warehouse time saved: {times[0]} -> {times[1]}")
    if bills := replay.get("billed"):
        old_bill, new_bill = bills["against"], bills["total"]
        times = [_range(bill["billedMs"], _time) for bill in (old_bill, new_bill)]
        show_line(f"    the warehouse bills: {times[0]} -> {times[1]}")
        if old_bill["money"] and new_bill["money"]:
            amounts = [
                f"{_range(bill['money'])} {bill['money']['currency']}" for bill in (old_bill, new_bill)
            ]
            show_line(f"    it costs: {amounts[0]} -> {amounts[1]}")
    show_line(f"    hits that may be stale: {_range(old['risk'])} -> {_range(new['risk'])}")
    best = replay["publishCost"]["best"]
    show_line(f"  cheapest hour to publish: {best['hour']:02}:00 UTC, which costs {_time(best['extraMs'])}")


def show_savings(savings: dict[str, Any], step: str) -> None:
    """Print the answer of ``GET /tenants/{tenant}/savings``: times in hours, by day or month and by rule."""
    window, currency = savings["window"], savings["currency"] or "money"
    rows = [(row[step], *_figures(row)) for row in savings[f"{step}s"]]
    show_table(
        (step, "billed", "without", "saved", "busy", "without", "saved", currency),
        [*rows, ("total", *_figures(savings["total"]))],
        title=f"{window['from']} to {window['to']}, in hours, with the cache and without",
        are_numbers=True,
    )
    show_table(
        ("rule", "hits", "billed h", "busy h", currency),
        [
            (
                rule["ruleId"] or "(no rule)",
                rule["hits"],
                _hours(rule["marginalMs"]),
                _hours(rule["busyMs"]),
                rule["money"] or "-",
            )
            for rule in savings["rules"]
        ],
        title="How much more would be billed without a rule. These do not add up to the total",
        are_numbers=True,
    )
    if savings["unmeasured"]:
        share = f"{savings['unmeasuredShare']:.2%}"
        show_line(f"Log entries whose time is unknown are not counted: {savings['unmeasured']} ({share})")


def _figures(row: dict[str, Any]) -> list[str]:
    times = [_hours(row[part][name]) for name in ("billedMs", "busyMs") for part in _PARTS]
    return [*times, row["saved"]["money"] or "-"]


def _hours(ms: int) -> str:
    return f"{ms / 3_600_000:.1f}"


def _time(ms: int) -> str:
    """Return milliseconds in the largest unit that fits: ``2.4 h``."""
    size, unit = next((size, unit) for size, unit in _UNITS if abs(ms) >= size or size == 1)
    return f"{ms} ms" if unit == "ms" else f"{ms / size:.1f} {unit}"


def _range(value: Any, shown: Any = str) -> str:
    """Return a value, or the bounds of one: ``40 to 50``."""
    if not isinstance(value, dict):
        return str(shown(value))
    low, high = str(shown(value["low"])), str(shown(value["high"]))
    return low if low == high else f"{low} to {high}"


def visible(text: str) -> str:
    """Return a text with control characters, line ends and writing directions as escapes."""
    return _NOT_ASCII.sub(
        lambda match: match[0] if match[0].isprintable() else match[0].encode("unicode_escape").decode(), text
    )
