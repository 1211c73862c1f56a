"""Run the tests of a group against each of its mutants, in forked processes.

Starting pytest takes seconds, so it is done once: all tests are collected, then each mutant gets a fork in
which the code of one function is exchanged and the tests that reach it are run until one fails: first the one
that noticed the mutant in an earlier run, then quick ones that noticed other mutants of the function. What
differs in code that runs on import, and what survived, is tried in a process that imports the mutated module
anew.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.abc
import importlib.machinery
import os
import pickle
import signal
import sys
import tempfile
import time
from collections import defaultdict
from enum import StrEnum
from functools import _lru_cache_wrapper, partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Final, NoReturn

import coverage
import django
import pytest
from _pytest.runner import runtestprotocol

from tests.mutants.baseline import Baseline, Killers
from tests.mutants.plugins import FirstFailure, Selection, failed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from tests.mutants.generate import Mutant

#: Heavy, and imported by most tests: every fork shares them.
_PRELOADED: Final = (
    "duckdb",
    "pyarrow.parquet",
    "pyarrow.compute",
    "psycopg",
    "boto3",
    "celery",
    "hypothesis",
)
#: Nobody reads why a test fails.
_CHEAP: Final = ("--assert=plain", "--tb=native")


class Outcome(StrEnum):
    """What the tests made of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    TIMED_OUT = "timed out"
    #: It cannot be put into a running process.
    UNTRIED = "untried"


class BaselineFailed(Exception):
    """Tests fail without a mutant."""


def try_mutants(
    mutants: Sequence[Mutant],
    *,
    tests: Sequence[str],
    expected: Collection[tuple[str, str]],
    report: Callable[[Mutant, Outcome], None],
    longest: float,
    quick: bool,
    killers: Path,
) -> None:
    """Report what becomes of each mutant. ``killers`` is the file of `Killers`.

    Tests of more than ``longest`` seconds are run only if no other notices the mutant, and not at all if
    ``quick``, nor for the survivors that are explained: ``expected``, as (file, name).

    Raises:
        BaselineFailed: see there.
    """
    # The settings start the servers, which live as long as this process.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    for name in ("tests.settings", *_PRELOADED):
        importlib.import_module(name)
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "pytest_django.plugin", "--reuse-db", *_CHEAP]
    with tempfile.TemporaryDirectory(dir=os.environ["TENANTADMIN_TEST_VAR"]) as directory:
        results = Path(directory) / "results"
        plugin = _Warm(mutants, results, longest=longest, killers=killers)
        if (
            _run_forked(
                lambda: pytest.main([*arguments, *tests], plugins=[plugin, FirstFailure()]),
                log=results.with_suffix(".log"),
            )
            != 0
        ):
            raise BaselineFailed(results.with_suffix(".log").read_text())
        baseline, outcomes = pickle.loads(results.read_bytes())  # noqa: S301 - written by our own fork
    # Every fork would do this again; but none could exchange a module that it imports.
    for prepare in (django.setup, partial(importlib.import_module, "tests.conftest")):
        if _run_forked(partial(_imports_mutated, prepare, mutants)) == 0:
            prepare()
    # Else each fork's collections of garbage take longer than most tests.
    gc.collect()
    gc.freeze()
    for mutant, outcome in zip(mutants, outcomes, strict=True):
        try_cold = partial(_try_cold, mutant, baseline, arguments)
        if outcome is Outcome.UNTRIED:
            outcome = _try_each(try_cold, baseline.rounds(mutant, longest=longest))
        if outcome is Outcome.SURVIVED and not quick and (mutant.file, mutant.name) not in expected:
            outcome = try_cold(baseline.select(mutant))
        report(mutant, outcome)


def _try_each(attempt: Callable[[list[str]], Outcome], rounds: Iterator[list[str]]) -> Outcome:
    """Run one round of tests after the other, until one notices the mutant."""
    for selected in rounds:
        outcome = attempt(selected)
        if outcome is not Outcome.SURVIVED:
            return outcome
    return Outcome.SURVIVED


def _imports_mutated(prepare: Callable[[], object], mutants: Sequence[Mutant]) -> int:
    """Return 1 if ``prepare`` imports a module with a mutant, else 0."""
    prepare()
    return int(any(_module_name(mutant.file) in sys.modules for mutant in mutants))


