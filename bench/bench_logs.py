"""Measure each step from raw logs to summaries, compared to the least that such a step could cost.

``make bench`` runs the default size. ``--entries 200000 --days 360`` takes some minutes more, and a gigabyte.
"""

from __future__ import annotations

import argparse

from bench import harness


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=50_000, help="entries of the measured day")
    parser.add_argument("--days", type=int, default=30, help="days of history")
    parser.add_argument("--runs", type=int, default=3, help="runs of each step; the median counts")
    options = parser.parse_args()
    with harness.environment() as directory:
        from bench import log_steps  # noqa: PLC0415  # needs Django

        rows = log_steps.measure(directory, entries=options.entries, days=options.days, runs=options.runs)
    harness.show(
        f"Logs to numbers: {options.entries:,} entries a day, {options.days} days",
        ["work", "ms", "compared to", "ms", "ratio", "goal"],
        [row.cells() for row in rows],
    )


if __name__ == "__main__":
    main()
