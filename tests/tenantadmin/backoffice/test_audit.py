"""The timeline of the audit: its order, filters, pages, saved views and file; no query scans a table."""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.admin.base import ActPage
from accounts.admin.words import ACTS, EVENTS
from accounts.limited_access import take_access
from accounts.models import AuditView, Event, Revision, User
from accounts.models.events import EventKind
from logs.audit import REQUEST_KEY, REQUESTS_KEY
from logs.models import LogRead, QueryRun
from tenantadmin.backoffice.audit.entries import EVENT_GROUPS, KIND_CHOICES
from tenantadmin.backoffice.audit.timeline import AuditFilter, read_audit, walk_audit
from tenantadmin.lib.core.errors import BadRequest
from tenantadmin.lib.core.timestamps import now
from tests.admin.staff import page_text, require_roles, signed_in, support_client, text_of

if TYPE_CHECKING:
    from django.test import Client

    from tests import factories

AUDIT = "/admin/audit/"
AT = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
ADA = "ada@example.org"
ROWS = 4000
MONTH = f"{now():%Y_%m}"
#: What `filled` fills: the partitions of this month, and a table without partitions.
FULL = (
    "accounts_revision",
    *(f"{table}_{MONTH}" for table in ("accounts_event", "logs_logread", "logs_queryrun")),
)


def minutes(number: int) -> dt.datetime:
    return AT + dt.timedelta(minutes=number)


def make_event(at: dt.datetime = AT, **fields: Any) -> Event:
    defaults: dict[str, Any] = {"kind": EventKind.SIGN_IN_SUCCEEDED, "actor": ADA, "subject": ADA}
    return Event.objects.create(**defaults | {"request_id": "-", **fields}, at=at)


def make_read(at: dt.datetime = AT, **fields: Any) -> LogRead:
    defaults: dict[str, Any] = {"tenant_id": uuid4(), "email": ADA, "key": "k", "request_id": "-"}
    return LogRead.objects.create(**defaults | fields, at=at)


def make_query(at: dt.datetime = AT, **fields: Any) -> QueryRun:
    defaults: dict[str, Any] = {"tenant_id": uuid4(), "email": ADA, "statement": "SELECT 1"}
    return QueryRun.objects.create(**defaults | {"request_id": "-", "outcome": "ok", **fields}, at=at)


def make_revision(at: dt.datetime = AT, **fields: Any) -> Revision:
    defaults: dict[str, Any] = {"kind": "config", "tenant_id": uuid4(), "account_id": uuid4(), "seq": 0}
    values = defaults | {"action": "create", "user": ADA, "document": {}, **fields}
    return Revision.objects.create(**values, changed_at=at)


def found(**filters: Any) -> list[tuple[str, int]]:
    """Return (source, id) of what fits, newest first."""
    asked = AuditFilter(**filters)
    return [
        (entry.source.name, entry.row.pk) for page in walk_audit(asked, page=50, most=50) for entry in page
    ]


def keys(*rows: Any) -> list[tuple[str, int]]:
    names = {Event: "EVENT", LogRead: "READ", QueryRun: "QUERY", Revision: "REVISION"}
    return [(names[type(row)], row.pk) for row in rows]


def test_access_to_the_page(staff: Client, world: factories.World) -> None:
    require_roles({"audit": AUDIT}, {}, world, staff)
    assert not Event.objects.filter(kind="staff.acted").exists()


