"""Rebuild and query over S3: raw objects are read in parallel, rollups from copies on this machine."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from analytics.models import Kind
from analytics.numbers.users import find_user_source, user_document
from logs.audit import Reader
from logs.queries import run_query
from tenantadmin.lib.objectstore import default_store
from tests.analytics import oracle
from tests.analytics.builds import TENANT, document, entry, put, rebuild_all, rows_of
from tests.objects import use_store
from tests.s3 import s3_endpoint, s3_url  # noqa: F401  # fixtures

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

DAYS = (date(2025, 12, 31), date(2026, 1, 1))


def test_documents_over_s3_equal_the_oracle(
    s3_url: str,  # noqa: F811
    settings: Any,
    tmp_path: Path,
) -> None:
    use_store(settings, s3_url)
    settings.VAR_DIR = tmp_path
    for day in DAYS:
        for number in range(60):
            put(f"{number % 24:02}/{number}.json", entry(day, userName=f"u{number % 7}"), day=day)

    assert rebuild_all() == (list(DAYS), ["2025-12", "2026-01", "2025", "2026", ""])

    rows = rows_of(*DAYS)
    assert len(rows) == 120
    assert document(Kind.DAY, "2026-01-01") == oracle.day_document(rows[60:])
    assert document(Kind.YEAR, "2026") == oracle.year_document(rows, tenant=str(TENANT), year=2026)
    assert document(Kind.USERS, "")["totalUsers"] == 7
    mine = oracle.for_user(rows, "u3")
    wanted = {
        "2026": oracle.year_document(mine, tenant=str(TENANT), year=2026),
        "2026-01": oracle.month_document(oracle.for_user(rows[60:], "u3"), 1),
        # It was computed from local copies of three tables.
        "2026-01-01": oracle.day_document(oracle.for_user(rows[60:], "u3")),
    }
    for period, expected in wanted.items():
        source = find_user_source(tenant=TENANT, user="u3", period=period)
        assert source is not None
        body = user_document(default_store(), source)
        assert isinstance(body, bytes)
        assert json.loads(body) == expected
    assert rebuild_all() == ([], [])


def test_queries_over_s3_read_local_copies(s3_url: str, settings: Any, tmp_path: Path) -> None:  # noqa: F811
    use_store(settings, s3_url)
    settings.VAR_DIR = tmp_path
    for day in DAYS:
        put("00/a.json", entry(day), day=day)
    rebuild_all()

    statement = "SELECT day, count(*) AS n FROM proxy_logs GROUP BY day ORDER BY day"
    result = run_query(
        default_store(), tenant=TENANT, statement=statement, reader=Reader("a@example.org", "")
    )
    assert [row for batch in result.batches for row in batch.to_pylist()] == [
        {"day": "2025-12-31", "n": 1},
        {"day": "2026-01-01", "n": 1},
    ]
