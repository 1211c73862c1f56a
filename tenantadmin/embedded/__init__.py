"""A real PostgreSQL and a real Redis for development and tests, from wheels, under one directory.

Nothing to install, nothing to configure, no port, nothing written outside the directory. Imports no Django.

    with embedded.running(Path("var")):
        ...  # the servers answer at embedded.endpoints(Path("var"))
"""

from __future__ import annotations

from tenantadmin.embedded.errors import EmbeddedError
from tenantadmin.embedded.layout import Endpoints, celery_broker_url, endpoints
from tenantadmin.embedded.lease import (
    Needs,
    RunningForTests,
    Server,
    prepare_var_dir,
    running,
    start_for_tests,
    unconfigured,
)

__all__ = [
    "EmbeddedError",
    "Endpoints",
    "Needs",
    "RunningForTests",
    "Server",
    "celery_broker_url",
    "endpoints",
    "prepare_var_dir",
    "running",
    "start_for_tests",
    "unconfigured",
]
