"""A stub receiver of webhooks, as for alerts."""

from __future__ import annotations

from tests.analytics.alerts.conftest import receiver

__all__ = ["receiver"]