def _try_cold(mutant: Mutant, baseline: Baseline, arguments: list[str], selected: list[str]) -> Outcome:
    def run() -> int:
        sys.meta_path.insert(0, _MutantFinder(mutant))
        files = {test.partition("::")[0] for test in selected}
        return pytest.main([*arguments, "-x", *sorted(files)], plugins=[Selection(selected), FirstFailure()])

    outcome = _outcome(_run_forked(run, limit=baseline.limit(selected)))
    baseline.note(mutant, failed.take())
    return outcome


class _MutantFinder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports the mutated module instead of its file."""

    def __init__(self, mutant: Mutant) -> None:
        self._source = mutant.source
        self._path = str(Path(mutant.file).resolve())
        self._module = _module_name(mutant.file)

    def find_spec(self, fullname: str, *_: object, **__: object) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._module:
            return None
        is_package = self._path.endswith("__init__.py")
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=self._path, is_package=is_package)
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations = [str(Path(self._path).parent)]
        return spec

    def get_source(self, fullname: str) -> str:
        return self._source

    def get_code(self, fullname: str) -> CodeType:
        return _compile(self._source, self._path)

    def exec_module(self, module: ModuleType) -> None:
        exec(self.get_code(module.__name__), module.__dict__)  # noqa: S102 - it is a module


class _Warm:
    """Takes over from pytest when all tests are collected."""

    def __init__(self, mutants: Sequence[Mutant], results: Path, *, longest: float, killers: Path) -> None:
        self._mutants = mutants
        self._killers = killers
        self._longest = longest
        # Standard error of the fork is a log.
        self._progress = os.fdopen(os.dup(2), "w")
        self._results = results

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Failed("Tests could not be collected")
        items = {item.nodeid: item for item in session.items}
        _set_up_database(session.items)
        files = {mutant.file for mutant in self._mutants}
        _clear_caches(files)
        baseline = self._measure(session.items)
        functions = _find_functions(files)
        gc.collect()
        gc.freeze()
        outcomes = []
        for mutant in self._mutants:
            outcome = Outcome.UNTRIED
            if mutant.is_in_function:
                try_warm = partial(_try_warm, mutant, baseline, items, functions)
                outcome = _try_each(try_warm, baseline.rounds(mutant, longest=self._longest))
            outcomes.append(outcome)
            if len(outcomes) % 100 == 0:
                print(
                    f"{mutant.file}: {len(outcomes)} of {len(self._mutants)}", file=self._progress, flush=True
                )
        if _run_forked(lambda: _run_items(session.items), limit=baseline.limit(items)) != 0:
            raise session.Failed("Tests fail after all mutants")
        self._results.write_bytes(pickle.dumps((baseline, outcomes)))
        return True

    def _measure(self, items: list[pytest.Item]) -> Baseline:
        def run() -> int:
            measured = Baseline(Killers(self._killers))
            files = {str(Path(mutant.file).resolve()): mutant.file for mutant in self._mutants}
            meter = coverage.Coverage(data_file=None, config_file=False, include=list(files))
            meter.start()
            for item, following in _pairs(items):
                meter.switch_context(item.nodeid)
                began, worked = time.monotonic(), time.process_time()
                if not _passes(item, following):
                    print(f"{item.nodeid} fails without a mutant")
                    return 1
                measured.seconds[item.nodeid] = time.monotonic() - began
                measured.work[item.nodeid] = time.process_time() - worked
            meter.stop()
            for path, file in files.items():
                lines = meter.get_data().contexts_by_lineno(path)
                measured.reached[file] = {line: set(tests) - {""} for line, tests in lines.items()}
            self._results.write_bytes(pickle.dumps(measured))
            return 0

        if _run_forked(run) != 0:
            raise pytest.Session.Failed("Tests fail without a mutant")
        baseline: Baseline = pickle.loads(self._results.read_bytes())  # noqa: S301 - written by our own fork
        return baseline


def _set_up_database(items: list[pytest.Item]) -> None:
    """Make the test database, by running one test that uses it, and let the forks inherit it."""
    for item in items:
        if "_django_db_helper" in getattr(item, "fixturenames", ()):
            # With another to follow, what the session shares is not torn down.
            following = items[0] if item is not items[0] else items[-1]
            runtestprotocol(item, log=False, nextitem=following)
            from django.db import connections

            connections.close_all()
            return


def _try_warm(
    mutant: Mutant,
    baseline: Baseline,
    items: Mapping[str, pytest.Item],
    functions: Mapping[tuple[str, str], list[FunctionType]],
    selected: list[str],
) -> Outcome:
    code = _find_code(_compile(mutant.source, str(Path(mutant.file).resolve())), mutant.function)
    live = functions[mutant.file, mutant.function]
    if len(live) != len(code) or any(
        function.__code__.co_freevars != own.co_freevars for function, own in zip(live, code, strict=True)
    ):
        return Outcome.UNTRIED

    def run() -> int:
        for function, own in zip(live, code, strict=True):
            function.__code__ = own
        return _run_items([items[test] for test in selected], limit=baseline.limit)

    outcome = _outcome(_run_forked(run, limit=baseline.limit(selected)))
    baseline.note(mutant, failed.take())
    return outcome


def _find_functions(files: Collection[str]) -> dict[tuple[str, str], list[FunctionType]]:
    """All functions of the files by their qualified name; several where a property has a setter."""
    paths = {str(Path(file).resolve()): file for file in files}
    found: dict[tuple[str, str], list[FunctionType]] = defaultdict(list)
    # Objects that tests/conftest.py froze are not listed.
    gc.unfreeze()
    for thing in gc.get_objects():
        # Not isinstance: that asks a weak proxy for the class of what may be gone.
        if type(thing) is FunctionType and thing.__code__.co_filename in paths:
            found[paths[thing.__code__.co_filename], thing.__code__.co_qualname].append(thing)
    for functions in found.values():
        functions.sort(key=lambda function: function.__code__.co_firstlineno)
    return found


def _clear_caches(files: Collection[str]) -> None:
    """Forget what cached functions of the files have returned: where that is used, no mutant of them runs."""
    paths = {str(Path(file).resolve()) for file in files}
    gc.unfreeze()
    for thing in gc.get_objects():
        if type(thing) is _lru_cache_wrapper:
            code = getattr(thing.__wrapped__, "__code__", None)
            if code is not None and code.co_filename in paths:
                thing.cache_clear()


def _find_code(code: CodeType, function: str) -> list[CodeType]:
    found = [code] if code.co_qualname == function else []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found += _find_code(constant, function)
    return found


def _compile(source: str, path: str) -> CodeType:
    return compile(source, path, "exec", dont_inherit=True)


def _module_name(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _pairs(items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=True)


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    reports = runtestprotocol(item, log=False, nextitem=following)
    failures = [report for report in reports if report.failed]
    for report in failures:
        failed.put(report.nodeid)
        print(report.longreprtext)
    return not failures


def _run_items(items: Sequence[pytest.Item], *, limit: Callable[[list[str]], float] | None = None) -> int:
    """0 if all pass; the rest is not run after the first that fails. ``limit`` ends one that never ends."""
    for item, following in _pairs(items):
        failed.put(item.nodeid)
        if limit is not None:
            # Of the processor, which other work on the machine does not lengthen.
            signal.setitimer(signal.ITIMER_PROF, limit([item.nodeid]))
        if not _passes(item, following):
            return 1
    failed.take()
    return 0


_TIMED_OUT: Final = -1


def _outcome(code: int) -> Outcome:
    if code == _TIMED_OUT:
        return Outcome.TIMED_OUT
    return Outcome.SURVIVED if code == 0 else Outcome.KILLED


def _run_forked(run: Callable[[], int], *, limit: float | None = None, log: Path | None = None) -> int:
    """Call ``run`` in a fork with files of its own; return what it returns, or that it took too long."""
    process = os.fork()
    if process == 0:
        _become(run, log or Path(os.devnull), is_limited=limit is not None)
    began = time.monotonic()
    try:
        while True:
            done, status = os.waitpid(process, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
                return _TIMED_OUT if code == -signal.SIGPROF else max(1, code) if code else 0
            if limit is not None and time.monotonic() - began > limit:
                return _TIMED_OUT
            time.sleep(0.01)
    finally:
        # The fork, or what the tests started and did not stop.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process, 0)


def _become(run: Callable[[], int], log: Path, *, is_limited: bool) -> NoReturn:
    code = 1
    try:
        if is_limited:
            os.setpgid(0, 0)
        with log.open("wb") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        code = run()
    finally:
        sys.stdout.flush()
        os._exit(code)
