"""The staff's page of the terms of service: preview, publishing, who has acknowledged which text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import Event, User
from tenantadmin.lib.http.streaming import stream_csv
from tenantadmin.lib.objectstore import StoreError
from tests import factories
from tests.admin.staff import text_of
from tosapp.admin import pages as terms_page
from tosapp.admin.pages import render_markdown
from tosapp.models import Acknowledgement
from tosapp.publishing import active_terms, publish, terms_of

FIRST, SECOND = "# Terms\n\nBe kind.", "# Terms\n\nBe very kind."
PAGE, EDIT, CSV = "/admin/terms/", "/admin/terms/edit/", "/admin/terms/users.csv"


@pytest.fixture(autouse=True)
def _no_announcement() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def support(world: factories.World) -> Client:
    client = Client()
    client.force_login(factories.make_user("support@example.org", is_support=True))
    return client


def hash_of(text: str) -> str:
    terms = terms_of(text)
    assert terms is not None
    return terms.hash


def acknowledged(email: str, text: str, **fields: Any) -> User:
    user = factories.make_user(email, tos=hash_of(text), **fields)
    Acknowledgement.objects.create(
        user=user, hash=hash_of(text), acknowledged_at=datetime(2026, 3, 1, 12, tzinfo=UTC)
    )
    return user


def form(text: str = SECOND, **changes: str) -> dict[str, str]:
    active = active_terms().get()
    return {"markdown": text, "replacing": active.hash if active else "", "reason": "ticket 3", **changes}


def show(client: Client, address: str = PAGE, **query: str) -> str:
    answer = client.get(address, query)
    assert answer.status_code == 200
    return text_of(answer.content.decode().partition('<div class="page">')[2])


class TestPublishing:
    def test_other_terms_are_published_with_the_reason(self, staff: Client) -> None:
        publish(FIRST, actor="x@example.org")
        acknowledged("a@example.org", FIRST)
        answer = staff.post(EDIT, form(), follow=True)
        assert "active users are asked to acknowledge it, when they next sign in" in answer.content.decode()
        active = active_terms().get(fresh=True)
        assert active is not None
        assert active.markdown == SECOND
        published, acted = Event.objects.filter(actor="admin@example.org").order_by("pk")
        assert (published.kind, published.subject, published.before, published.reason) == (
            "terms.published",
            hash_of(SECOND),
            {"hash": hash_of(FIRST)},
            "ticket 3",
        )
        assert (acted.kind, acted.subject, acted.after, acted.reason) == (
            "staff.acted",
            hash_of(SECOND),
            {"act": "terms.published", "hash": hash_of(SECOND)},
            "ticket 3",
        )

    def test_the_active_text_offers_nothing_to_publish(self, staff: Client) -> None:
        publish(FIRST, actor="x@example.org")
        button = '<button type="submit" class="button" form="terms-form">Publish</button>'
        assert button not in staff.get(EDIT).content.decode()
        assert button in staff.post(f"{EDIT}?part=preview", {"markdown": SECOND}).content.decode()

    def test_the_first_terms(self, staff: Client) -> None:
        assert "No terms are published yet" in show(staff)
        assert staff.post(EDIT, form(FIRST)).status_code == 302
        assert "Be kind." in show(staff)

    @pytest.mark.parametrize(
        ("changes", "status", "said"),
        [
            ({"markdown": FIRST}, 409, "This text is active already."),
            ({"markdown": " \r\n"}, 400, "What publishing does"),
            ({"markdown": ""}, 400, "This field is required."),
            ({"reason": ""}, 400, "This field is required."),
            ({"markdown": "a\0b"}, 400, "Null characters are not allowed."),
            ({"replacing": ""}, 409, "Other terms were published in the meantime."),
            ({"replacing": "0" * 32}, 409, "Other terms were published in the meantime."),
        ],
    )
    def test_a_refused_form_changes_nothing(
        self, staff: Client, changes: dict[str, str], status: int, said: str
    ) -> None:
        publish(FIRST, actor="x@example.org")
        answer = staff.post(EDIT, form(**changes))
        assert answer.status_code == status
        assert said in answer.content.decode()
        active = active_terms().get(fresh=True)
        assert active is not None
        assert active.markdown == FIRST
        assert not Event.objects.filter(actor="admin@example.org").exists()

    def test_the_text_is_kept_if_the_store_fails(
        self, staff: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise StoreError("no disk")

        monkeypatch.setattr("tosapp.publishing.write_publication", fail)
        answer = staff.post(EDIT, form())
        assert answer.status_code == 503
        assert "Be very kind." in answer.content.decode()
        assert "The object store cannot be reached." in answer.content.decode()
        assert not Event.objects.filter(kind="staff.acted").exists()

    def test_support_looks_and_does_not_publish(self, support: Client) -> None:
        publish(FIRST, actor="x@example.org")
        assert "Publish new terms" not in show(support)
        for answer in (support.get(EDIT), support.post(EDIT, form())):
            assert answer.status_code == 403
        assert support.get(CSV).status_code == 200

    def test_neither_strangers_nor_owners_get_in(self, client: Client, world: factories.World) -> None:
        for user in (None, world.owner, world.stranger):
            if user is not None:
                client.force_login(user)
            for address in (PAGE, EDIT, CSV):
                for answer in (client.get(address), client.post(address, form(FIRST))):
                    assert answer.status_code == 302
                    assert answer["Location"].startswith("/admin/login/")
        assert active_terms().get(fresh=True) is None


class TestPreview:
    def preview(self, client: Client, text: str) -> str:
        answer = client.post(f"{EDIT}?part=preview", {"markdown": text})
        assert answer.status_code == 200
        return text_of(answer.content.decode())

    def test_it_counts_users_asked_again(self, staff: Client) -> None:
        publish(FIRST, actor="x@example.org")
        User.objects.update(is_active=False)
        User.objects.filter(email="admin@example.org").update(is_active=True)
        for number in range(3):
            acknowledged(f"a{number}@example.org", FIRST)
        acknowledged("gone@example.org", FIRST, is_active=False)
        acknowledged("before@example.org", SECOND)
        acknowledged("other@example.org", "other")
        shown = self.preview(staff, SECOND)
        # Not before@, who acknowledged this text already.
        assert (
            "5 active users are asked to acknowledge this text, "
            "when they next sign in to the dashboard or renew a token: "
            "3 who acknowledged the active text, and 2 who never acknowledged the active text."
        ) in shown
        assert "− Be kind. + Be very kind." in shown

    def test_the_active_text_changes_nothing(self, staff: Client) -> None:
        publish(FIRST, actor="x@example.org")
        assert "This text is active already" in self.preview(staff, f"{FIRST}  \r\n\r\n")
        assert "This text is active already" in show(staff, EDIT)
        disabled = 'form="terms-form" disabled>Publish</button>'
        assert disabled in staff.get(EDIT).content.decode()

    def test_an_empty_text(self, staff: Client) -> None:
        for text in ("", " \r\n "):
            assert "The document is empty after normalization." in self.preview(staff, text)

    def test_markdown_is_shown_and_nothing_of_it_runs(self) -> None:
        html = render_markdown(
            "## Part\n\n1. *one*\n\n<script>alert(1)</script> [a](javascript:x) ![b](https://x/y.png) "
            "[ok](https://example.org)\n\n| a |\n|---|\n| b |\n"
        )
        assert "<h2>Part</h2>" in html
        assert "<em>one</em>" in html
        assert '<a href="https://example.org" rel="noopener noreferrer">ok</a>' in html
        assert "<td>b</td>" in html
        for bad in ("<script", "<img", 'href="javascript'):
            assert bad not in html


class TestWhoAcknowledged:
    def test_users_are_grouped_by_their_last_acknowledged_text(self, staff: Client) -> None:
        publish(FIRST, actor="x@example.org")
        publish(SECOND, actor="y@example.org")
        acknowledged("new@example.org", SECOND)
        acknowledged("old@example.org", FIRST)
        shown = show(staff)
        assert "Active users who acknowledged the active text 1 Asked when they next sign in" in shown
        assert f"{hash_of(SECOND)[:8]}… active" in shown
        assert f"{hash_of(FIRST)[:8]}… superseded" in shown
        listed = show(staff, text=hash_of(SECOND))
        assert re.search(r"new@example\.org \d+ (months?|years?) ago", listed)
        assert "old@example.org" not in listed
        assert "admin@example.org –" in show(staff, text="never")

    def test_the_next_page_starts_after_the_last_row(
        self, staff: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(terms_page, "PAGE", 2)
        for number in range(5):
            acknowledged(f"a{number}@example.org", FIRST)
        query, seen = {"text": hash_of(FIRST)}, []
        while True:
            found = staff.get(PAGE, query).context["found"]
            seen += [user.email for user, _ in found.users]
            if found.cursor is None:
                break
            query["cursor"] = found.cursor
        assert seen == [f"a{number}@example.org" for number in range(5)]

    @pytest.mark.parametrize(
        "query",
        [
            {"text": "x"},
            {"text": "\0"},
            {"text": "never", "cursor": "!"},
            {"text": "never", "cursor": "WyJcdTAwMDAiXQ"},
            {"text": "never", "cursor": "WyJcdWQ4MDAiXQ"},
            {"text": "never", "cursor": "WzFd"},
        ],
    )
    def test_a_bad_address_is_said_to_be_one(self, staff: Client, query: dict[str, str]) -> None:
        answer = staff.get(PAGE, query)
        assert answer.status_code == 400
        assert 'role="alert"' in answer.content.decode()

    def test_queries_do_not_grow_with_the_users(self, staff: Client) -> None:
        publish(FIRST, actor="x@example.org")
        counts = []
        for number in range(2):
            for name in "abc":
                acknowledged(f"{name}{number}@example.org", FIRST)
            with CaptureQueriesContext(connection) as captured:
                show(staff, text=hash_of(FIRST))
            counts.append(len(captured))
        assert counts[0] == counts[1] <= 9

    def test_everybody_as_csv(self, staff: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(terms_page, "_BATCH", 2)
        publish(FIRST, actor="x@example.org")
        User.objects.update(is_active=False)
        User.objects.filter(email="admin@example.org").update(is_active=True)
        acknowledged("=cmd@example.org", SECOND)
        acknowledged("b@example.org", FIRST)
        acknowledged("c@example.org", FIRST, is_active=False)
        answer = staff.get(CSV)
        assert answer["Content-Type"] == "text/csv; charset=utf-8"
        assert answer["Content-Disposition"] == 'attachment; filename="terms.csv"'
        text = answer.getvalue().decode()
        assert list(csv.reader(io.StringIO(text))) == [
            ["email", "is_up_to_date", "acknowledged_hash", "acknowledged_at"],
            ["'=cmd@example.org", "no", hash_of(SECOND), "2026-03-01T12:00:00.000Z"],
            ["admin@example.org", "no", "", ""],
            ["b@example.org", "yes", hash_of(FIRST), "2026-03-01T12:00:00.000Z"],
        ]

    def test_a_csv_is_sent_in_pieces(self) -> None:
        answer = stream_csv("x.csv", ["n"], ([str(number)] for number in range(1200)))
        pieces = list(answer)
        assert len(pieces) == 3
        assert b"".join(pieces).split() == [b"n", *(str(number).encode() for number in range(1200))]


def test_the_sidebar_leads_there(staff: Client) -> None:
    assert f'href="{reverse("admin:terms")}"' in staff.get("/admin/").content.decode()
