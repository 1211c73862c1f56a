"""Statements in lists. Contract: Cache metadata and markers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import F, Func, JSONField

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Characters of a statement in a list. The document itself has the whole.
_LISTED: Final = 1000


class _Cut(Func):
    template = (
        "coalesce(jsonb_set(%(expressions)s, '{statement}',"
        f" to_jsonb(left(%(expressions)s ->> 'statement', {_LISTED}))), %(expressions)s)"
    )


def with_short_statement(field: str) -> Func:
    """Return an expression: a JSON object whose member ``statement`` is cut for a list."""
    return _Cut(F(field), output_field=JSONField())


def cut_statement(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object whose member ``statement`` is cut for a list."""
    return {name: value[:_LISTED] if name == "statement" else value for name, value in document.items()}
