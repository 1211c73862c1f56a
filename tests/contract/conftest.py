"""The seeded service of the fuzzing tests, and how many requests they sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract import fuzzing, seeding


@pytest.fixture
def seed(db: None, settings: Any) -> Iterator[seeding.Seed]:
    github = {
        "provider_id": "github",
        "name": "github",
        "client_id": "client",
        "secret": "secret",
        "settings": {},
    }
    settings.SIGNIN_PROVIDERS = ["github"]
    settings.SOCIALACCOUNT_PROVIDERS = {"github": {"APPS": [github], "OAUTH_PKCE_ENABLED": True}}
    settings.DNS_NAMESERVERS, settings.DNS_PORT, settings.DNS_TIMEOUT_SECONDS = ["127.0.0.1"], 9, 0.05
    seed = seeding.seed_service()
    with fuzzing.one_connection():
        yield seed


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many requests were sent, by the workers of pytest-xdist too."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    sent = sum(
        {
            report.nodeid: count
            for report in reports
            for name, count in getattr(report, "user_properties", ())
            if name == "requests"
        }.values()
    )
    if sent:
        terminalreporter.write_line(f"fuzzing: {sent} requests held against the contract")
