"""Which keys are raw log objects, and which changes make a day stale."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from uuid import UUID

import pytest

from logs.layout import RawKey, day_start_ms, find_days, find_tenants, list_day, parse_raw_key
from tenantadmin.lib.objectstore import LocalStore
from tests.objects import save_object

TENANT = UUID("11111111-2222-4333-8444-555555555555")
DAY = date(2026, 3, 1)


def make_store(root: Path, *keys: str) -> LocalStore:
    store = LocalStore(root / "store")
    for key in keys:
        save_object(store, f"{TENANT}/logs/{key}", b"{}")
    return store


def test_a_listing_has_objects_in_key_order_by_the_hour_of_their_prefix(tmp_path: Path) -> None:
    store = make_store(
        tmp_path,
        "2026/03/01/23/a.json",
        "2026/03/01/00/z.json",
        "2026/03/01/00/é.json",
        "2026/03/01/00/a/b.json",
        "2026/03/01/24/a.json",
        "2026/03/01/00/a.txt",
        "2026/03/02/00/a.json",
    )
    listing = list_day(store, tenant=TENANT, day=DAY)
    prefix = f"{TENANT}/logs/2026/03/01/"
    names = {
        hour: [entry.key.removeprefix(prefix) for entry in own.entries] for hour, own in listing.hours.items()
    }
    assert names == {0: ["00/z.json", "00/é.json"], 23: ["23/a.json"]}
    others = [key.removeprefix(prefix) for key in listing.hours[0].others]
    assert others == ["24/a.json", "00/a.txt", "00/a/b.json"]
    assert [entry.key for entry in listing.entries] == [prefix + name for name in names[0] + names[23]]
    assert listing.size == 6


def test_objects_in_the_folder_of_no_hour_are_listed_with_hour_0(tmp_path: Path) -> None:
    strays = ["7/a.json", "a.json", "archive/2026/b.json.gz", "07"]
    store = make_store(tmp_path, *(f"2026/03/01/{name}" for name in strays), "2026/03/01/05/a.json")
    prefix = f"{TENANT}/logs/2026/03/01/"
    day = list_day(store, tenant=TENANT, day=DAY)
    assert list(day.hours) == [0, 5]
    assert day.hours[0].others == tuple(sorted(prefix + name for name in strays))
    assert (day.hours[0].entries, day.hours[5].others) == ((), ())
    assert day.size == 2
    for hour in (0, 5):
        assert list_day(store, tenant=TENANT, day=DAY, hour=hour).hours == {hour: day.hours[hour]}
    save_object(store, f"{prefix}00/a.json", b"{}")
    with_hour_0 = list_day(store, tenant=TENANT, day=DAY)
    assert with_hour_0.hours[0].others == day.hours[0].others
    assert with_hour_0.hours[0].digest != day.hours[0].digest


def test_changes_of_objects_change_the_digest(tmp_path: Path) -> None:
    store = make_store(tmp_path, "2026/03/01/00/a.json", "2026/03/01/00/b.json")

    def digest() -> str:
        return list_day(store, tenant=TENANT, day=DAY).digest

    digests = [digest()]
    save_object(store, f"{TENANT}/logs/2026/03/02/00/a.json", b"")
    assert digest() == digests[0]
    # They are not read, but listed.
    for junk in ("junk.txt", "00/junk.txt"):
        save_object(store, f"{TENANT}/logs/2026/03/01/{junk}", b"")
        digests.append(digest())
    save_object(store, f"{TENANT}/logs/2026/03/01/00/a.json", b"[]")
    digests.append(digest())
    save_object(store, f"{TENANT}/logs/2026/03/01/01/a.json", b"{}")
    digests.append(digest())
    store.delete(f"{TENANT}/logs/2026/03/01/00/b.json")
    digests.append(digest())
    assert len(set(digests)) == 6


def test_find_days_returns_valid_dates_within_the_bounds(tmp_path: Path) -> None:
    store = make_store(
        tmp_path,
        "2024/02/29/00/a.json",
        "2025/12/31/00/a.json",
        "2026/01/01/00/a.json",
        "2026/02/30/00/a.json",
        "2026/3/1/0/a.json",
        "2026/13/01/00/a.json",
        "junk/01/01/00/a.json",
    )
    days = [date(2024, 2, 29), date(2025, 12, 31), date(2026, 1, 1)]
    assert find_days(store, tenant=TENANT) == days
    assert find_days(store, tenant=TENANT, first=days[1]) == days[1:]
    assert find_days(store, tenant=TENANT, first=days[1], last=days[1]) == [days[1]]


def test_find_tenants_returns_the_prefixes_that_are_canonical_uuids(tmp_path: Path) -> None:
    store = make_store(tmp_path, "2026/03/01/00/a.json")
    save_object(store, "tos/current.md", b"")
    save_object(store, f"{str(TENANT).replace('1', 'A')}/x", b"")
    assert find_tenants(store) == [TENANT]


@pytest.mark.parametrize(
    "key",
    [
        "logs/2026/03/01/00/a.json",
        f"{TENANT}/logs/2026/03/01/00/a.JSON",
        f"{TENANT}/logs/2026/02/29/00/a.json",
        f"{TENANT}/logs/2026/03/01/٠٠/a.json",
        f"{TENANT}/logs/2026/03/01/00/.json/",
    ],
)
def test_other_keys_are_not_raw_log_objects(key: str) -> None:
    assert parse_raw_key(key) is None


def test_a_key_is_parsed_into_its_parts() -> None:
    assert parse_raw_key(f"{TENANT}/logs/2026/03/01/07/a b.json") == RawKey(str(TENANT), DAY, 7, "a b.json")
    assert day_start_ms(date(1970, 1, 2)) == 86_400_000
