"""Learn from the log whether the Gateway declines to use the cache by itself.

Section "Status" of the definition (docs/replay.md).
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final, TypeAlias

from analytics.replay.job import Gateway
from rules.language import Action

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from duckdb import DuckDBPyConnection

    from rules.language import Rule

#: Of requests with ``nocache``, and of non-deterministic statements.
Declines: TypeAlias = tuple[bool, bool]

_ON: Final = 0.99
_OFF: Final = 0.01


def learn_gateway(connection: DuckDBPyConnection, rules: Sequence[Rule], *, given: Gateway) -> Gateway:
    """Complete what the caller says of the Gateway by the log.

    Of the requests that the log gives to cache rules, nearly all or nearly none of each kind are BYPASS.

    Args:
        rules: the rules to which the log refers.
    """
    cache_rules = [rule.id for rule in rules if rule.action is Action.CACHE]
    query = "SELECT {} FROM request WHERE list_contains($rules::VARCHAR[], logged_rule)"
    shares = connection.execute(
        query.format(", ".join(_share(flag) for flag in ("is_nocache", "is_non_deterministic"))),
        {"rules": cache_rules},
    ).fetchall()[0]
    learned = [_read_share(share) for share in shares]
    return Gateway(
        nocache=learned[0] if given.nocache is None else given.nocache,
        non_deterministic=learned[1] if given.non_deterministic is None else given.non_deterministic,
    )


def _share(flag: str) -> str:
    return f"count(*) FILTER ({flag} AND logged = 'BYPASS') / nullif(count(*) FILTER ({flag}), 0)"


def _read_share(share: float | None) -> bool | None:
    if share is None or _OFF < share < _ON:
        return None
    return share >= _ON


def find_what_matters(connection: DuckDBPyConnection, table: str) -> dict[int, Declines]:
    """Return by rule whether there are decided requests of each kind that the Gateway may decline."""
    rows = connection.execute(
        f"SELECT rule, bool_or(is_nocache), bool_or(is_non_deterministic) FROM {table} GROUP BY rule"  # noqa: S608
    ).fetchall()
    return {rule: (nocache, non_deterministic) for rule, nocache, non_deterministic in rows}


def find_other_gateways(gateway: Gateway, matters: Iterable[Declines]) -> list[Gateway]:
    """Return what else the Gateway may do, if it matters to one of the rules.

    What is not known was played as declined.
    """
    flags = (gateway.nocache, gateway.non_deterministic)
    choices = (
        (flag is not False, *([False] if flag is None and may_differ else []))
        for flag, may_differ in zip(flags, either(matters), strict=True)
    )
    return [Gateway(*choice) for choice in product(*choices)][1:]


def either(matters: Iterable[Declines]) -> Declines:
    """Return for each kind whether it is true of one of them."""
    found = [False, False]
    for flags in matters:
        found = [before or flag for before, flag in zip(found, flags, strict=True)]
    return found[0], found[1]
