"""``manage.py digest --tenant ID``: print a digest. Make it first if it is missing or stale."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError
from datetime import date
from typing import Any, Final
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from accounts.management.arguments import add_tenant, day_argument
from analytics.jobs.digests import make_digest
from analytics.watch.facts import DigestPeriod
from analytics.watch.verdict import find_closing_of_all
from analytics.words.digests import digest_document, render_digest
from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.database.connections import Busy
from tenantadmin.lib.objectstore import StoreError, default_store
from tenantadmin.lib.terminal import visible

_FORMATS: Final = {"text": "text/plain", "markdown": "text/markdown"}


class Command(BaseCommand):
    help = (
        "Prints the digest of a day or a week: what happened. The JSON has the SQL of each number. The "
        "digest is made now if there is none or a build of its days has changed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_tenant(parser)
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--day", type=day_argument, metavar="DAY", help="YYYY-MM-DD")
        which.add_argument("--week", type=_week_argument, metavar="WEEK", help="YYYY-Www, as 2026-W09")
        parser.add_argument("--format", choices=[*_FORMATS, "json"], default="text")

    def handle(
        self,
        *,
        tenant: UUID,
        day: date | None,
        week: DigestPeriod | None,
        format: str,  # noqa: A002  # the name of the option
        **_: Any,
    ) -> None:
        period = DigestPeriod.of_day(day) if day else week
        assert period is not None  # noqa: S101  # argparse requires one of them
        try:
            digest = make_digest(default_store(), tenant=tenant, period=period, wait=True)
        except (Busy, StoreError) as error:
            raise CommandError(visible(str(error))) from error
        if digest is None:
            raise CommandError(f"There is no log entry in {period.name}.")
        if format == "json":
            self.stdout.write(dump_json(digest_document(digest, find_closing_of_all([digest]))).decode())
        else:
            text = render_digest(digest, _FORMATS[format])
            self.stdout.write("\n".join(visible(line) for line in text.splitlines()))


def _week_argument(text: str) -> DigestPeriod:
    """Parse the argument ``--week``.

    Raises:
        ArgumentTypeError: the text is not a week.
    """
    if not re.fullmatch(r"[0-9]{4}-W[0-9]{2}", text):
        raise ArgumentTypeError(f"{text!r} is not a week; write it like 2026-W09")
    try:
        return DigestPeriod.named(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r}: {error}") from None
