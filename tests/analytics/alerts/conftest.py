"""A stub receiver of webhooks that the settings allow."""

from __future__ import annotations

from tests.receiver import receiver

__all__ = ["receiver"]
