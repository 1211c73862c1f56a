"""Environments for tests, and the settings that are read from them."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from tenantadmin.conf.secrets import new_secret_key, new_signing_key

ROOT: Final = Path(__file__).resolve().parents[1]
SECRETS: Final = {"DJANGO_SECRET_KEY": new_secret_key(), "JWT_PRIVATE_KEY": new_signing_key()}
#: The least that a deployment sets.
PRODUCTION: Final = {"DATABASE_URL": "postgres://db/x", "EMAIL_URL": "", **SECRETS}


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set only ``variables``, and ``VAR_DIR`` if it is not one of them."""
    with patch.dict(os.environ, {"VAR_DIR": os.environ["VAR_DIR"], **variables}, clear=True):
        yield


def read_settings(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return what `tenantadmin.settings` would contain in this environment."""
    with environment(variables), patch.dict(sys.modules):
        # Read the environment again.
        sys.modules.pop("tenantadmin.settings.variables", None)
        return runpy.run_path(str(ROOT / "tenantadmin/settings/__init__.py"))


def read_variables(variables: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the value of each environment variable, by its name."""
    values: Mapping[str, Any] = read_settings(variables)["env"].dump()
    return values
