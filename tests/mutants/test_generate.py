"""The mutants that `make mutants` makes of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.mutants.generate import generate_mutants

if TYPE_CHECKING:
    from pathlib import Path

    from tests.mutants.generate import Mutant


def mutants_of(tmp_path: Path, source: str) -> list[Mutant]:
    path = tmp_path / "module.py"
    path.write_text(source)
    return generate_mutants(path, "module.py")


def test_what_runs_in_a_function_and_what_runs_on_import(tmp_path: Path) -> None:
    source = """\
LIMIT = 3

class Rule:
    kind = "deny"

    @property
    def is_long(self) -> bool:
        return self.size > LIMIT
"""
    mutants = mutants_of(tmp_path, source)
    assert [(mutant.name, mutant.lines, mutant.is_in_function) for mutant in mutants] == [
        ("<module>: LIMIT = 3 => LIMIT = 4", range(1, 2), False),
        ('Rule.<module>: kind = "deny" => kind = "XXdeny"', range(4, 5), False),
        (
            "Rule.is_long: return self.size > LIMIT => return self.size >= LIMIT",
            range(8, 9),
            True,
        ),
    ]
    assert mutants[2].source == source.replace("size >", "size >=")


def test_messages_types_and_log_statements_are_left_alone(tmp_path: Path) -> None:
    source = '''\
"""A module."""
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from decimal import Decimal

def refuse(value: "Decimal | None" = None) -> str:
    """Say no."""
    logger.info("refused", value)
    for _ in zip(value, value, strict=True):
        return cast("str", value)
    return f"not {value}" "here"
'''
    assert [mutant.name for mutant in mutants_of(tmp_path, source)] == [
        "refuse: for _ in zip(value, value, strict=True): => for _ in zip(None, value, strict=True):",
        "refuse: for _ in zip(value, value, strict=True): => for _ in zip(value, None, strict=True):",
        "refuse: for _ in zip(value, value, strict=True): => for _ in zip(value, strict=True):",
    ]


def test_conditions_statements_and_calls_in_a_chain(tmp_path: Path) -> None:
    source = """\
def lock(rows):
    if rows:
        check()
        raise Conflict
    return rows.filter().select_for_update()
"""
    assert [mutant.name for mutant in mutants_of(tmp_path, source)] == [
        "lock: if rows: => if not (rows):",
        "lock: check() => pass",
        "lock: raise Conflict => pass",
        "lock: return rows.filter().select_for_update() => return rows.filter()",
        "lock: return rows.filter().select_for_update() => return rows.select_for_update()",
    ]