class TestTimeline:
    def test_all_sources_are_in_one_order(self, db: None) -> None:
        rows = [
            make_revision(minutes(1)),
            make_query(minutes(2)),
            make_event(minutes(3)),
            make_read(minutes(4)),
        ]
        assert found() == keys(*reversed(rows))

    def test_equal_times_are_ordered_by_source(self, db: None) -> None:
        revision, read, query, event = make_revision(), make_read(), make_query(), make_event()
        assert found() == keys(event, query, read, revision)

    @pytest.mark.parametrize("limit", [1, 2, 3])
    def test_pages_lose_and_repeat_nothing(self, db: None, limit: int) -> None:
        for _ in range(2):
            for make in (make_revision, make_read, make_query, make_event):
                make()
        make_event(minutes(1))
        make_read(minutes(-1))
        whole = found()
        paged: list[tuple[str, int]] = []
        cursor = None
        for _ in range(20):
            page = read_audit(AuditFilter(), limit=limit, cursor=cursor)
            assert len(page.entries) <= limit
            paged += [(entry.source.name, entry.row.pk) for entry in page.entries]
            cursor = page.cursor
            if cursor is None:
                break
        assert paged == whole
        assert len(whole) == 10

    @pytest.mark.parametrize("cursor", ["x", "W10", "WyJ4IiwxLDFd"])
    def test_a_foreign_cursor_is_said(self, staff: Client, world: factories.World, cursor: str) -> None:
        with pytest.raises(BadRequest):
            read_audit(AuditFilter(), limit=1, cursor=cursor)
        assert "The cursor is invalid." in page_text(staff, AUDIT, status=400, cursor=cursor)


class TestFilters:
    def test_by_who(self, db: None) -> None:
        own = [
            make_revision(minutes(1)),
            make_read(minutes(2)),
            make_query(minutes(3)),
            make_event(minutes(4)),
        ]
        make_event(actor="bob@example.org")
        make_read(email="bob@example.org")
        make_query(email="bob@example.org")
        make_revision(user="bob@example.org")
        assert found(who=ADA) == keys(*reversed(own))

    def test_by_what(self, db: None) -> None:
        event = make_event(subject="acme.example")
        make_event()
        make_read()
        assert found(what="acme.example") == keys(event)
        assert found(what="acme.example", kind="queries") == []

    def test_by_tenant_and_by_account(self, world: factories.World) -> None:
        tenant, account = world.tenant.pk, world.account.pk
        rows = [
            make_revision(minutes(1), tenant_id=tenant, account_id=account, seq=7),
            make_read(minutes(2), tenant_id=tenant),
            make_query(minutes(3), tenant_id=tenant),
            make_event(minutes(4), tenant_id=tenant),
        ]
        of_account = make_event(minutes(5), account_id=account)
        both = make_event(minutes(6), account_id=account, tenant_id=tenant)
        foreign = world.stranger_tenant
        make_event(minutes(7), tenant_id=foreign.pk, account_id=foreign.account_id)
        make_read(minutes(7), tenant_id=foreign.pk)
        until = dt.date(2026, 3, 1)
        assert found(tenant=tenant, until=until) == keys(both, *reversed(rows))
        assert found(account=account, until=until) == keys(both, of_account, *reversed(rows))
        assert found(account=account, who=ADA, until=until) == keys(both, of_account, *reversed(rows))
        assert found(account=account, kind="sign-ins", until=until) == keys(both, of_account, rows[3])
        assert found(account=foreign.account_id, tenant=tenant, until=until) == []

    def test_by_kind(self, db: None) -> None:
        signed, acted = make_event(), make_event(kind=EventKind.STAFF_ACTED)
        domain = make_event(kind=EventKind.DOMAIN_ADDED)
        read, query, revision = make_read(), make_query(), make_revision()
        assert found(kind="sign-ins") == keys(signed)
        assert found(kind="staff") == keys(acted)
        assert found(kind="staff.acted") == keys(acted)
        assert found(kind="other-events") == keys(domain)
        rules = make_revision(kind="rules")
        assert found(kind="rules") == keys(rules)
        assert found(kind="config") == keys(revision)
        assert found(kind="raw-reads") == keys(read)
        assert found(kind="queries") == keys(query)
        assert found(kind="documents") == keys(rules, revision)
        assert found(kind="rights") == []

    def test_every_kind_of_event_is_in_one_group(self) -> None:
        grouped = [kind for kinds in EVENT_GROUPS.values() for kind in kinds]
        assert sorted(grouped) == sorted(EventKind)
        offered = [value for _, choices in KIND_CHOICES for value, _ in choices]
        assert len(offered) == len(set(offered))
        assert {*EVENT_GROUPS, *EventKind} - set(offered) == {"staff.acted"}

    def test_kinds_have_the_words_of_the_pages(self) -> None:
        titles = {value: title for _, choices in KIND_CHOICES for value, title in choices}
        assert len(titles) == len(set(titles.values()))
        assert titles["rules"] == "Rules published or restored"
        assert titles["draft.changed"] == "Draft of rules changed"
        assert titles["second-factor.reset"] == "Second factor reset by staff"
        assert titles["pat.revoked"] == "Access token revoked"
        assert titles["sign-in.link-requested"] == "Sign-in link requested"

    def test_by_days_inclusive(self, db: None) -> None:
        first = make_event(dt.datetime(2026, 3, 1, tzinfo=dt.UTC))
        last = make_read(dt.datetime(2026, 3, 2, 23, 59, 59, 999000, tzinfo=dt.UTC))
        make_query(dt.datetime(2026, 3, 3, tzinfo=dt.UTC))
        make_revision(dt.datetime(2026, 2, 28, 23, 59, 59, tzinfo=dt.UTC))
        assert found(since=dt.date(2026, 3, 1), until=dt.date(2026, 3, 2)) == keys(last, first)

    @pytest.mark.parametrize(
        ("query", "said"),
        [
            ({"since": "yesterday"}, "Give days like 2026-03-31."),
            ({"until": "9999-12-31"}, "Give a day of the years 1971 to 9000."),
            ({"kind": "nothing"}, "There is no kind 'nothing'."),
            ({"tenant": "zzz"}, "No tenant is called 'zzz'."),
            ({"account": "zzz"}, "No account is called 'zzz'."),
        ],
    )
    def test_errors_are_shown(
        self, staff: Client, world: factories.World, query: dict[str, str], said: str
    ) -> None:
        assert said in page_text(staff, AUDIT, status=400, **query)
        assert staff.get(AUDIT, {**query, "format": "csv"}).status_code == 400
        assert staff.post(AUDIT, {**query, "name": "x"}).status_code == 400

    def test_a_tenant_by_its_name(self, staff: Client, world: factories.World) -> None:
        make_query(tenant_id=world.tenant.pk, statement="SELECT 4711")
        make_query(statement="SELECT 4712")
        text = page_text(staff, AUDIT, tenant="ware", kind="queries")
        assert "SELECT 4711" in text
        assert "SELECT 4712" not in text


