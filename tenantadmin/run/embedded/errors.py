"""The error of this package."""

from __future__ import annotations


class EmbeddedError(Exception):
    """The development servers cannot run. The message says why, and what to do."""
