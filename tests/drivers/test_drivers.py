"""Real drivers against the reference Gateway on the network. `make test-drivers` installs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from logs.programs import name_program
from tests.drivers.drivers import DRIVERS, Driver
from tests.gateway.faces.scene import STEPS, Scene, Step, check, scene, serving  # noqa: F401  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)


def name(driver: Driver) -> str:
    return f"{driver.place}-{driver.name}"


def visit(
    scene: Scene,  # noqa: F811
    driver: Driver,
    *,
    materialized: str = "view",
    steps: Sequence[Step] = STEPS,
) -> tuple[list[Any], Any]:
    """Let a driver ask. Return its answers, and the face that it asked."""
    if driver.is_missing:
        pytest.skip("no npm, no Java, or no Debian")
    if driver.is_barred:
        pytest.skip(f"port {driver.port} is not free, or needs rights")
    face = driver.serve(scene)
    environment = dict.fromkeys(driver.trust, str(scene.authority))
    with serving(face):
        answers = scene.visit(
            driver.python,
            driver.name,
            face.port,
            environment={**environment, "MATERIALIZED": materialized},
            steps=steps,
        )
    return answers, face


@pytest.mark.parametrize("driver", DRIVERS, ids=name)
def test_the_scene(scene: Scene, driver: Driver) -> None:  # noqa: F811
    """What each driver is answered, what it leaves in the log, and what the service makes of that."""
    answers, _ = visit(scene, driver)
    log = scene.read_log()
    assert check(answers, log, sessions=driver.sessions) == driver.others
    assert {name_program(entry["userAgent"]) for entry in log} - {None} == {driver.program} - {None}
    scene.check_summaries()


@pytest.mark.parametrize("driver", DRIVERS, ids=name)
def test_how_often_a_driver_asks_what_is_refused(scene: Scene, driver: Driver) -> None:  # noqa: F811
    """Statuses of HTTP make drivers try again. An answer never does: the scene has one entry for each."""
    steps: list[Step] = [("ann", f"SELECT '{status}' AS refused", []) for status in driver.tries]
    answers, face = visit(scene, driver, steps=steps)
    assert face.tries.counts == driver.tries
    for (status, tries), answer in zip(driver.tries.items(), answers, strict=True):
        assert answer == [[status]] if tries > 1 else isinstance(answer, str), answer


@pytest.mark.parametrize(
    ("name", "materialized", "written"),
    [
        # It writes another table and renames that, so that no write names the model.
        ("dbt-postgres", "table", "totals__dbt_tmp"),
        ("dbt-snowflake", "view", "totals"),
        ("dbt-databricks", "view", "totals"),
    ],
)
def test_dbt_builds_and_tests(scene: Scene, name: str, materialized: str, written: str) -> None:  # noqa: F811
    (driver,) = (driver for driver in DRIVERS if driver.name == name)
    steps: list[Step] = [("ann", command, []) for command in ("dbt run", "dbt test")]
    answers, _ = visit(scene, driver, materialized=materialized, steps=steps)
    assert answers == [[], []]
    log = scene.read_log()
    counts = Counter(entry["cacheStatus"] for entry in log)
    assert counts["ERROR"] == 0
    database = psycopg.conninfo.conninfo_to_dict(scene.warehouse)["dbname"]
    changed = {
        name for entry in log if entry.get("isDataChange") or entry.get("isDDL") for name in entry["tables"]
    }
    assert f"{database}.sales.{written}" in changed


def test_without_its_flags_databricks_sends_no_telemetry(scene: Scene) -> None:  # noqa: F811
    """The driver asks for them at port 443, whatever the port, and is answered 404."""
    (driver,) = (driver for driver in DRIVERS if driver.name == "databricks")
    answers, _ = visit(scene, replace(driver, port=443))
    assert check(answers, scene.read_log()) == driver.others
