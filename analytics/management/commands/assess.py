"""``manage.py assess FILE…``: what a cache would save, from a warehouse's own history."""

from __future__ import annotations

import argparse
import os
import secrets
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from io import StringIO
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from analytics.assessments.assess import AssessmentFailed, Order, evaluate, import_history
from analytics.history.access import read_accesses
from analytics.history.entries import Choices, Hashed
from analytics.history.metering import read_metering
from analytics.history.rows import BadHistory, Options, Source
from analytics.management.printing import show_bill, show_range
from analytics.replay.figures import count_requests
from logs.importing import BadTree
from logs.layout import HOUR_MS
from logs.management.operators import OperatorCommand
from tenantadmin.lib.core.emails import check_email
from tenantadmin.lib.core.formats import percent
from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.objectstore import StoreError, default_store
from tenantadmin.lib.terminal import visible

_KEY_BYTES: Final = 32
_MAX_NAME: Final = 100


class Command(OperatorCommand):
    help = (
        "Reads the history of statements that Snowflake, Databricks or PostgreSQL has written itself, and "
        "says which rules would answer how many of them from a cache, and what that saves. All of it stays "
        "here. docs/assess.md has the query for each warehouse."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
        parser.add_argument(
            "--from",
            dest="source",
            type=Source,
            choices=list(Source),
            required=True,
            metavar="SOURCE",
            help="snowflake, databricks or postgresql",
        )
        parser.add_argument(
            "--access", type=Path, metavar="FILE", help="which tables the statements accessed (Snowflake)"
        )
        parser.add_argument(
            "--metering", type=Path, metavar="FILE", help="what the warehouse billed, or its events"
        )
        parser.add_argument(
            "--price",
            type=_price,
            action="append",
            default=[],
            dest="prices",
            metavar="[NAME=]3.00",
            help="of an hour: of the warehouse NAME, or of every other; may be repeated",
        )
        parser.add_argument("--currency", type=_currency, default="USD")
        parser.add_argument("--suspend", type=int, default=300, metavar="SECONDS", help="default 300")
        for name in ("users", "tables", "literals"):
            parser.add_argument(
                "--hash-names" if name == "users" else f"--hash-{name}",
                action="store_true",
                help=f"store hashes of {name} in place of them",
            )
        parser.add_argument(
            "--hash-key", type=Path, metavar="FILE", help="the key of the hashes; made if it is not there"
        )
        parser.add_argument("--timezone", default="", metavar="NAME", help="of times without a zone")
        parser.add_argument("--log-line-prefix", default="", help="of PostgreSQL's logs in text")
        parser.add_argument("--as", dest="name", metavar="NAME", help="the name of the assessment")
        parser.add_argument("--owner", type=_email, metavar="EMAIL", help="whose the assessment is")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")

    def handle(self, *, as_json: bool, **options: Any) -> None:
        console = Console(stderr=True, highlight=False)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        try:
            order = _make_order(**options)
            with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
                task = progress.add_task("Reading", total=None)

                def on_progress(what: str, count: int) -> None:
                    progress.update(task, description=f"{what}: {count}" if count else what)

                tenant = import_history(default_store(), order, on_progress=on_progress)
            call_command("rebuild", f"--tenant={tenant}", stdout=self.stderr)
            with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
                task = progress.add_task("Searching", total=None)
                report = evaluate(default_store(), tenant, order, on_progress=on_progress)
        except (BadHistory, AssessmentFailed, BadTree, StoreError, OSError) as error:
            raise CommandError(visible(str(error))) from error
        if as_json:
            self.stdout.write(dump_json(report).decode())
        else:
            self.stdout.write(describe(report, owner=order.owner))


def _make_order(
    *,
    files: Sequence[Path],
    source: Source,
    access: Path | None,
    metering: Path | None,
    prices: Sequence[tuple[str | None, str]],
    currency: str,
    suspend: int,
    hash_names: bool,
    hash_tables: bool,
    hash_literals: bool,
    hash_key: Path | None,
    timezone: str,
    log_line_prefix: str,
    name: str | None,
    owner: str | None,
    **_: Any,
) -> Order:
    """Return what to assess.

    Raises:
        BadHistory: a file is missing, or the metering cannot be read.
        OSError: the key cannot be read or written.
    """
    for path in [*files, *([access] if access else [])]:
        if not path.is_file():
            raise BadHistory(f"There is no file {path}.")
    if access is not None and source is not Source.SNOWFLAKE:
        raise BadHistory(f"{source} writes no history of accesses: leave --access out.")
    wanted = ((Hashed.USERS, hash_names), (Hashed.TABLES, hash_tables), (Hashed.LITERALS, hash_literals))
    hashed = frozenset(what for what, is_wanted in wanted if is_wanted)
    return Order(
        files=files,
        choices=Choices(
            source=source,
            options=Options(timezone=timezone, log_line_prefix=log_line_prefix),
            hashed=hashed,
            key=_read_key(hash_key or settings.VAR_DIR / "assess.key") if hashed else b"",
            accesses=None if access is None else read_accesses(access),
        ),
        name=(name or f"{source}: {files[0].name}")[:_MAX_NAME],
        owner=owner,
        prices=dict(prices),
        currency=currency,
        suspend=suspend,
        metered=None if metering is None else read_metering(metering, source, timezone=timezone),
    )


def _read_key(path: Path) -> bytes:
    """Return the key of the hashes. It is no part of the assessment."""
    if not path.exists():
        with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as stream:
            stream.write(secrets.token_hex(_KEY_BYTES).encode())
    return path.read_bytes()


def _price(text: str) -> tuple[str | None, str]:
    """Return the warehouse, None for every other, and the price of an hour."""
    name, separator, number = text.rpartition("=")
    try:
        amount = Decimal(number)
    except InvalidOperation:
        raise argparse.ArgumentTypeError(
            f"{number!r} is no price; write it like 3.00 or WAREHOUSE=3.00"
        ) from None
    if not amount.is_finite() or amount < 0 or amount != round(amount, 4):
        raise argparse.ArgumentTypeError(
            f"{number!r} is no price; write it like 3.00, with at most 4 decimals"
        )
    if separator and not name:
        raise argparse.ArgumentTypeError(f"{text!r} names no warehouse; write it like WAREHOUSE=3.00")
    return name or None, f"{amount:f}"


def _currency(text: str) -> str:
    if not (text.isascii() and text.isupper() and len(text) == 3):
        raise argparse.ArgumentTypeError(f"{text!r} is no currency; write it like USD")
    return text


def _email(text: str) -> str:
    try:
        return check_email(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def describe(report: Mapping[str, Any], *, owner: str | None) -> str:
    """Return the report for a terminal. ``owner`` may see it in the dashboard."""
    read, window, repeats = report["read"], report["window"], report["repeats"]
    replay, bill = report["replay"], report["bill"]
    rules = Table(title="Rules, replayed together")
    rules.add_column("rule")
    for name in ("requests", "hits", "misses", "run time saved, h", "at risk"):
        rules.add_column(name, justify="right")
    counts = {row["ruleId"]: row for row in replay["rules"]}
    for rule in report["rules"]:
        rules.add_row(visible(rule["id"]), *_cells(counts[rule["id"]]))
    if None in counts:
        rules.add_row("no rule", *_cells(counts[None]))
    rules.add_row("total", *_cells(replay["total"]))
    text = StringIO()
    console = Console(file=text, highlight=False, markup=False, width=100)
    console.print(
        f"{window['from']} to {window['to']}: {read['rows']} statements read, {read['imported']} imported. "
        f"{read['resultCache']} came from the warehouse's own cache, {read['failed']} failed, "
        f"{read['truncated']} are cut, {read['unparsed']} could not be parsed."
    )
    console.print(
        f"{percent(repeats['hour'])} repeat within an hour, {percent(repeats['day'])} within a day: the same "
        "text with the same literals."
    )
    if report["rules"]:
        console.print(rules)
    else:
        console.print("No rule would save enough.")
    console.print(
        f"Billed in {bill['days']} days, by the model: {show_bill(bill['without'])}. With the rules: "
        f"{show_bill(bill['withRules'])}. Saved in a month: {show_bill(bill['savedPerMonth'])}. Billed is "
        "all the time that a warehouse is awake, so a hit can save more billed time than its statement runs."
    )
    if bill["metering"] is not None:
        console.print(_metering_table(bill["metering"]))
    for note in report["notes"]:
        console.print(f"- {visible(note)}")
    console.print(
        "A real Gateway may read statements in another way: rules on tables, users and types are surer than "
        "rules on texts."
    )
    console.print(report["url"], soft_wrap=True)
    console.print(_say_who_sees(owner), soft_wrap=True)
    return text.getvalue()


def _say_who_sees(owner: str | None) -> str:
    if owner is None:
        return "To see it there, run this again with --owner EMAIL, start the service (make run) and sign in."
    return f"To see it there, start the service (make run) and sign in as {visible(owner)}."


def _metering_table(days: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title="The model beside what was billed")
    for name in ("warehouse", "day"):
        table.add_column(name)
    for name in ("model h", "billed", "billed h", "ratio"):
        table.add_column(name, justify="right")
    table.add_column("why")
    for day in days:
        table.add_row(
            visible(day["host"]),
            day["day"],
            f"{day['modelMs'] / HOUR_MS:.2f}",
            day["metered"] or "-",
            "-" if day["meteredMs"] is None else f"{day['meteredMs'] / HOUR_MS:.2f}",
            "-" if day["ratio"] is None else f"{day['ratio']:.2f}",
            day["inWords"],
        )
    return table


def _cells(counts: Mapping[str, Any]) -> list[str]:
    saved = {name: round((value or 0) / HOUR_MS, 1) for name, value in counts["savedMs"].items()}
    return [
        str(count_requests(counts)),
        show_range(counts["hits"]),
        str(counts["misses"]),
        show_range(saved),
        show_range(counts["risk"]),
    ]
