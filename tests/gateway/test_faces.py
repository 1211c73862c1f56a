"""psycopg against the reference Gateway on the network. `make test-drivers` tries other drivers."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from django.core.management import call_command
from psycopg.types.numeric import Int4, Int8

from logs.definitions import HIT, MISS, REQUEST
from tests.gateway.faces.postgresql import PostgreSQLFace
from tests.gateway.faces.scene import Scene, check, scene, serving  # noqa: F401  # a fixture
from tests.gateway.faces.tls import HOST

pytestmark = pytest.mark.django_db(transaction=True)

ROOT: Final = Path(__file__).parents[2]
READ = "SELECT amount FROM sales.orders WHERE id = 1"
WRITE = "UPDATE sales.orders SET amount = amount + 1"


@contextmanager
def connected(scene: Scene, **options: Any) -> Iterator[psycopg.Connection[Any]]:  # noqa: F811
    face = PostgreSQLFace(scene.gateway, scene.tenant_id, warehouse=scene.warehouse, tls=scene.tls)
    with (
        serving(face),
        psycopg.connect(
            host=HOST,
            port=face.port,
            dbname="sales",
            user=scene.users["ann"],
            password=scene.tokens["ann"],
            sslmode="verify-full",
            sslrootcert=str(scene.authority),
            autocommit=True,
            **options,
        ) as session,
    ):
        yield session


def statuses(scene: Scene) -> list[str]:  # noqa: F811
    """Return what became of the statements on tables, and begin a new log."""
    found = [entry["cacheStatus"] for entry in scene.read_log() if entry.get("tableCount")]
    scene.objects.clear()
    return found


def test_a_driver_asks_and_the_summary_has_it(scene: Scene) -> None:  # noqa: F811
    face = PostgreSQLFace(scene.gateway, scene.tenant_id, warehouse=scene.warehouse, tls=scene.tls)
    with serving(face):
        answers = scene.visit(sys.executable, "psycopg", face.port)
    log = scene.read_log()
    assert check(answers, log) == Counter(SPOOFED=28)
    control = {entry.get("statementType") for entry in log if entry["cacheStatus"] == "SPOOFED"}
    assert control == {None, "BEGIN", "COMMIT", "ROLLBACK"}
    # From the objects of the log to what the dashboard shows. Control statements are no requests.
    call_command("rebuild", verbosity=0)
    day = datetime.fromtimestamp(log[0]["timestamp"] / 1000, UTC)
    summary = scene.admin.get(f"/tenants/{scene.tenant_id}/summaries/{day:%Y/%m/%d}").json()
    counts = Counter(entry["cacheStatus"] for entry in log)
    assert (summary["cacheHits"], summary["totalHits"]) == (
        sum(counts[name] for name in HIT),
        sum(counts[name] for name in REQUEST),
    )
    assert summary["cacheMisses"] == sum(counts[name] for name in MISS) == 7
    assert summary["uniqueUsers"] == 2
    effects = scene.admin.get(f"/tenants/{scene.tenant_id}/summaries/{day:%Y}/rules").json()["rules"]
    hits = {rule["ruleId"]: rule["cacheHits"] for rule in effects}
    assert (hits["orders"], hits["people"], hits["targets"]) == (2, 2, 0)


def test_a_transaction_sees_its_own_writes_and_ends_older_results_at_its_commit(
    scene: Scene,  # noqa: F811
) -> None:
    with connected(scene) as session, connected(scene) as other:

        def read(by: psycopg.Connection[Any]) -> Any:
            return by.execute(READ).fetchone()

        assert (read(session), read(other)) == ((10,), (10,))
        with session.transaction():
            session.execute(WRITE)
            # Its own writes are neither served to it from the cache nor stored for others.
            assert (read(session), read(other)) == ((11,), (10,))
        assert (read(other), read(session)) == ((11,), (11,))
        with session.transaction(force_rollback=True):
            session.execute(WRITE)
            assert read(session) == (12,)
        assert read(session) == (11,)
    assert statuses(scene) == [
        *("MISS", "HIT", "BYPASS", "BYPASS", "HIT", "MISS", "HIT"),
        *("BYPASS", "BYPASS", "HIT"),
    ]


def test_a_refused_statement_ends_its_transaction_as_an_error_does(scene: Scene) -> None:  # noqa: F811
    with connected(scene) as session:
        session.execute("BEGIN")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="no-secrets"):
            session.execute("SELECT text FROM secret.notes")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            session.execute("SELECT 1")
        session.execute("ROLLBACK")
        with pytest.raises(psycopg.errors.UndefinedColumn):
            session.execute("SELECT nothing FROM sales.orders")
        assert session.execute("SELECT 1").fetchone() == (1,)
    assert statuses(scene) == ["BLOCKED", "ERROR"]


def test_what_a_result_depends_on_beside_the_text_is_in_the_key(scene: Scene) -> None:  # noqa: F811
    with connected(scene) as session:
        session.execute(READ)
        session.execute("/* a comment */ SELECT amount\n FROM sales.orders WHERE id = 1 -- another")
        session.execute("SELECT amount FROM sales.orders WHERE id = 2")
        assert statuses(scene) == ["MISS", "HIT", "MISS"]
        for setting in ("search_path TO hr", "TimeZone TO 'Asia/Tokyo'", "DateStyle TO 'German'"):
            session.execute(f"SET {setting}")
            session.execute(READ)
            session.execute("RESET ALL")
            session.execute(READ)
        assert statuses(scene) == ["MISS", "HIT"] * 3
        session.execute(READ, binary=True)
        assert session.execute(READ, binary=True).fetchone() == (10,)
        assert session.execute(READ).fetchone() == (10,)
        assert statuses(scene) == ["MISS", "HIT", "HIT"]
        # The same bytes as a parameter of another type.
        for number in (Int4(1), Int8(1), Int8(1)):
            session.execute("SELECT amount FROM sales.orders WHERE id = %s", [number])
        assert statuses(scene) == ["MISS", "MISS", "HIT"]
        session.execute("CREATE TEMPORARY TABLE mine (a int)")
        session.execute(READ)
        with session.transaction():
            session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            session.execute(READ)
        assert statuses(scene) == ["PASSTHROUGH", "MISS", "BYPASS"]


def test_cursors_and_copies(scene: Scene) -> None:  # noqa: F811
    with connected(scene) as session:
        for _ in range(2):
            with session.cursor() as cursor, cursor.copy(f"COPY ({READ}) TO STDOUT") as copy:
                assert [*copy.rows()] == [("10",)]
        with session.cursor() as cursor, cursor.copy("COPY sales.orders FROM STDIN") as copy:
            copy.write_row((2, 20))
        with session.cursor() as cursor, cursor.copy(f"COPY ({READ}) TO STDOUT") as copy:
            assert [*copy.rows()] == [("10",)]
        with session.transaction(), session.cursor(name="c") as named:
            assert named.execute("SELECT amount FROM sales.orders ORDER BY id").fetchall() == [(10,), (20,)]
    log = scene.read_log()
    found = [entry["cacheStatus"] for entry in log if entry.get("tableCount")]
    assert found == ["MISS", "HIT", "BYPASS", "MISS", "BYPASS"]
    assert Counter(entry["statementType"] for entry in log if entry["cacheStatus"] == "EXECUTOR") == {
        "FETCH": 1,
        "CLOSE": 1,
    }


#: What environments have beside drivers.
_BESIDE = ("pandas", "pyarrow")


def test_the_document_names_what_was_tried() -> None:
    tried = (ROOT / "docs/connect.md").read_text().partition("## Tried")[2]
    tried += (ROOT / "docs/connect-log.md").read_text()
    pinned = json.loads((ROOT / "tests/drivers/scripts/package.json").read_text())["dependencies"]
    for file in (ROOT / "tests/drivers/environments").glob("*.txt"):
        lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
        pinned |= {
            f"{file.stem} {line}": line.partition("==")[2] for line in lines if not line.startswith(_BESIDE)
        }
    assert {name: version for name, version in pinned.items() if version not in tried} == {}


def test_a_wrong_token_is_told_at_once(scene: Scene) -> None:  # noqa: F811
    scene.tokens["ann"] += "x"
    with pytest.raises(psycopg.OperationalError, match="The token is not valid"), connected(scene):
        pass
    assert [entry["cacheStatus"] for entry in scene.read_log()] == ["AUTH_ERROR"]
