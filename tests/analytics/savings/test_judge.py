"""The published query against the judge: every number, for random logs and prices.

``SAVINGS_EXAMPLES=1000`` sets another number of logs than `make test` compares, ``SAVINGS_SEED=1000`` the
seed of the first.
"""

from __future__ import annotations

import os
import random
from datetime import timedelta
from typing import TYPE_CHECKING

import duckdb
import pytest

from tests.analytics.savings.judge import judge
from tests.analytics.savings.logs import FIRST_DAYS, answer, random_prices, random_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = int(os.environ.get("SAVINGS_EXAMPLES", "60"))
SEED = int(os.environ.get("SAVINGS_SEED", "0"))
PARTS = 4


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


@pytest.mark.parametrize("part", range(PARTS))
def test_every_number_is_the_judges(connection: duckdb.DuckDBPyConnection, part: int) -> None:
    for seed in range(SEED + part, SEED + EXAMPLES, PARTS):
        chance = random.Random(seed)  # noqa: S311  # reproducible, not secret
        first = chance.choice(FIRST_DAYS)
        last = first + timedelta(chance.choice([0, 0, 1, 3]))
        rows, prices = random_rows(chance, first, last), random_prices(chance, first, last)
        step = chance.choice(["day", "month"])
        found = answer(connection, rows, prices, first, last, step=step)
        assert found == judge(rows, prices, first, last, step), f"seed {seed}"