class TestPage:
    def test_a_refused_query_has_its_text_and_the_refusal(
        self, staff: Client, world: factories.World
    ) -> None:
        make_query(
            tenant_id=world.tenant.pk,
            statement=f"SELECT pg_sleep(1) -- {'x' * 2000}",
            outcome="query_rejected",
            message="The function 'pg_sleep' is not allowed.",
            client_address="192.0.2.1",
        )
        text = page_text(staff, AUDIT, kind="queries")
        assert "ada@example.org 192.0.2.1 ran SQL over the log of Warehouse refused SELECT" in text
        assert "SELECT pg_sleep(1) -- x" in text
        assert "The function 'pg_sleep' is not allowed." in text
        assert len(text) < 4000

    def test_each_row_links_to_its_source(self, staff: Client, world: factories.World) -> None:
        event = make_event(
            kind=EventKind.MEMBERSHIP_CHANGED, before={"role": "member"}, after={"role": "owner"}
        )
        query, read = make_query(), make_read(tenant_id=world.tenant.pk, key=f"{world.tenant.pk}/logs/2026")
        account = make_revision(kind="account", tenant_id=None, account_id=uuid4())
        html = staff.get(AUDIT).content.decode()
        for address in (
            f"/admin/accounts/event/{event.pk}/change/",
            f"/admin/logs/queryrun/{query.pk}/change/",
            f"/admin/logs/logread/{read.pk}/change/",
            f"/admin/accounts/revision/{account.pk}/change/",
            f"/admin/tenants/{world.tenant.pk}/open/?to=history%3Fkind%3Drules%26seq%3D0",
            "/admin/people/of/?email=ada%40example.org",
        ):
            assert address in html, address
        text = page_text(staff, AUDIT)
        assert "made ada@example.org owner role: member → owner" in text
        assert "read the raw log of Warehouse logs/2026" in text
        make_read(tenant_id=world.tenant.pk, key=f"{REQUEST_KEY}log-7")
        make_read(tenant_id=world.tenant.pk, key=f"{REQUESTS_KEY}2026-03-01 to 2026-03-02")
        text = page_text(staff, AUDIT)
        assert "read the request of Warehouse log-7" in text
        assert "read requests of Warehouse 2026-03-01 to 2026-03-02" in text

    def test_records_of_one_request_are_one_act(self, staff: Client, world: factories.World) -> None:
        of = {"tenant_id": world.tenant.pk, "account_id": world.account.pk, "request_id": "one"}
        make_revision(minutes(1), kind="rules", action="update", seq=3, summary={"changed": 2}, **of)
        after = {"act": "draft.published", "seq": 3, "draftId": str(uuid4())}
        acted = {"kind": EventKind.STAFF_ACTED, "after": after, "reason": "Ticket 7", "subject": "x"}
        make_event(minutes(1), **acted, **of)
        make_event(minutes(1), kind=EventKind.DRAFT_DELETED, subject=str(uuid4()), reason="Ticket 7", **of)
        html = staff.get(AUDIT).content.decode()
        rows = re.findall(r"<tr><td><time.*?</tr>", html, re.DOTALL)
        told = [text_of(row).partition(ADA)[2] for row in rows if ADA in row]
        act = "published a draft of the rules of Warehouse changed 2 rules"
        assert told == [f" {act} and 1 more deleted a draft of the rules of Warehouse Ticket 7"]
        assert f"/admin/tenants/{world.tenant.pk}/open/?to=history%3Fkind%3Drules%26seq%3D3" in html

    def test_values_are_told_by_name_and_without_ids(self, staff: Client, world: factories.World) -> None:
        token = {"pat": 7, "name": "CI", "scopes": ["logs:query"], "tenants": [str(world.tenant.pk), "*"]}
        dates = {"expiresAt": "2026-12-01T00:00:00.000Z", "accounts": [str(uuid4())], "asGuest": True}
        make_event(kind=EventKind.PAT_CREATED, after={**token, **dates}, tenant_id=world.tenant.pk)
        assert (
            "created a personal access token on Warehouse name: CI; as guest: yes; "
            "expires at: 2026-12-01 00:00:00 UTC ; may: run SQL; tenants: Warehouse, everything"
        ) in page_text(staff, AUDIT)
        # The page's script shows it in the reader's zone, as the time of the act.
        assert (
            '<time class="moment " datetime="2026-12-01T00:00:00.000Z"' in staff.get(AUDIT).content.decode()
        )

    def test_the_fields_of_a_document_are_told_in_words(self, staff: Client, world: factories.World) -> None:
        summary = {"fields": ["/billingEmail", "/owners"], "comment": "left"}
        of: dict[str, Any] = {"tenant_id": None, "account_id": world.account.pk, "request_id": "one"}
        make_revision(kind="account", action="update", seq=9, summary=summary, **of)
        acted: dict[str, Any] = {"after": {"act": "account.changed"}, "reason": "left", "subject": "x"}
        make_event(kind=EventKind.STAFF_ACTED, **acted, **of)
        text = page_text(staff, AUDIT, who=ADA)
        assert "changed the account Acme “Billing email”, “Owners” left" in text

    def test_the_same_act_in_a_row_is_told_once(self, staff: Client, world: factories.World) -> None:
        for number in range(3):
            make_event(minutes(number), kind=EventKind.TOKEN_MINTED, after={"scopes": ["logs:read"]})
        make_event(minutes(4), kind=EventKind.PAT_CREATED)
        text = page_text(staff, AUDIT, who=ADA)
        assert text.count("got an access token") == 1
        assert "got an access token 3 times" in text

    def test_figures_of_pages_are_no_acts(self, staff: Client, world: factories.World) -> None:
        make_query(tenant_id=world.tenant.pk, statement="SELECT 4711", by_service=True)
        own = make_query(tenant_id=world.tenant.pk, statement="SELECT 4712")
        assert found(who=ADA) == keys(own) == found(kind="queries")
        read = make_read(minutes(1), tenant_id=world.tenant.pk)
        assert sorted(found(kind="logs")) == sorted([*keys(own, read), *found(kind="figures")])
        text = page_text(staff, AUDIT, kind="figures")
        assert "read figures from the log of Warehouse SELECT 4711" in text
        assert "SELECT 4712" not in text

    def test_every_act_and_every_event_has_words(self) -> None:
        acts: set[Any] = set()
        classes = [ActPage]
        for one in classes:
            classes += one.__subclasses__()
            acts.add(vars(one).get("name"))
        assert {act for act in acts if isinstance(act, str)} <= ACTS.keys()
        assert set(EventKind) == EVENTS.keys()

    @pytest.mark.parametrize("who", ["ADA@example.org", "ada@", "love"])
    def test_a_person_is_given_by_a_word(self, staff: Client, world: factories.World, who: str) -> None:
        User.objects.create_user(ADA, display_name="Ada Lovelace")
        make_event()
        make_event(actor="bob@example.org", subject="bob@example.org")
        text = page_text(staff, AUDIT, who=who)
        assert "Acts of ada@example.org newest first" in text
        assert "bob@" not in text

    def test_no_filter_is_required(self, staff: Client, world: factories.World) -> None:
        fields = staff.get(AUDIT).content.decode().partition('id="filters"')[2].partition("</form>")[0]
        assert fields.count("<input") == 7
        assert "required" not in fields

    def test_days_are_of_the_zone_in_which_rows_are_shown(self, staff: Client) -> None:
        at = dt.datetime(2026, 11, 20, 23, 30, tzinfo=dt.UTC)
        make_event(at, subject="late@example.org", kind="user.deleted")
        day = "2026-11-21"
        told = [
            page_text(staff, AUDIT, who=ADA, since=day, until=day, zone=zone)
            for zone in ("Europe/Berlin", "UTC", "../x", "")
        ]
        assert ["late@example.org" in text for text in told] == [True, False, False, False]
        # Without days, a zone is no filter.
        assert "Clear" not in page_text(staff, AUDIT, zone="Europe/Berlin")

    def test_a_button_means_the_days_of_a_span(self, staff: Client, world: factories.World) -> None:
        make_event(now() - dt.timedelta(days=1), subject="yesterday@example.org", kind="user.deleted")
        make_event(now(), subject="today@example.org", kind="user.deleted")
        text = page_text(staff, AUDIT, who=ADA, days="Yesterday")
        assert "yesterday@example.org" in text
        assert "today@example.org" not in text

    def test_several_people_are_offered(self, staff: Client, world: factories.World) -> None:
        html = staff.get(AUDIT, {"who": "example", "kind": "tokens"})
        assert html.status_code == 400
        assert 'href="?who=owner%40example.org&amp;kind=tokens"' in html.content.decode()

    def test_nothing_fits(self, staff: Client, world: factories.World) -> None:
        text = page_text(staff, AUDIT, who="unknown@example.org", since="2001-03-01", until="2001-03-01")
        assert (
            "unknown@example.org did nothing that is recorded on Thursday, 1 March 2001. All records since"
            in text
        )
        assert "“About” finds" not in text
        text = page_text(staff, AUDIT, what="unknown.example", until="2001-03-01")
        assert (
            "Nothing that fits is recorded until Thursday, 1 March 2001. “About” finds only events." in text
        )

    def test_older_pages_keep_the_filters(self, staff: Client, world: factories.World) -> None:
        for number in range(51):
            make_event(minutes(number), kind=EventKind.DOMAIN_ADDED, subject=f"s{number}.example")
        html = staff.get(AUDIT, {"who": ADA}).content.decode()
        assert "s50.example" in html
        older = re.findall(r'href="(\?who=ada%40example.org&amp;cursor=[^"]+)"', html)
        assert len(older) == 1
        html = staff.get(AUDIT + older[0].replace("&amp;", "&")).content.decode()
        assert "s0.example" in html
        assert "s1.example" not in html
        assert "Newest" in html

    def test_the_number_of_queries_does_not_grow(self, staff: Client, world: factories.World) -> None:
        def count() -> int:
            with CaptureQueriesContext(connection) as captured:
                assert staff.get(AUDIT).status_code == 200
            return len(captured)

        before = count()
        for number in range(5):
            make_event(tenant_id=world.tenant.pk, account_id=world.account.pk)
            make_query(tenant_id=world.stranger_tenant.pk)
            make_read(tenant_id=world.tenant.pk)
            make_revision(minutes(number))
        assert count() == before <= 13


