"""Apache Superset reads the log through the SQLAlchemy dialect: `make test-superset`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.clients.programs import SCRIPTS, SUPERSET, run

if TYPE_CHECKING:
    from tests.clients.programs import Service


@pytest.mark.superset
@pytest.mark.django_db(transaction=True)
def test_superset_draws_the_hit_rate_by_day(tmp_path: Path, service: Service) -> None:
    config = tmp_path / "superset_config.py"
    config.write_text(
        "SECRET_KEY = 'only for this test, which throws its database away'\n"
        f"SQLALCHEMY_DATABASE_URI = 'sqlite:///{tmp_path}/superset.db'\n"
        "WTF_CSRF_ENABLED = False\n"
    )
    host = service.url.removeprefix("http://")
    uri = f"tenantadmin://token:{service.pat}@{host}/{service.tenant}?scheme=http"
    printed = run(
        *(str(SUPERSET / "bin/python"), str(SCRIPTS / "superset_chart.py"), uri),
        SUPERSET_CONFIG_PATH=str(config),
        SUPERSET_HOME=str(tmp_path),
    )
    assert json.loads(printed.splitlines()[-1]) == [{"day": "2026-03-01", "hit rate": pytest.approx(1 / 3)}]
