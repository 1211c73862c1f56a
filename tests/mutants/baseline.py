"""What the tests do without a mutant, and which of them to run against a mutant, in which order."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.mutants.generate import Mutant

#: Seconds that tests may take: a multiple of what they took, and a constant.
_TIMES: Final = 5
_SECONDS: Final = 10
#: How likely a test in the file named for the module, and any other, notices a mutant, if each mutant of the
#: function that it noticed counts 1. And the seconds below which all tests are equally quick.
_LIKELY: Final = 1.0
_UNLIKELY: Final = 0.05
_SHORTEST: Final = 0.002


class Killers:
    """The test that noticed each mutant in the latest run, in a file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._tests = {(file, name): test for file, name, test in map(json.loads, lines)}

    def get(self, mutant: Mutant) -> str | None:
        return self._tests.get((mutant.file, mutant.name))

    def add(self, mutant: Mutant, test: str) -> None:
        if self.get(mutant) != test:
            self._tests[mutant.file, mutant.name] = test
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([mutant.file, mutant.name, test]) + "\n")


@dataclass
class Baseline:
    """What the tests do without a mutant: how long they take, and which reach which line of which file."""

    killers: Killers
    seconds: dict[str, float] = field(default_factory=dict)
    #: Of the processor, which other work on the machine does not lengthen.
    work: dict[str, float] = field(default_factory=dict)
    reached: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    #: By (file, function), how many of its mutants each test noticed.
    noticed: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def rounds(self, mutant: Mutant, *, longest: float) -> Iterator[list[str]]:
        """Yield the tests to run one after the other: those of each round only if no earlier one failed.

        First the test that noticed the mutant in an earlier run, last all that reach it and take at most
        ``longest`` seconds. A mutant of code that runs on import is reached by all, so there the likely ones
        come before them: those that noticed another, or are in the file named for the module.
        """
        killer = self.killers.get(mutant)
        if killer in self.seconds:
            yield [killer]
        quick = self.select(mutant, longest=longest)
        if not mutant.is_in_function:
            noticed = self.noticed[mutant.file, mutant.function]
            if likely := [test for test in quick if test in noticed or _is_own(test, mutant)]:
                yield likely
        yield quick

    def select(self, mutant: Mutant, *, longest: float | None = None) -> list[str]:
        """The tests that reach a line of the mutant; all where that is not known.

        First those that are quick for how likely they notice it; none of more than ``longest`` seconds.
        """
        tests: set[str] = set()
        if mutant.is_in_function:
            lines = self.reached.get(mutant.file, {})
            tests = {test for line in mutant.lines for test in lines.get(line, ())}
        wanted = [test for test in tests or self.seconds if longest is None or self.work[test] <= longest]
        noticed = self.noticed[mutant.file, mutant.function]

        def cost(test: str) -> float:
            likelihood = noticed[test] + (_LIKELY if _is_own(test, mutant) else _UNLIKELY)
            return max(self.work[test], _SHORTEST) / likelihood

        return sorted(wanted, key=cost)

    def note(self, mutant: Mutant, test: str | None) -> None:
        """Remember which test has noticed the mutant, if one has."""
        if test is not None:
            self.noticed[mutant.file, mutant.function][test] += 1
            self.killers.add(mutant, test)

    def limit(self, tests: Iterable[str]) -> float:
        """Seconds after which the tests hang."""
        return _TIMES * sum(self.seconds[test] for test in tests) + _SECONDS


def _is_own(test: str, mutant: Mutant) -> bool:
    return test.partition("::")[0].endswith(f"/test_{Path(mutant.file).stem}.py")
