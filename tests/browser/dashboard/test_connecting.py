"""What the page shows for programs is right, with a PostgreSQL in the place of a Gateway."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from django.db import connection

if TYPE_CHECKING:
    from tests.browser.dashboard.demo import Demo

pytestmark = pytest.mark.browser

KINDS = ("postgresql", "databricks", "snowflake")
HOW_TO = (
    "([tool, config]) => import('/static/dashboard/connect.js')"
    ".then(({howTo, targetOf}) => howTo(tool, targetOf(config, 'ann@example.org')))"
)


def config(kind: str, **house: Any) -> dict[str, Any]:
    connected = {"adapterType": kind, "serverHostname": "w.example.org", **house}
    return {"fqdns": ["quiet-harbor-42.gateway.localhost"], "warehouse": connected}


def test_the_lines_of_python_and_of_dbt(demo: Demo, home: str, open_as: Callable[..., Any]) -> None:
    server = connection.settings_dict
    with open_as(demo.member, home) as dashboard:

        def how_to(tool: str, shown: dict[str, Any]) -> str:
            text: str = dashboard.page.evaluate(HOW_TO, [tool, shown])
            return text

        here = config("postgresql", port=int(server["PORT"] or 5432), database=server["NAME"])
        here["fqdns"] = [server["HOST"]]
        script = how_to("Python", here).replace("ann@example.org", server["USER"])
        profiles = {kind: yaml.safe_load(how_to("dbt", config(kind))) for kind in KINDS}
        scripts = {kind: how_to("Python", config(kind)) for kind in KINDS}
        others = [
            how_to(tool, config(kind, port=1234))
            for kind in KINDS
            for tool in ("Python", "dbt", "JDBC", "DBeaver", "Tableau", "Power BI")
        ]
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "GATEWAY_TOKEN": server["PASSWORD"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "(1,)\n"
    for kind, text in scripts.items():
        compile(text, kind, "exec")
    outputs = {kind: profile["gateway"]["outputs"]["gateway"] for kind, profile in profiles.items()}
    common = {"host": "quiet-harbor-42.gateway.localhost"}
    secret = "{{ env_var('GATEWAY_TOKEN') }}"
    assert outputs == {
        "postgresql": {
            **common,
            "type": "postgres",
            "port": 5432,
            "user": "ann@example.org",
            "password": secret,
            "dbname": "postgres",
            "sslmode": "verify-full",
            "sslrootcert": "system",
            "schema": "public",
        },
        "databricks": {
            **common,
            "type": "databricks",
            "http_path": "/sql/1.0/warehouses/ID",
            "token": secret,
            "catalog": "main",
            "connection_parameters": {"_port": 443},
            "schema": "default",
        },
        "snowflake": {
            **common,
            "type": "snowflake",
            "port": 443,
            "account": "quiet-harbor-42",
            "user": "ann@example.org",
            "authenticator": "oauth",
            "token": secret,
            "database": "DATABASE",
            "warehouse": "WAREHOUSE",
            "schema": "PUBLIC",
        },
    }
    assert all("quiet-harbor-42.gateway.localhost" in text and "1234" in text for text in others)
