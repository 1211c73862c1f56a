"""The one error of this package."""

from __future__ import annotations


class EmbeddedError(Exception):
    """Why the development servers cannot run: one sentence or two, for a person, with the cure."""
