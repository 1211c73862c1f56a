"""Real drivers against the reference Gateway on the network. `make test-drivers` installs them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from logs.programs import name_program
from tests.gateway.faces.databricks import DatabricksFace, load_types
from tests.gateway.faces.postgresql import PostgreSQLFace
from tests.gateway.faces.scene import Scene, check, scene, serving  # noqa: F401  # a fixture
from tests.gateway.faces.snowflake import SnowflakeFace
from tests.gateway.faces.tls import HOST

pytestmark = pytest.mark.django_db(transaction=True)

DRIVERS: Final = Path(__file__).parents[2] / ".cache/drivers"


@pytest.mark.skipif(not (DRIVERS / "pgjdbc/postgresql.jar").is_file(), reason="no Java or no Debian")
def test_pgjdbc(scene: Scene) -> None:  # noqa: F811
    face = PostgreSQLFace(scene.gateway, scene.tenant_id, warehouse=scene.warehouse, tls=scene.tls)
    with serving(face):
        answers = scene.visit(sys.executable, "pgjdbc", face.port)
    log = scene.read_log()
    assert check(answers, log) == Counter(SPOOFED=6)
    # It names itself after it has connected.
    assert {name_program(entry["userAgent"]) for entry in log} == {None, "PostgreSQL JDBC driver"}


@pytest.mark.parametrize(
    ("driver", "name", "others"),
    [
        ("pg", None, Counter(SPOOFED=2)),
        ("snowflake", "Snowflake driver for Node.js 3.3.0", Counter(SPOOFED=4, TELEMETRY=2)),
        ("databricks", "Databricks SQL driver for Node.js 2.1.0", Counter(SPOOFED=4)),
    ],
)
@pytest.mark.skipif(not (DRIVERS / "node/node_modules").is_dir(), reason="no npm")
def test_node(scene: Scene, driver: str, name: str | None, others: Counter[str]) -> None:  # noqa: F811
    if driver == "databricks":
        load_types(DRIVERS / "databricks")
    faces = {"pg": PostgreSQLFace, "snowflake": SnowflakeFace, "databricks": DatabricksFace}
    face = faces[driver](scene.gateway, scene.tenant_id, warehouse=scene.warehouse, tls=scene.tls)
    with serving(face):
        answers = scene.visit(
            sys.executable,
            f"node-{driver}",
            face.port,
            environment={"NODE_EXTRA_CA_CERTS": str(scene.authority)},
        )
    log = scene.read_log()
    assert check(answers, log) == others
    assert {name_program(entry["userAgent"]) for entry in log} == {name}


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
    assert {name_program(entry["userAgent"]) for entry in log} == {name}


def test_dbt(scene: Scene, tmp_path: Path) -> None:  # noqa: F811
    """dbt builds a table and tests it twice. The second run of the tests asks the same."""
    database = psycopg.conninfo.conninfo_to_dict(scene.warehouse)["dbname"]
    project = {"name": "marts", "version": "1.0", "profile": "gateway", "model-paths": ["models"]}
    (tmp_path / "models").mkdir()
    (tmp_path / "dbt_project.yml").write_text(json.dumps(project))
    (tmp_path / "models/totals.sql").write_text(
        "{{ config(materialized='table') }} SELECT id, amount FROM sales.orders"
    )
    columns = [{"name": "id", "data_tests": ["unique", "not_null"]}]
    (tmp_path / "models/schema.yml").write_text(
        json.dumps({"models": [{"name": "totals", "columns": columns}]})
    )
    face = PostgreSQLFace(scene.gateway, scene.tenant_id, warehouse=scene.warehouse, tls=scene.tls)
    output = {
        "type": "postgres",
        "host": HOST,
        "port": face.port,
        "user": scene.users["ann"],
        "password": scene.tokens["ann"],
        "dbname": database,
        "schema": "sales",
        "sslmode": "verify-full",
        "sslrootcert": str(scene.authority),
        "threads": 1,
    }
    (tmp_path / "profiles.yml").write_text(
        json.dumps({"gateway": {"target": "gateway", "outputs": {"gateway": output}}})
    )
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    with serving(face):
        for command in ("run", "test"):
            done = subprocess.run(
                [str(DRIVERS / "dbt/bin/dbt"), "--no-use-colors", command, "--profiles-dir", str(tmp_path)],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=200,
            )
            assert done.returncode == 0, done.stdout
    log = scene.read_log()
    assert {name_program(entry["userAgent"]) for entry in log} == {"dbt"}
    counts = Counter(entry["cacheStatus"] for entry in log)
    assert counts["ERROR"] == 0
    assert 0.4 < counts["SPOOFED"] / counts.total() < 0.8
    # It writes another table and renames that, so that no write names the model.
    written = {
        name for entry in log if entry.get("isDataChange") or entry.get("isDDL") for name in entry["tables"]
    }
    assert f"{database}.sales.totals__dbt_tmp" in written


@pytest.mark.parametrize(
    ("environment", "variable", "name"),
    [
        ("snowflake4", "REQUESTS_CA_BUNDLE", "Snowflake Connector for Python 4.8.1"),
        ("snowflake5", "SSL_CERT_FILE", "Snowflake Connector for Python 5.2.0"),
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
    assert {name_program(entry["userAgent"]) for entry in log} == {name}


def test_databricks(scene: Scene) -> None:  # noqa: F811
    log = visit_databricks(scene)
    assert {name_program(entry["userAgent"]) for entry in log} == {
        "Databricks SQL Connector for Python 4.9.0"
    }


def test_databricks_asks_for_flags_and_sends_telemetry_at_port_443(scene: Scene) -> None:  # noqa: F811
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", 443))
        except OSError:
            pytest.skip("port 443 is not free, or needs rights")
    visit_databricks(scene, port=443)


def visit_databricks(scene: Scene, *, port: int = 0) -> list[dict[str, Any]]:  # noqa: F811
    load_types(DRIVERS / "databricks")
    face = DatabricksFace(scene.gateway, scene.tenant_id, warehouse=scene.warehouse, tls=scene.tls, port=port)
    with serving(face):
        answers = scene.visit(
            DRIVERS / "databricks/bin/python",
            "databricks",
            face.port,
            environment={"SSL_CERT_FILE": str(scene.authority)},
        )
    log = scene.read_log()
    others = check(answers, log)
    assert (others.pop("TELEMETRY", 0) > 0, others) == (port == 443, Counter(SPOOFED=4))
    return log
