"""The dashboard's modules are typed against the contract: an unknown operation or field is an error of tsc.

Without tsc (Debian: apt-get install node-typescript) the other tests of this folder still hold every request,
and every field that is read, against the contract. What a browser loads is counted as the service sends it.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.browser.browsing import find_prettier
from tests.browser.dashboard.contract_types import MODULES, contract, declarations

OPTIONS = (
    *("--noEmit", "--allowJs", "--checkJs", "--strict", "--target", "es2022", "--module", "es2022"),
    *("--moduleResolution", "node", "--lib", "es2022,dom,dom.iterable"),
)

PAGE = MODULES.parents[2] / "templates" / "dashboard" / "index.html"
DOCUMENTED = (MODULES.parents[2] / "docs" / "dashboard.md").read_text()
#: Bytes of all scripts, and compressed bytes that a page loads.
ALL_SCRIPTS, ONE_PAGE = (1000 * int(limit) for limit in re.findall(r"below (\d+) kB", DOCUMENTED))


def check_types(folder: Path) -> str:
    """Return what tsc says of the modules in ``folder``."""
    (folder / "contract.d.ts").write_text(declarations(contract()))
    modules = sorted(folder.rglob("*.js"))
    files = ["contract.d.ts", "types.d.ts", *(str(path.relative_to(folder)) for path in modules)]
    found = subprocess.run(
        [os.environ.get("TSC", "tsc"), *OPTIONS, *files],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout + found.stderr


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    return Path(shutil.copytree(MODULES, tmp_path / "dashboard"))


@pytest.mark.typescript
def test_every_module_fits_the_contract_and_a_misfit_is_found(modules: Path) -> None:
    (modules / "wrong.js").write_text(
        'import { call } from "./api.js";\n'
        'call("GET /users/{email}/secrets", { email: "me" });\n'
        'const user = await call("GET /users/{email}", { email: "me" });\n'
        "user.nickname;\n"
        'call("GET /config/tenants/manifest", { colour: "red" });\n'
        "export {};\n"
    )
    lines = [line for line in check_types(modules).splitlines() if not line.startswith(" ")]
    # Of all modules only the wrong one has errors. One run, because tsc takes long.
    assert [re.sub(r"\(.*", "", line) for line in lines] == ["wrong.js"] * 3
    assert [name in line for name, line in zip(("secrets", "nickname", "colour"), lines, strict=True)] == [
        True
    ] * 3


def test_scripts_stay_small() -> None:
    """Of the dashboard, of staff pages and of the page of the API."""
    texts = {str(path.relative_to(MODULES.parent)): path.read_text() for path in MODULES.parent.rglob("*.js")}
    lines = {name: len(text.splitlines()) for name, text in texts.items()}
    assert {name: count for name, count in lines.items() if count > 450} == {}
    # Types are comments here. A compiler of TypeScript would leave them out.
    code = (
        re.sub(r"/\*\*.*?\*/\n?|^ *//[^\n]*\n", "", text, flags=re.DOTALL | re.MULTILINE)
        for text in texts.values()
    )
    assert sum(len(text.encode()) for text in code) < ALL_SCRIPTS


@pytest.mark.prettier
def test_every_file_is_formatted() -> None:
    """``make format`` formats them."""
    prettier = find_prettier()
    assert prettier is not None
    found = subprocess.run([prettier, "--check", MODULES], capture_output=True, text=True, check=False)
    assert (found.stderr, found.returncode) == ("", 0)


_IMPORTS = re.compile(r'^(?:import|export) [^"]*? from "(.+)";$', re.MULTILINE)


def imported_by(module: Path) -> set[Path]:
    """Return the modules that a browser loads before it runs ``module``, and ``module``."""
    loaded, open_ = set[Path](), [module]
    while open_:
        path = open_.pop().resolve()
        if path not in loaded:
            loaded.add(path)
            open_ += [path.parent / name for name in _IMPORTS.findall(path.read_text())]
    return loaded


def test_no_module_imports_itself_through_others() -> None:
    graph = {
        path: {(path.parent / name).resolve() for name in _IMPORTS.findall(path.read_text())}
        for path in MODULES.resolve().rglob("*.js")
    }
    TopologicalSorter(graph).prepare()  # raises CycleError


def test_a_browser_loads_little_for_any_page() -> None:
    compressed = {
        page.name: sum(
            len(gzip.compress(path.read_bytes()))
            for path in imported_by(MODULES / "main.js") | imported_by(page) | {*MODULES.glob("*.css")}
        )
        for page in (MODULES / "pages").glob("*.js")
    }
    assert {name: size for name, size in compressed.items() if size >= ONE_PAGE} == {}


def test_the_page_names_the_modules_that_it_needs_at_once() -> None:
    root = MODULES.resolve()
    needed = {str(path.relative_to(root)) for path in imported_by(root / "main.js")} - {"main.js"}
    assert (
        set(re.findall(r'modulepreload" href="{{ files }}dashboard/([\w/]+\.js)"', PAGE.read_text()))
        == needed
    )
