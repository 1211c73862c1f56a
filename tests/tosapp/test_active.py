"""How one process comes to know what another has published."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantadmin.lib.core.timestamps import Timestamp
from tenantadmin.lib.objectstore import LocalStore, StoreError
from tests.objects import read_object
from tosapp.publishing import (
    ActiveTerms,
    Publication,
    Terms,
    TosNotLoaded,
    last_publication,
    normalize,
    read_current,
    read_historical,
    terms_of,
    write_publication,
)

if TYPE_CHECKING:
    from django.core.files import File


AT = dt.datetime(2026, 11, 21, 2, 45, 7, 123000, tzinfo=dt.UTC)


def make_terms(text: str) -> Terms:
    terms = terms_of(text)
    assert terms is not None
    return terms


FIRST, SECOND = make_terms("# First"), make_terms("# Second")


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Failing(LocalStore):
    """A store whose calls fail after the first ``calls``."""

    def __init__(self, root: Path, calls: int) -> None:
        super().__init__(root)
        self.calls = calls

    def _spend(self) -> None:
        self.calls -= 1
        if self.calls < 0:
            raise StoreError("the disk is gone")

    def open(self, name: str, mode: str = "rb") -> File[bytes]:
        self._spend()
        return super().open(name, mode)

    def save(self, name: str | None, content: IO[Any], max_length: int | None = None) -> str:
        self._spend()
        return super().save(name, content, max_length)


def publish(store: LocalStore, terms: Terms, at: dt.datetime = AT) -> None:
    write_publication(store, terms, at=at, by="admin@example.org")


def test_terms_announced_before_the_first_read_are_read(object_store: Path) -> None:
    store = LocalStore(object_store)
    other = ActiveTerms(store, refresh_seconds=30, clock=Clock(), announced=lambda: FIRST.hash)
    assert other.get() is None
    publish(store, FIRST)
    assert other.get() == FIRST


def test_a_publication_is_recorded_with_its_hash_time_and_publisher(object_store: Path) -> None:
    store = LocalStore(object_store)
    publication = write_publication(store, FIRST, at=AT, by="admin@example.org")
    assert publication == Publication(
        hash=FIRST.hash, published_at=Timestamp("2026-11-21T02:45:07.123Z"), published_by="admin@example.org"
    )
    assert last_publication(store, FIRST.hash) == publication
    key = f"tos/audit/2026-11-21T02:45:07.123Z-{FIRST.hash}.json"
    assert json.loads(read_object(store, key)) == {
        "hash": FIRST.hash,
        "publishedAt": "2026-11-21T02:45:07.123Z",
        "publishedBy": "admin@example.org",
    }


def test_another_process_adopts_a_publication_within_the_interval(object_store: Path) -> None:
    clock = Clock()
    store = LocalStore(object_store)
    other = ActiveTerms(LocalStore(object_store), refresh_seconds=30, clock=clock)
    assert other.get() is None
    publish(store, FIRST)
    clock.seconds += 29.9
    assert other.get() is None
    clock.seconds += 0.1
    assert other.get() == FIRST
    publish(store, SECOND)
    assert other.get() == FIRST
    assert other.get(fresh=True) == SECOND


def test_another_process_adopts_announced_terms_at_once(object_store: Path) -> None:
    announced: list[str | None] = [None]
    store = LocalStore(object_store)
    other = ActiveTerms(
        LocalStore(object_store), refresh_seconds=30, clock=Clock(), announced=lambda: announced[0]
    )
    publish(store, FIRST)
    assert other.get() == FIRST
    publish(store, SECOND)
    assert other.get() == FIRST
    announced[0] = SECOND.hash
    assert other.get() == SECOND
    # What is announced may go before what was there in the store: known terms are not lost by it.
    announced[0] = FIRST.hash
    assert other.get() == SECOND


def test_known_terms_stay_in_force_while_the_store_fails(object_store: Path) -> None:
    clock = Clock()
    store = Failing(object_store, 100)
    publish(store, FIRST)
    process = ActiveTerms(store, refresh_seconds=30, clock=clock)
    assert process.get() == FIRST
    store.calls = 0
    clock.seconds += 31
    assert process.get() == FIRST


def test_terms_that_could_never_be_read_are_not_taken_for_none(object_store: Path) -> None:
    process = ActiveTerms(Failing(object_store, 0), refresh_seconds=30)
    with pytest.raises(TosNotLoaded):
        process.get()


@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_crash_between_any_two_writes_leaves_the_earlier_document_and_is_repeatable(
    object_store: Path, written: int
) -> None:
    store = LocalStore(object_store)
    publish(store, FIRST)
    with pytest.raises(StoreError):
        publish(Failing(object_store, written), SECOND, AT + dt.timedelta(seconds=1))
    assert read_current(store) == FIRST
    assert read_historical(store, FIRST.hash) == FIRST
    assert len(list(store.list("tos/"))) == 3 + written

    publish(store, SECOND, AT + dt.timedelta(seconds=2))
    assert read_current(store) == SECOND
    assert read_historical(store, FIRST.hash) == FIRST
    last = last_publication(store, SECOND.hash)
    assert last is not None
    assert last.published_at == "2026-11-21T02:45:09.123Z"


def test_the_objects_of_a_publication(object_store: Path) -> None:
    publish(LocalStore(object_store), FIRST)
    tos = object_store / "tos"
    assert (tos / "current.md").read_text() == "# First"
    assert (tos / "history" / f"{FIRST.hash}.md").read_text() == "# First"
    record = (tos / "audit" / f"2026-11-21T02:45:07.123Z-{FIRST.hash}.json").read_text()
    assert '"publishedBy": "admin@example.org"' in record


TEXTS = st.text(alphabet=st.sampled_from("a# \t\r\n\x0b\u00a0é"), max_size=40)


@pytest.mark.parametrize(
    ("markdown", "normal"),
    [
        ("# Terms", "# Terms"),
        ("# Terms\r\n\r\nText\r\n", "# Terms\n\nText"),
        ("\n \n\t\n# Terms\n\n\n", "# Terms"),
        ("a  \nb\t \n", "a\nb"),
        ("  indented\n\n\n  twice", "  indented\n\n\n  twice"),
        ("a\rb", "a\rb"),
        ("a\r", "a"),
        ("a\r\r\nb", "a\nb"),
        ("X\n\nAnnex X\n", "X\n\nAnnex X"),
        ("", ""),
        (" \r\n\t\r\n", ""),
    ],
)
def test_normalization(markdown: str, normal: str) -> None:
    assert normalize(markdown) == normal


def test_the_hash_is_the_md5_of_the_normal_form() -> None:
    terms = terms_of("# Términos \r\n")
    assert terms is not None
    assert terms.markdown == "# Términos"
    assert terms.hash == "741f36e51229d44e59ab389ffd944963"
    assert terms_of(" \r\n ") is None


@given(TEXTS)
def test_it_is_idempotent_and_normal(text: str) -> None:
    normal = normalize(text)
    assert normalize(normal) == normal
    lines = normal.split("\n")
    assert "\r\n" not in normal
    assert all(line == line.rstrip() for line in lines)
    assert not normal or (lines[0] and lines[-1])


@given(TEXTS, st.sampled_from(["", "\n", " \n", "\r\n\r\n"]), st.sampled_from(["", "\n", "\r\n \t\n"]))
def test_whitespace_around_a_document_does_not_change_it(text: str, before: str, after: str) -> None:
    if text.startswith(("\n", "\r")) or text.endswith("\r"):
        return
    assert normalize(before + text + after) == normalize(text)
