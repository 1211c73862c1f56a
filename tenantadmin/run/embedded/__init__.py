"""A real PostgreSQL and a real Redis (Valkey) for development and tests, from wheels, under one directory.

There is nothing to install or configure. The servers use sockets instead of ports, and write only into the
directory. Imports no Django.

    with embedded.running(Path("var")):
        ...  # connect to embedded.endpoints(Path("var"))
"""

from __future__ import annotations

from tenantadmin.run.embedded.layout import EmbeddedError, Endpoints, celery_broker_url, endpoints
from tenantadmin.run.embedded.servers import (
    Needs,
    Server,
    find_needs,
    prepare_var_dir,
    running,
)

__all__ = [
    "EmbeddedError",
    "Endpoints",
    "Needs",
    "Server",
    "celery_broker_url",
    "endpoints",
    "find_needs",
    "prepare_var_dir",
    "running",
]
