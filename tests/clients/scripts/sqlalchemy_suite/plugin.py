"""SQLAlchemy's plugin for pytest, with the dialect that makes tables.

The client reads a log, and SQLAlchemy's tests fill their own tables. This dialect adds what writes. The last
line of the output is JSON: how many tests passed, failed, and were left out for each reason.
"""

from __future__ import annotations

import json
from collections import Counter

import pytest
from sqlalchemy.dialects import registry

registry.register("tenantadmin", "dialect", "WritingDialect")
registry.register("tenantadmin.rest", "dialect", "WritingDialect")
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from offered import EXCLUDED, REASONS  # noqa: E402
from sqlalchemy.testing.plugin import pytestplugin  # noqa: E402
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list) -> None:
    pytestplugin.pytest_collection_modifyitems(session, config, items)
    for item in items:
        name = item.nodeid.partition("::")[2].replace("_tenantadmin+rest", "")
        for beginning, reason in EXCLUDED.items():
            if name.startswith(beginning):
                item.add_marker(pytest.mark.skip(reason))


def pytest_unconfigure(config: pytest.Config) -> None:
    stats = config.pluginmanager.get_plugin("terminalreporter").stats
    figures = Counter({name: len(stats.get(name, ())) for name in ("passed", "failed", "error")})
    for report in stats.get("skipped", ()):
        text = report.longrepr[2]
        figures[next((reason for reason in REASONS if text.endswith(reason)), text)] += 1
    print(json.dumps(figures))  # noqa: T201
