"""``manage.py sql``."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from logs.models import QueryRun

TENANT = "11111111-2222-4333-8444-555555555555"

pytestmark = pytest.mark.django_db


def test_a_table_is_printed_and_the_query_audited(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("sql", "SELECT count(*) AS n, '[b]x' AS t, NULL AS nothing FROM proxy_logs", tenant=TENANT)

    printed = capsys.readouterr().out
    assert all(text in printed for text in ("n", "BIGINT", "[b]x", "VARCHAR", "1 rows in"))
    assert QueryRun.objects.get().email == "manage.py sql"


def test_a_refused_statement_is_one_sentence() -> None:
    with pytest.raises(CommandError, match="SELECT"):
        call_command("sql", "DROP TABLE proxy_logs", tenant=TENANT)
