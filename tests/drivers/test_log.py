"""Real drivers at PostgreSQL's port, over the real service. `make test-drivers` installs them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.gateway.faces.tls import HOST
from tests.logs.wire.scene import filled, scene  # noqa: F401  # fixtures

if TYPE_CHECKING:
    from tests.logs.wire.scene import Scene

SCRIPTS: Final = Path(__file__).parent / "scripts"
DRIVERS: Final = Path(__file__).parents[2] / ".cache/drivers"
COUNTS: Final = [["u0", "3"], ["u1", "2"]]
SUMS: Final = [["40", "6.666666666666667", "2026-03-03 02:00:00"]]


def place(filled: Scene) -> dict[str, Any]:  # noqa: F811
    return {
        "host": HOST,
        "port": filled.port,
        "database": filled.database,
        "password": filled.password,
        "authority": str(filled.authority),
    }


def run(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "PGPASSWORD": "", **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("driver", "environment", "expected"),
    [
        ("psycopg", "postgresql", {"count": COUNTS, "sum": SUMS, "cursor": 6}),
        ("psycopg2", "postgresql", {"count": COUNTS, "sum": SUMS}),
        (
            "asyncpg",
            "postgresql",
            {"count": COUNTS, "sum": SUMS, "status": 6, "pages": [2, 4], "again": 6},
        ),
        (
            "sqlalchemy",
            "postgresql",
            {
                "count": COUNTS,
                "pages": [4, 2],
                "tables": ["proxy_logs"],
                "views": ["proxy_logs_time"],
                "columns": 52,
                "comment": "request time, epoch ms",
            },
        ),
        ("adbc", "postgresql", {"count": COUNTS, "sum": SUMS, "shape": [6, 54]}),
        ("connectorx", "readers", {"binary": COUNTS, "csv": COUNTS, "cursor": COUNTS}),
        (
            "ibis",
            "readers",
            {
                "count": COUNTS,
                "days": ["2026-03-01", "2026-03-02", "2026-03-03"],
                "pages": [4, 2],
                "tables": ["proxy_logs", "proxy_logs_time"],
            },
        ),
        (
            "harlequin",
            "readers",
            {"count": COUNTS, "columns": {"proxy_logs": 52, "proxy_logs_time": 54}},
        ),
    ],
)
def test_python(filled: Scene, driver: str, environment: str, expected: dict[str, Any]) -> None:  # noqa: F811
    python = DRIVERS / environment / "bin/python"
    found = json.loads(run(python, SCRIPTS / "log.py", driver, json.dumps(place(filled))).splitlines()[-1])
    assert found == expected


@pytest.mark.skipif(not (DRIVERS / "odbc/stamp").is_file(), reason="no Debian")
def test_odbc(filled: Scene) -> None:  # noqa: F811
    libraries = DRIVERS / "odbc/lib"
    there = json.dumps({**place(filled), "driver": str(libraries / "odbc/psqlodbcw.so")})
    python = DRIVERS / "readers/bin/python"
    found = json.loads(run(python, SCRIPTS / "log.py", "odbc", there, LD_LIBRARY_PATH=str(libraries)))
    expected = {
        "tables": ["proxy_logs", "proxy_logs_time"],
        "columns": 54,
        "count": COUNTS,
        "sum": SUMS,
        "pages": [2, 4],
    }
    assert found == {"plain": expected, "cursor": expected}


@pytest.mark.skipif(not (DRIVERS / "node/node_modules").is_dir(), reason="no npm")
def test_node(filled: Scene) -> None:  # noqa: F811
    found = json.loads(run("node", SCRIPTS / "log.mjs", DRIVERS / "node", json.dumps(place(filled))))
    assert found == {"count": COUNTS, "several": [[{"one": 1}], [{"n": "6"}]], "last": True}


@pytest.mark.skipif(not (DRIVERS / "pgjdbc/postgresql.jar").is_file(), reason="no Java or no Debian")
def test_pgjdbc(filled: Scene) -> None:  # noqa: F811
    jar, where = DRIVERS / "pgjdbc/postgresql.jar", [str(value) for value in place(filled).values()]
    lines = run("java", "-Duser.timezone=UTC", "-cp", jar, SCRIPTS / "Log.java", *where).splitlines()
    assert lines == [
        "tables\tproxy_logs proxy_logs_time",
        "columns\t52",
        *["sum\t20 5 2026-03-03 01:00:00.0"] * 8,
        "rows\t6",
    ]


@pytest.mark.skipif(shutil.which("psql") is None, reason="no psql")
def test_psql(filled: Scene) -> None:  # noqa: F811
    address = (
        f"host={HOST} port={filled.port} dbname={filled.database} user=anyone sslmode=verify-full"
        f" sslrootcert={filled.authority}"
    )
    ask = ("psql", "--no-psqlrc", "--tuples-only", "--no-align", address)
    password = {"PGPASSWORD": filled.password}
    assert "public|proxy_logs|table|" in run(*ask, "-c", r"\dt", **password)
    described = run(*ask, "-c", r"\d+ proxy_logs", **password)
    assert "userName|text|" in described
    assert "display name of the consumer" in described
    assert run(*ask, "-c", "SELECT count(*) FROM proxy_logs", **password) == "6\n"
    copied = run(
        *ask, "-c", r'\copy (SELECT "userName" FROM proxy_logs LIMIT 1) TO STDOUT CSV HEADER', **password
    )
    assert copied.splitlines()[0] == '"userName"'
