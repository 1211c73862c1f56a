"""``make mutants``: exits with 1 if a mutant survives that ``tests/mutants.toml`` does not explain."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.mutants.generate import Mutant, generate_mutants
from tests.mutants.trial import BaselineFailed, Outcome, try_mutants

_SETTINGS: Final = Path("tests/mutants.toml")
#: Makes the next run much faster.
_KILLERS: Final = Path("var/mutants.jsonl")


def main() -> int:
    """Run the groups, some at once, and print what survived."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("only", nargs="*", help="files and folders to mutate, all if none is given")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="groups that run at once")
    parser.add_argument("--quick", action="store_true", help="leave out slow tests")
    parser.add_argument("--group", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    settings = tomllib.loads(_SETTINGS.read_text(encoding="utf-8"))
    explained = {(entry["file"], name) for entry in settings["explained"] for name in entry["mutants"]}
    if arguments.group is not None:
        group = settings["groups"][arguments.group]
        return _run_group(group, arguments.only, explained, quick=arguments.quick)
    groups = {
        name: files
        for name, group in settings["groups"].items()
        if (files := _select_files(group, arguments.only))
    }
    if not groups:
        parser.error("tests/mutants.toml has no such file")
    with ThreadPoolExecutor(arguments.jobs) as pool:
        start = partial(_start_group, only=arguments.only, quick=arguments.quick)
        results = list(pool.map(start, groups))
    if any(result is None for result in results):
        return 1
    survivors = {(file, name) for result in results if result for file, name in result}
    tried = {file for files in groups.values() for file in files}
    stale = sorted(entry for entry in explained - survivors if entry[0] in tried)
    for file, name in stale:
        print(f"{_SETTINGS} explains what does not survive: {file}: {name}")
    left = survivors - explained
    print(f"{len(left)} mutants survive unexplained")
    return 1 if left or stale else 0


def _select_files(group: dict[str, Any], only: list[str]) -> list[str]:
    files = sorted(str(path) for pattern in group["files"] for path in Path().glob(pattern))
    return [file for file in files if not only or any(Path(file).is_relative_to(path) for path in only)]


def _start_group(name: str, *, only: list[str], quick: bool) -> list[list[str]] | None:
    """Run the group in a process of its own, with servers of its own; its survivors as (file, name)."""
    command = [sys.executable, "-m", "tests.mutants", f"--group={name}", *["--quick"] * quick, *only]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        return None
    result = json.loads(done.stdout)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in result["counts"].items())
    print(f"{name}: {counts}", flush=True)
    survivors: list[list[str]] = result["survivors"]
    return survivors


def _run_group(
    group: dict[str, Any], only: list[str], explained: set[tuple[str, str]], *, quick: bool
) -> int:
    mutants = [mutant for file in _select_files(group, only) for mutant in generate_mutants(Path(file), file)]
    counts: Counter[str] = Counter()
    survivors = []

    def report(mutant: Mutant, outcome: Outcome) -> None:
        is_explained = (mutant.file, mutant.name) in explained
        if outcome is Outcome.SURVIVED:
            survivors.append((mutant.file, mutant.name))
            if not is_explained:
                print(
                    f"{mutant.file}:{mutant.lines[0]} survives\n{mutant.diff}\n    {mutant.name}\n",
                    file=sys.stderr,
                )
        counts["explained" if outcome is Outcome.SURVIVED and is_explained else outcome.value] += 1

    try:
        try_mutants(
            mutants,
            tests=group["tests"],
            expected=explained,
            report=report,
            longest=group.get("longest", 1.0),
            quick=quick,
            killers=_KILLERS,
        )
    except BaselineFailed as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps({"counts": counts, "survivors": survivors}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
