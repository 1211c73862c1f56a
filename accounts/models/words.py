"""The words of names, addresses and host names, which staff search by."""

from __future__ import annotations

from django.contrib.postgres.search import SearchVector
from django.db.models import CharField, F, Func, Value

#: PostgreSQL takes a host name or an email as one word.
_BETWEEN = ".-_@+"


def words_of(field: str) -> SearchVector:
    """Return the words of a field with names of any kind."""
    apart = Func(
        F(field),
        Value(_BETWEEN),
        Value(" " * len(_BETWEEN)),
        function="translate",
        output_field=CharField(),
    )
    return SearchVector(apart, config="simple")
