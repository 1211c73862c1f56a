"""Real drivers against the reference Gateway on the network. `make test-drivers` installs them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.gateway.faces.databricks import DatabricksFace, load_types
from tests.gateway.faces.postgresql import PostgreSQLFace
from tests.gateway.faces.scene import Scene, check, scene, serving  # noqa: F401  # a fixture
from tests.gateway.faces.snowflake import SnowflakeFace

pytestmark = pytest.mark.django_db(transaction=True)

DRIVERS: Final = Path(__file__).parents[2] / ".cache/drivers"


@pytest.mark.parametrize(
    ("driver", "name", "others"),
    [
        ("psycopg", None, Counter(SPOOFED=28)),
        ("psycopg2", None, Counter(SPOOFED=28)),
        ("asyncpg", None, Counter(SPOOFED=15)),
        ("sqlalchemy", None, Counter(SPOOFED=40, PASSTHROUGH=6)),
        ("adbc-postgresql", None, Counter(SPOOFED=30, PASSTHROUGH=10)),
    ],
)
def test_postgresql(
    scene: Scene,  # noqa: F811
    driver: str,
    name: str | None,
    others: Counter[str],
) -> None:
    face = PostgreSQLFace(scene.gateway, scene.tenant_id, warehouse=scene.warehouse, tls=scene.tls)
    with serving(face):
        answers = scene.visit(DRIVERS / "postgresql/bin/python", driver, face.port)
    log = scene.read_log()
    assert check(answers, log) == others
    assert {entry["userAgent"] for entry in log} == {name}


@pytest.mark.parametrize(
    ("environment", "variable", "name"),
    [
        ("snowflake4", "REQUESTS_CA_BUNDLE", "PythonConnector/4.8.1 "),
        ("snowflake5", "SSL_CERT_FILE", "PythonConnector/5.2.0 "),
    ],
)
def test_snowflake(scene: Scene, environment: str, variable: str, name: str) -> None:  # noqa: F811
    face = SnowflakeFace(scene.gateway, scene.tenant_id, warehouse=scene.warehouse, tls=scene.tls)
    with serving(face):
        answers = scene.visit(
            DRIVERS / environment / "bin/python",
            "snowflake",
            face.port,
            environment={variable: str(scene.authority)},
        )
    log = scene.read_log()
    assert check(answers, log) == Counter(SPOOFED=4, TELEMETRY=2)
    assert all(entry["userAgent"].startswith(name) for entry in log)


def test_databricks(scene: Scene) -> None:  # noqa: F811
    load_types(DRIVERS / "databricks")
    face = DatabricksFace(scene.gateway, scene.tenant_id, warehouse=scene.warehouse, tls=scene.tls)
    with serving(face):
        answers = scene.visit(
            DRIVERS / "databricks/bin/python",
            "databricks",
            face.port,
            environment={"SSL_CERT_FILE": str(scene.authority)},
        )
    log = scene.read_log()
    assert check(answers, log) == Counter(SPOOFED=4)
    assert all(entry["userAgent"].startswith("PyDatabricksSqlConnector/4.9.0") for entry in log)
