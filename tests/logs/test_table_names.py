"""How the log spells the names of tables: counted with each build, and read for the last 28 days."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management import call_command

from logs.compaction.build import MAX_NAMES, TableNames, count_table_names
from logs.models import Partition
from logs.table_names import read_table_names, spelled_tables
from tenantadmin.lib.core.timestamps import now
from tests.objects import save_entries

if TYPE_CHECKING:
    from tests.factories import World


def count(path: Path, *lists: object) -> TableNames:
    texts = [value if value is None or isinstance(value, str) else json.dumps(value) for value in lists]
    pq.write_table(pa.table({"tables": pa.array(texts, pa.string())}), path / "day.parquet")
    return count_table_names(path / "day.parquet")


def test_each_entry_counts_each_of_its_spellings_once(tmp_path: Path) -> None:
    quoted = '"hr"."people"'
    found = count(
        tmp_path, ["hr.people", "hr.people", quoted], [quoted, 5, None, ["x"]], None, "{}", "no", []
    )
    assert found == TableNames({quoted: 2, "hr.people": 1})
    assert list(found.counts) == [quoted, "hr.people"]


def test_the_most_frequent_of_ten_thousand_names_are_kept(tmp_path: Path) -> None:
    found = count(tmp_path, [f"t{number}" for number in range(10_000)], ["t9999"])
    assert (len(found.counts), next(iter(found.counts.items())), found.complete) == (
        MAX_NAMES,
        ("t9999", 2),
        False,
    )


def test_long_names_fill_64_kib_and_very_long_ones_and_nul_are_left_out(tmp_path: Path) -> None:
    assert count(tmp_path, ["x" * 1_000]) == TableNames({"x" * 1_000: 1})
    assert count(tmp_path, ["a\0b", "x" * 3_000, "t"]) == TableNames({"t": 1}, complete=False)
    found = count(tmp_path, [f"{number:01000}" for number in range(100)])
    assert (len(found.counts), found.complete) == (65, False)


def test_days_are_merged_and_one_without_names_counts_as_none() -> None:
    days: list[dict[str, Any] | None] = [
        {"counts": {"a": 1, "b": 2}, "complete": True},
        None,
        {"counts": {"a": 2}, "complete": True},
    ]
    assert TableNames.merge(days) == TableNames({"a": 3, "b": 2})
    assert not TableNames.merge([*days, {"counts": {}, "complete": False}]).complete


@pytest.mark.django_db
@pytest.mark.parametrize("by_hours", [False, True])
def test_a_build_stores_the_names_of_its_day(world: World, settings: Any, *, by_hours: bool) -> None:
    settings.BUILD_BY_HOURS_BYTES = -1 if by_hours else 1 << 30
    today = now().date()
    for day in (today, today - timedelta(days=28)):
        for hour in ("00", "01"):
            entry = {"logId": f"{day}{hour}", "tables": ["S.a", f"s.{day.year}"]}
            save_entries(world.tenant.pk, day, [entry], name=f"{hour}/a.json")
    call_command("rebuild", tenant=world.tenant.pk)
    names = {"S.a": 2, f"s.{today.year}": 2}
    assert Partition.objects.get(day=today).table_names == {"counts": names, "complete": True}
    # The day before the 28 days does not count.
    assert read_table_names(world.tenant.pk).counts == names
    Partition.objects.filter(day=today).update(table_names=None)
    assert spelled_tables(world.tenant.pk) == ()
