"""What a configuration says of tables and views."""

from __future__ import annotations

from rules.tables.warehouse import WarehouseTables


def of(**warehouse: object) -> WarehouseTables:
    return WarehouseTables.of({"warehouse": warehouse})


def test_a_tenant_without_a_warehouse_says_nothing() -> None:
    assert WarehouseTables.of({}) == WarehouseTables()
    assert WarehouseTables.of({}).personal == ()


def test_a_view_over_a_table_that_differs_per_user_differs_too() -> None:
    tables = of(
        perUserTables=["hr.*"],
        views={"v.staff": ['"HR".people'], "v.again": ["V.STAFF"], "v.orders": ["sales.orders"]},
    )
    assert tables.personal == ("hr.*", "v.staff", "v.again")


def test_views_that_read_themselves_or_each_other_end() -> None:
    tables = of(views={"a": ["a"], "b": ["c"], "c": ["b", "t"]})
    assert tables.with_views(["t"]) == ("t", "c", "b")
    assert tables.with_views(["a"]) == ("a",)
    assert tables.with_views([]) == ()


def test_a_chain_of_a_thousand_views() -> None:
    tables = of(views={f"v{number}": [f"v{number - 1}"] for number in range(1, 1_001)})
    assert len(tables.with_views(["v0"])) == 1_001
