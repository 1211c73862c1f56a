"""Learn from the log whether the Gateway skips the cache for some requests, and keeps users apart.

Section "Status" of the definition (docs/replay.md).
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from analytics.replay.arrays import make_schema, registered
from analytics.replay.job import Gateway
from analytics.replay.placing import make_placed
from logs.definitions import BYPASSED
from rules.language import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb import DuckDBPyConnection

    from analytics.replay.job import Job, Ruleset

_ON: Final = 0.99
_OFF: Final = 0.01
_VARYING: Final = make_schema(ruleset=pa.int64(), logged_rule=pa.string())


def learn_gateway(
    connection: DuckDBPyConnection, job: Job, in_force: Sequence[Ruleset], *, restarts: Sequence[int]
) -> Gateway:
    """Return the settings of the Gateway: those that the job knows, and the others from the log.

    A setting is True if it holds for nearly all cases in the log, False if for nearly none, and otherwise
    None. The Gateway declines requests if those that the current cache rules decided are BYPASS.

    Args:
        in_force: the rulesets that were in force, oldest first.
    """
    known = job.gateway
    cache_rules = [rule.id for rule in job.current if rule.action is Action.CACHE]
    query = "SELECT {} FROM request WHERE list_contains($rules::VARCHAR[], logged_rule)"
    shares = connection.execute(
        query.format(", ".join(_share(flag) for flag in ("is_nocache", "is_non_deterministic"))),
        {"rules": cache_rules},
    ).fetchall()[0]
    flags = [_read_share(share) for share in shares]
    keys_per_user = known.keys_per_user
    if keys_per_user is None:
        keys_per_user = _read_share(_share_per_user(connection, in_force, restarts))
    return Gateway(
        nocache=flags[0] if known.nocache is None else known.nocache,
        non_deterministic=flags[1] if known.non_deterministic is None else known.non_deterministic,
        keys_per_user=keys_per_user,
    )


def _share_per_user(
    connection: DuckDBPyConnection, in_force: Sequence[Ruleset], restarts: Sequence[int]
) -> float | None:
    """Return the share of results that several users asked for, and that no two of them shared.

    A result is what requests with a cache key agree in: rule, restart and identity. Results of rules that
    varied when they were in force say nothing about what the Gateway does by itself.
    """
    varying = [
        {"ruleset": number, "logged_rule": rule.id}
        for number, ruleset in enumerate(in_force)
        for rule in ruleset.rules
        if rule.vary_by
    ]
    with registered(connection, logged_varying=pa.Table.from_pylist(varying, _VARYING)):
        make_placed(connection, in_force, restarts)
        share: float | None = connection.execute(
            """
            WITH stored AS (
                SELECT logged_rule, restart, identity, cache_key, count(DISTINCT user_name) AS users,
                    min(user_name) AS first_user, max(user_name) AS last_user
                FROM placed ANTI JOIN logged_varying USING (ruleset, logged_rule)
                WHERE cache_key IS NOT NULL AND user_name IS NOT NULL AND logged_rule IS NOT NULL
                GROUP BY logged_rule, restart, identity, cache_key
            )
            SELECT count(*) FILTER (most = 1) / nullif(count(*), 0) FROM (
                SELECT max(users) AS most FROM stored GROUP BY logged_rule, restart, identity
                HAVING min(first_user) <> max(last_user)
            )
            """
        ).fetchall()[0][0]
    return share


def _share(flag: str) -> str:
    return f"count(*) FILTER ({flag} AND {BYPASSED.of('logged')}) / nullif(count(*) FILTER ({flag}), 0)"


def _read_share(share: float | None) -> bool | None:
    if share is None or _OFF < share < _ON:
        return None
    return share >= _ON


def find_other_gateways(connection: DuckDBPyConnection, gateway: Gateway) -> list[Gateway]:
    """Return the other possible settings of the Gateway that would change the outcome played last.

    An unknown setting was played as True. The others have it False, if ``decided`` holds such requests. That
    the Gateway keeps users apart is only played if it is known.
    """
    affected = connection.execute(
        "SELECT bool_or(is_nocache), bool_or(is_non_deterministic) FROM decided"
    ).fetchall()[0]
    choices = [
        [True, False] if setting is None and is_affected else [setting is not False]
        for setting, is_affected in zip((gateway.nocache, gateway.non_deterministic), affected, strict=True)
    ]
    return [Gateway(nocache, random, gateway.keys_per_user) for nocache, random in product(*choices)][1:]
