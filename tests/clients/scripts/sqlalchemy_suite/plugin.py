"""SQLAlchemy's plugin for pytest, with the dialect that makes tables.

The client reads a log, and SQLAlchemy's tests fill their own tables. This dialect adds what writes.
"""

from __future__ import annotations

import pytest
from sqlalchemy.dialects import registry

registry.register("tenantadmin", "dialect", "WritingDialect")
registry.register("tenantadmin.rest", "dialect", "WritingDialect")
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from offered import EXCLUDED  # noqa: E402
from sqlalchemy.testing.plugin import pytestplugin  # noqa: E402
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list) -> None:
    pytestplugin.pytest_collection_modifyitems(session, config, items)
    names = {item: item.nodeid.partition("::")[2].replace("_tenantadmin+rest", "") for item in items}
    left_out = [item for item in items if names[item].startswith(tuple(EXCLUDED))]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
