"""`manage.py seed_demo`: two tenants with users, rules and a month of logs, to try the service."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from analytics.demo.logs import DemoDataError, read_demo
from analytics.demo.profile import PROFILE_DAYS
from analytics.demo.seed import DemoUsersMissing, Step, continue_demo, demo_file, seed_demo
from analytics.management.printing import progress_bar
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.objectstore import StoreError, default_store


class Command(BaseCommand):
    """Seeds the demo once. A second run completes an interrupted first run, or changes nothing."""

    help = (
        "Seed demo data once: an account, two tenants with rulesets, users, and 30 days of generated logs up "
        "to yesterday. A password and a token are written to demo.json in VAR_DIR. Next: manage.py rebuild"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--continue",
            action="store_true",
            dest="later",
            help="also write the days since the demo was seeded, up to yesterday",
        )

    def handle(self, *, later: bool = False, **_options: Any) -> None:
        entries = 0
        try:
            demo = read_demo()
            with progress_bar(only_on_terminal=True) as progress:
                task = progress.add_task("Demo logs", total=PROFILE_DAYS * len(demo.profiles), visible=False)
                store, today = default_store(), datetime.now(UTC).date()
                steps: Iterator[Step] = seed_demo(store, demo, today=today)
                if later:
                    steps = chain(steps, continue_demo(store, demo, today=today))
                for step in steps:
                    entries += step.entries
                    progress.update(task, advance=1, visible=True, description=f"{step.tenant}, days")
        except (StoreError, OSError) as error:
            raise CommandError(f"{error}. Fix this and run the command again. It continues there.") from error
        except (ApiError, DemoDataError, DemoUsersMissing) as error:
            raise CommandError(str(error)) from error
        tenants = len(demo.profiles)
        seeded = f"{entries:,} log entries in {tenants} tenants" if entries else "complete already"
        self.stdout.write(f"Demo data: {seeded}. Password and token: {demo_file()}")
