"""Clients in TypeScript that are generated from the contract. Contract: Versioning."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tenantadmin.lib.http.published_contract import CONTRACT_FILE
from tests.clients.programs import NODE_MODULES, generate, run

if TYPE_CHECKING:
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


#: Commands of generators that write to a folder ``generated`` of the working directory.
GENERATORS: Final = {
    "orval": ("orval", "--client", "fetch", "--input", str(CONTRACT_FILE), "--output", "generated/api.ts"),
    "hey-api": ("openapi-ts", "--input", str(CONTRACT_FILE), "--output", "generated"),
}


@pytest.mark.node
@pytest.mark.parametrize("generator", GENERATORS)
def test_a_generated_client_has_strict_types(folder: Path, generator: str) -> None:
    program, *arguments = GENERATORS[generator]
    run(str(NODE_MODULES / ".bin" / program), *arguments, cwd=folder)
    check_types(folder)


def check_types(folder: Path) -> None:
    """Compile all TypeScript below the folder."""
    files = map(str, folder.rglob("*.ts"))
    run(
        *(str(NODE_MODULES / ".bin" / "tsc"), "--strict", "--noEmit", "--target", "es2022"),
        *("--module", "esnext", "--moduleResolution", "bundler", "--lib", "es2022,dom,dom.iterable"),
        *("--typeRoots", str(NODE_MODULES / "@types"), "--skipLibCheck", *files),
    )


@pytest.mark.java
@pytest.mark.node
def test_the_client_of_openapi_generator_has_strict_types(folder: Path) -> None:
    generate("typescript-fetch", folder)
    check_types(folder)
