"""Learn from the log whether the Gateway skips the cache for some requests.

Section "Status" of the definition (docs/replay.md).
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

from analytics.replay.job import Gateway
from rules.language import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb import DuckDBPyConnection

    from rules.language import Rule

_ON: Final = 0.99
_OFF: Final = 0.01


def learn_gateway(connection: DuckDBPyConnection, rules: Sequence[Rule], *, known: Gateway) -> Gateway:
    """Return the settings of the Gateway: the known ones, and the others from the log.

    A setting is True if nearly all requests of its kind that cache rules decided are BYPASS in the log, False
    if nearly none are, and otherwise None.

    Args:
        rules: the rules that the log names.
    """
    cache_rules = [rule.id for rule in rules if rule.action is Action.CACHE]
    query = "SELECT {} FROM request WHERE list_contains($rules::VARCHAR[], logged_rule)"
    shares = connection.execute(
        query.format(", ".join(_share(flag) for flag in ("is_nocache", "is_non_deterministic"))),
        {"rules": cache_rules},
    ).fetchall()[0]
    flags = [_read_share(share) for share in shares]
    return Gateway(
        nocache=flags[0] if known.nocache is None else known.nocache,
        non_deterministic=flags[1] if known.non_deterministic is None else known.non_deterministic,
    )


def _share(flag: str) -> str:
    return f"count(*) FILTER ({flag} AND logged = 'BYPASS') / nullif(count(*) FILTER ({flag}), 0)"


def _read_share(share: float | None) -> bool | None:
    if share is None or _OFF < share < _ON:
        return None
    return share >= _ON


def find_other_gateways(connection: DuckDBPyConnection, gateway: Gateway) -> list[Gateway]:
    """Return the other possible settings of the Gateway that would change the outcome played last.

    An unknown setting was played as True. The others have it False, if ``decided`` holds such requests.
    """
    affected = connection.execute(
        "SELECT bool_or(is_nocache), bool_or(is_non_deterministic) FROM decided"
    ).fetchall()[0]
    choices = [
        [True, False] if setting is None and is_affected else [setting is not False]
        for setting, is_affected in zip((gateway.nocache, gateway.non_deterministic), affected, strict=True)
    ]
    return [Gateway(*choice) for choice in product(*choices)][1:]
