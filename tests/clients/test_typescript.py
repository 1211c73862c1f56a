"""A client in TypeScript that is generated from the contract. Contract: Versioning."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tenantadmin.lib.http.published_contract import CONTRACT_FILE
from tests.clients.programs import NODE_MODULES, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.programs import Service

SCRIPT = Path(__file__).with_name("scripts") / "round_trip.ts"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder from which Node finds the installed packages."""
    with tempfile.TemporaryDirectory(dir=NODE_MODULES.parent) as name:
        yield Path(name)


@pytest.mark.node
@pytest.mark.django_db(transaction=True)
def test_a_script_with_strict_types_works(folder: Path, service: Service) -> None:
    programs = NODE_MODULES / ".bin"
    run(str(programs / "openapi-typescript"), str(CONTRACT_FILE), "--output", str(folder / "contract.ts"))
    script = str(shutil.copy(SCRIPT, folder))
    run(
        *(str(programs / "tsc"), "--strict", "--noUncheckedIndexedAccess", "--target", "es2022"),
        *("--module", "nodenext", "--typeRoots", str(NODE_MODULES / "@types"), script),
    )
    assert run("node", str(folder / "round_trip.js"), service.url, service.pat) == "done\n"
