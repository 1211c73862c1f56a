"""Plugins of pytest with which the tests run against a mutant."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Final

import hypothesis
import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence


class FailedTest:
    """The test that failed in a fork, in memory that the fork shares."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1 << 17)

    def put(self, test: str) -> None:
        self._memory.seek(0)
        self._memory.write(f"{test}\n".encode()[: len(self._memory)])

    def take(self) -> str | None:
        self._memory.seek(0)
        test = self._memory.readline().decode().strip("\0\n")
        self._memory[:1] = b"\n"
        return test or None


failed: Final = FailedTest()


class FirstFailure:
    """Lets Hypothesis stop at the first example that fails, without a search for a smaller one."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        hypothesis.settings.register_profile(
            "mutants",
            hypothesis.settings.get_profile("repeatable"),
            phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
            report_multiple_bugs=False,
        )
        hypothesis.settings.load_profile("mutants")


class Selection:
    """Runs the selected tests alone, in their order."""

    def __init__(self, selected: Sequence[str]) -> None:
        self._order = {test: position for position, test in enumerate(selected)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._order]
        items.sort(key=lambda item: self._order[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            failed.put(report.nodeid)
