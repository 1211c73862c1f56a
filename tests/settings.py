"""The settings of the tests. They start real servers before Django reads the addresses.

The process that starts pytest owns the servers. The workers of pytest-xdist inherit their addresses.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from tenantadmin.run import embedded

if "TENANTADMIN_TEST_VAR" not in os.environ:
    # Nothing is written outside the checkout.
    _tests_dir = Path(__file__).resolve().parent.parent / "var" / "tests"
    _tests_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    _var_dir = Path(tempfile.mkdtemp(prefix="", dir=_tests_dir))
    _servers = contextlib.ExitStack()
    _servers.enter_context(embedded.running(_var_dir, durable=False))
    _endpoints = embedded.endpoints(_var_dir)
    os.environ.update(
        TENANTADMIN_TEST_VAR=str(_var_dir),
        VAR_DIR=str(_var_dir),
        DATABASE_URL=_endpoints.database_url,
        REDIS_URL=_endpoints.redis_url,
        DJANGO_DEBUG="1",
        PUBLIC_BASE_URL="http://testserver",
        PYTEST_DEBUG_TEMPROOT=str(_var_dir),
    )
    (_var_dir / "static").mkdir()
    atexit.register(shutil.rmtree, _var_dir, ignore_errors=True)
    atexit.register(_servers.close)

# Each worker has its own Redis database, because tests clear the cache, which empties the database.
_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
os.environ["REDIS_URL"] = re.sub(r"\?db=\d+", f"?db={_worker % 15 + 1}", os.environ["REDIS_URL"])

from tenantadmin.settings import *  # noqa: E402, F403

#: Rights are read for every request, so that a test sees its own changes at once.
PRINCIPAL_CACHE_SECONDS = 0.0
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
#: The 30 s of a code may end while a test sends it.
MFA_TOTP_TOLERANCE = 1
#: Every test client creates the middleware again, and reading all static files would take most of the time.
WHITENOISE_USE_FINDERS = False
#: Templates stay compiled, as in production. In development each page compiles its own again.
_options: dict[str, Any] = TEMPLATES[0]["OPTIONS"]  # type: ignore[assignment]  # noqa: F405
_options["loaders"] = [("django.template.loaders.cached.Loader", _options["loaders"])]