class TestViews:
    def test_a_view_is_saved_shown_and_forgotten(self, staff: Client, world: factories.World) -> None:
        form = {"who": ADA, "kind": "queries", "name": "Ada's queries"}
        answer = staff.post(AUDIT, form)
        assert answer["Location"] == f"{AUDIT}?who=ada%40example.org&kind=queries"
        view = AuditView.objects.get()
        assert (view.user.email, view.name) == ("admin@example.org", "Ada's queries")
        assert view.filters == {"who": ADA, "kind": "queries"}
        html = staff.get(answer["Location"]).content.decode()
        assert 'href="?who=ada%40example.org&amp;kind=queries" aria-current="true"' in html
        staff.post(AUDIT, {**form, "kind": "tokens"})
        view.refresh_from_db()
        assert view.filters["kind"] == "tokens"
        staff.post(AUDIT, {"forget": view.pk})
        assert not AuditView.objects.exists()
        acted = Event.objects.filter(kind="staff.acted").order_by("pk")
        assert list(acted.values_list("after__act", flat=True)) == [
            "view.saved",
            "view.saved",
            "view.forgotten",
        ]

    def test_it_is_its_users_alone(self, staff: Client, world: factories.World) -> None:
        support = support_client()
        support.post(AUDIT, {"kind": "queries", "name": "mine"})
        view = AuditView.objects.get()
        saved = 'aria-label="Saved views"'
        assert saved in support.get(AUDIT).content.decode()
        assert saved not in staff.get(AUDIT).content.decode()
        staff.post(AUDIT, {"forget": view.pk})
        staff.post(AUDIT, {"forget": "x\0"})
        assert AuditView.objects.exists()

    @pytest.mark.parametrize(
        "form", [{"kind": "queries"}, {"kind": "queries", "name": "x" * 101}, {"name": "x"}]
    )
    def test_it_needs_a_name_and_a_filter(
        self, staff: Client, world: factories.World, form: dict[str, str]
    ) -> None:
        answer = staff.post(AUDIT, form, follow=True)
        assert "give the view a name" in answer.content.decode()
        assert not AuditView.objects.exists()

    def test_not_without_end(
        self, staff: Client, world: factories.World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tenantadmin.backoffice.audit.page._MAX_VIEWS", 1)
        staff.post(AUDIT, {"kind": "queries", "name": "one"})
        staff.post(AUDIT, {"kind": "tokens", "name": "one"})
        answer = staff.post(AUDIT, {"kind": "queries", "name": "two"}, follow=True)
        assert "Forget one first." in answer.content.decode()
        assert [(view.name, view.filters) for view in AuditView.objects.all()] == [
            ("one", {"kind": "tokens"})
        ]

    @pytest.mark.parametrize("has_access", [False, True])
    def test_support_reads_statements_only_of_tenants_with_access(
        self, world: factories.World, has_access: bool
    ) -> None:
        support = support_client()
        user = User.objects.get(email="support@example.org")
        if has_access:
            take_access(user, tenant_id=world.tenant.pk, hours=1)
        run = make_query(tenant_id=world.tenant.pk, statement="SELECT 4711", message="about 4711")
        make_query(email=user.email, statement="SELECT 4712")
        for query in ({"kind": "queries"}, {"kind": "queries", "format": "csv"}):
            answer = support.get(AUDIT, query)
            text = (answer.getvalue() if "format" in query else answer.content).decode()
            assert ("SELECT 4711" in text, "about 4711" in text) == (has_access, has_access)
            assert "SELECT 4712" in text
        for path in ("/admin/logs/queryrun/", f"/admin/logs/queryrun/{run.pk}/change/"):
            assert "4711" not in support.get(path).content.decode()

    def test_it_goes_with_its_user(self, world: factories.World) -> None:
        client = signed_in(world.platform_admin)
        client.post(AUDIT, {"kind": "queries", "name": "one"})
        world.platform_admin.delete()
        assert not AuditView.objects.exists()


class TestFile:
    def test_the_file_has_the_filtered_rows_and_leaves_an_event(
        self, staff: Client, world: factories.World
    ) -> None:
        make_query(tenant_id=world.tenant.pk, statement="=cmd()", message="-1", outcome="query_failed")
        make_event()
        answer = staff.get(AUDIT, {"format": "csv", "kind": "queries"})
        assert answer["Content-Disposition"] == 'attachment; filename="audit.csv"'
        rows = list(csv.DictReader(io.StringIO(answer.getvalue().decode())))
        assert [(row["at"], row["who"], row["tenant"], row["detail"], row["reason"]) for row in rows] == [
            ("2026-03-01T12:00:00.000Z", ADA, str(world.tenant.pk), "'=cmd()", "'-1")
        ]
        event = Event.objects.get(kind="staff.acted")
        assert event.after == {"act": "audit.exported", "filters": {"kind": "queries"}}

    def test_it_ends(self, db: None) -> None:
        for number in range(5):
            make_event(minutes(number))
        pages = [len(page) for page in walk_audit(AuditFilter(kind="sign-ins"), page=2, most=4)]
        assert pages == [2, 2]


def test_no_large_table_is_scanned(filled: None) -> None:
    """All filters that choose another way to read, in one test, because filling the tables takes time."""
    cursor_text = read_audit(AuditFilter(), limit=20).cursor
    person, some_id = "n7@example.org", UUID(int=7)
    for asked in (
        AuditFilter(),
        AuditFilter(who=person),
        AuditFilter(what=person),
        AuditFilter(kind="rights"),
        AuditFilter(kind="terms.published"),
        AuditFilter(kind="other-events", since=dt.date(2026, 3, 1)),
        AuditFilter(tenant=some_id),
        AuditFilter(account=some_id),
        AuditFilter(who=person, account=some_id),
        AuditFilter(tenant=some_id, kind="sign-ins"),
    ):
        with CaptureQueriesContext(connection) as captured:
            read_audit(asked, limit=50)
            read_audit(asked, limit=50, cursor=cursor_text)
        plans = [explain(query["sql"]) for query in captured.captured_queries]
        assert sum(any(table in plan for table in FULL) for plan in plans) >= 2, asked
        for plan in plans:
            assert not [table for table in FULL if f"Seq Scan on {table} " in plan], (asked, plan)


def explain(sql: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {sql}")
        return "\n".join(line for (line,) in cursor.fetchall())


@pytest.fixture
def filled(world: factories.World) -> None:
    """Fill the large tables: 500 people, tenants and accounts with a few rows each."""
    make_event()
    make_read(now())
    make_query(now())
    who, tenant = "'n' || n %% 500 || '@example.org'", "lpad(to_hex(n %% 500), 32, '0')::uuid"
    at = "date_trunc('month', now()) + n * interval '1 second'"
    blank = "'', '', ''"
    rows = {
        "accounts_event (at, kind, actor, subject, tenant_id, account_id, reason, request_id, address)": (
            f"{at}, 'token.minted', {who}, {who}, {tenant}, {tenant}, {blank}"
        ),
        'accounts_revision (kind, tenant_id, account_id, seq, action, "user", changed_at, summary)': (
            f"'rules', {tenant}, {tenant}, n, 'update', {who}, {at}, '{{}}'"
        ),
        "logs_logread (at, tenant_id, email, key, request_id, client_address)": (
            f"{at}, {tenant}, {who}, {blank}"
        ),
        "logs_queryrun (at, tenant_id, email, statement, request_id, client_address, outcome)": (
            f"{at}, {tenant}, {who}, {blank}, 'ok'"
        ),
    }
    with connection.cursor() as cursor:
        for columns, values in rows.items():
            cursor.execute(f"INSERT INTO {columns} SELECT {values} FROM generate_series(1, %s) AS n", [ROWS])
        cursor.execute("ANALYZE accounts_event, accounts_revision, logs_logread, logs_queryrun")
