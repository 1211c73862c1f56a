"""Run one benchmark on its own servers: ``python -m bench logs entries=5000 days=2``.

A name selects the file ``bench_NAME.py``. The sizes are arguments of its ``main``.
"""

from __future__ import annotations

import importlib
import sys

from bench.harness import environment


def main() -> None:
    name, *sizes = sys.argv[1:]
    values = {size: int(value) for size, _, value in (text.partition("=") for text in sizes)}
    with environment() as directory:
        # It imports models, so Django must be set up.
        importlib.import_module(f"bench.bench_{name}").main(directory, **values)


if __name__ == "__main__":
    main()
