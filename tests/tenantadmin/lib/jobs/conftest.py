"""A stub receiver of webhooks, as for alerts."""

from __future__ import annotations

from tests.receiver import receiver

__all__ = ["receiver"]
