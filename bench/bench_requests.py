"""A page of 50 requests (``GET …/requests``) beside the query that gives the same rows (``POST …/query``).

Each page and each query differs from all before, so that no kept result answers it.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from bench.bench_sql import register, write_log
from bench.harness import Answer, Caller, Compared, granian, p95, show, times_in_turn
from tests import factories

_DAYS = {"from": "2025-01-01", "to": "2025-01-30"}
_FILTERS: dict[str, dict[str, str]] = {
    "all": {},
    "of a rule": {"rule": "rule-7", "status": "MISS"},
    "of a statement": {"statement": "TABLE_17 where"},
    "of a user, a week": {"user": "user-17", "from": "2025-01-20", "to": "2025-01-26"},
}
_NUMBERS = itertools.count()


def main(directory: Path, *, rows: int = 3_000_000, runs: int = 30) -> None:
    world = factories.make_world()
    objects = directory / "objects"
    write_log(objects / str(world.tenant.pk) / "compacted", rows_per_day=rows // 30)
    register(objects, world.tenant.pk)
    address = f"/tenants/{world.tenant.pk}"
    with granian() as port:
        caller = Caller(port, factories.sign_in(world.member))
        compared = [compare(caller, address, name, asked, runs=runs) for name, asked in _FILTERS.items()]
    show(f"p95 of a page of 50 of {rows:,} requests in 30 days", "ms", compared)


def compare(caller: Caller, address: str, name: str, asked: dict[str, str], *, runs: int) -> Compared:
    def page() -> Any:
        # One of these numbers of milliseconds is as good as another.
        query = urlencode({**_DAYS, **asked, "minMs": next(_NUMBERS) % 1000})
        return answered(caller.get(f"{address}/requests?{query}"))

    sql = page()["sql"]

    def query() -> None:
        body = json.dumps({"sql": f"{sql} -- {next(_NUMBERS)}"})
        answered(caller.send("POST", f"{address}/query", body))

    query()
    pages, queries = times_in_turn(page, query, runs=runs)
    return Compared(name, p95(pages), "its SQL", p95(queries), 2)


def answered(answer: Answer) -> Any:
    if answer.status != 200:
        raise RuntimeError(f"answered {answer.status}: {answer.body[:300]!r}")
    return json.loads(answer.body)
