"""``/tos`` and ``/users/{email}/tos``. Contract: Terms of service."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import jwt
import pytest
from django.core.cache import cache

from accounts.access.credentials import create_refresh_token
from accounts.access.rights import authenticate_token
from accounts.models import RefreshToken
from accounts.models.events import Event
from accounts.readers.rule import Author
from accounts.users import delete_user
from tenantadmin.lib.objectstore import LocalStore
from tests import factories
from tests.accounts.support import at_once, signed_in
from tests.conftest import ApiClient
from tests.objects import save_object
from tests.racing import PATIENCE, in_thread, result_unless_blocked, uncommitted, wait_until_blocked
from tosapp.acknowledgements import acknowledge
from tosapp.models import Acknowledgement
from tosapp.publishing import ActiveTerms, active_terms, announce, announced_hash, publish, terms_of

pytestmark = pytest.mark.django_db
TEXT = "# Terms \r\n\r\nBe kind.\r\n"
NORMAL = "# Terms\n\nBe kind."
OWN = "/users/member@example.org/tos"


def md5(markdown: str) -> str:
    terms = terms_of(markdown)
    assert terms is not None
    return terms.hash


@pytest.fixture(autouse=True)
def _no_announcement() -> None:
    """No announcement of an earlier test makes a process read the terms again."""
    cache.clear()


@pytest.fixture
def publisher(world: factories.World) -> ApiClient:
    return ApiClient(factories.pat_token(world.platform_admin, "tos:publish", tenants=["*"]))


def claims(token: str) -> dict[str, Any]:
    decoded: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return decoded


@pytest.fixture
def other_worker(object_store: Path) -> ActiveTerms:
    """What another process knows, which asked the store just before."""
    other = ActiveTerms(LocalStore(object_store), refresh_seconds=3600, announced=announced_hash)
    other.get()
    return other


class TestPublish:
    def test_then_another_process_knows_it_at_once(
        self, publisher: ApiClient, other_worker: ActiveTerms
    ) -> None:
        for text in ("# One", "# Two", "# One"):
            publisher.post("/tos", {"markdown": text})
            assert other_worker.get() == terms_of(text)

    def test_then_this_process_reads_terms_of_another(
        self, publisher: ApiClient, anonymous: ApiClient, object_store: Path
    ) -> None:
        publisher.post("/tos", {"markdown": "# One"})
        save_object(LocalStore(object_store), "tos/current.md", b"# Two")
        assert anonymous.get("/tos").content.decode() == "# One"
        announce(md5("# Two"))
        assert anonymous.get("/tos").content.decode() == "# Two"

    def test_it_succeeds_without_redis_and_others_adopt_it_later(
        self, publisher: ApiClient, anonymous: ApiClient, other_worker: ActiveTerms, settings: Any
    ) -> None:
        assert anonymous.get("/tos").status_code == 503
        [with_redis] = settings.CACHES.values()
        settings.CACHES = {"default": {**with_redis, "LOCATION": "redis://127.0.0.1:1/0"}}
        assert publisher.post("/tos", {"markdown": TEXT}).status_code == 201
        assert anonymous.get("/tos").content.decode() == NORMAL
        assert other_worker.get() is None
        assert other_worker.get(fresh=True) == terms_of(TEXT)

    def test_then_everyone_reads_it(self, publisher: ApiClient, anonymous: ApiClient) -> None:
        answer = publisher.post("/tos", {"markdown": TEXT})
        assert answer.status_code == 201
        body = answer.json()
        assert {**body, "publishedAt": "…"} == {
            "hash": md5(TEXT),
            "published": True,
            "publishedAt": "…",
            "publishedBy": "admin@example.org",
        }
        shown = anonymous.get("/tos", Authorization="Bearer nonsense")
        assert (shown.status_code, shown.content.decode()) == (200, NORMAL)
        assert shown["Content-Type"] == "text/markdown; charset=utf-8"
        assert shown["X-Tos-Hash"] == md5(TEXT)

    def test_the_active_document_again_writes_nothing(self, publisher: ApiClient, object_store: Path) -> None:
        first = publisher.post("/tos", {"markdown": TEXT}).json()
        before = sorted(LocalStore(object_store).list("tos/"), key=lambda entry: entry.key)
        answer = publisher.post("/tos", {"markdown": NORMAL})
        assert (answer.status_code, answer.json()) == (200, {**first, "published": False})
        assert sorted(LocalStore(object_store).list("tos/"), key=lambda entry: entry.key) == before

    def test_a_publication_is_an_event(self, publisher: ApiClient) -> None:
        for text in ("# One", "# One", "# Two"):
            publisher.post("/tos", {"markdown": text})
        events = Event.objects.filter(kind="terms.published").order_by("pk")
        assert list(events.values_list("actor", "subject", "before", "after")) == [
            ("admin@example.org", md5("# One"), None, None),
            ("admin@example.org", md5("# Two"), {"hash": md5("# One")}, None),
        ]

    def test_superseded_documents_stay_retrievable(
        self, publisher: ApiClient, world: factories.World
    ) -> None:
        publisher.post("/tos", {"markdown": "# One"})
        publisher.post("/tos", {"markdown": "# Two"})
        member = signed_in(world.member)
        for text in ("# One", "# Two"):
            answer = member.get(f"/tos/{md5(text)}")
            assert (answer.status_code, answer.content.decode()) == (200, text)
            assert answer["X-Tos-Hash"] == md5(text)
        assert publisher.post("/tos", {"markdown": "# One"}).status_code == 201
        assert member.get("/tos").content.decode() == "# One"

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"markdown": ""},
            {"markdown": " \r\n\t"},
            {"markdown": 7},
            {"markdown": None},
            [],
            {"text": "x"},
        ],
    )
    def test_without_a_document_it_is_a_400(
        self, publisher: ApiClient, anonymous: ApiClient, body: object
    ) -> None:
        answer = publisher.post("/tos", body)
        assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed")
        assert anonymous.get("/tos").status_code == 503

    def test_the_refusal_of_an_empty_document_names_the_place(self, publisher: ApiClient) -> None:
        [detail] = publisher.post("/tos", {"markdown": " \r\n\t"}).json()["details"]
        assert detail == {
            "path": "/markdown",
            "code": "empty",
            "message": "The document is empty after normalization. Send the whole text.",
        }

    def test_a_crash_before_the_last_write_is_survived(
        self, publisher: ApiClient, anonymous: ApiClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        publisher.post("/tos", {"markdown": "# One"})
        save = LocalStore.save

        def fail_at_current(self: LocalStore, name: str, content: Any) -> str:
            if name == "tos/current.md":
                raise OSError("the disk is gone")
            return save(self, name, content)

        with monkeypatch.context() as broken:
            broken.setattr(LocalStore, "save", fail_at_current)
            assert publisher.post("/tos", {"markdown": "# Two"}).status_code == 500
        assert anonymous.get("/tos").content.decode() == "# One"
        assert publisher.post("/tos", {"markdown": "# Two"}).status_code == 201
        assert anonymous.get("/tos").content.decode() == "# Two"


class TestRead:
    def test_before_the_first_publication(self, anonymous: ApiClient, world: factories.World) -> None:
        answer = anonymous.get("/tos")
        assert (answer.status_code, answer.json()["error"]) == (503, "tos_not_loaded")
        assert signed_in(world.member).get(OWN).json() == {
            "email": "member@example.org",
            "activeHash": None,
            "upToDate": True,
            "acknowledgements": [],
        }

    @pytest.mark.parametrize(
        ("name", "status"),
        [
            ("0" * 32, 404),
            ("0" * 31, 400),
            ("A" * 32, 400),
            ("..%2Fcurrent", 404),
            ("x", 400),
            ("0" * 33, 400),
        ],
    )
    def test_an_unknown_or_malformed_hash(self, world: factories.World, name: str, status: int) -> None:
        assert signed_in(world.member).get(f"/tos/{name}").status_code == status


class TestAcknowledge:
    def test_records_the_shown_text(self, publisher: ApiClient, world: factories.World) -> None:
        publisher.post("/tos", {"markdown": "# One"})
        member = signed_in(world.member)
        assert member.get(OWN).json()["upToDate"] is False
        answer = member.post(OWN, {"markdown": "\n# One \n"})
        assert (answer.status_code, answer.content) == (204, b"")
        publisher.post("/tos", {"markdown": "# Two"})
        signed_in(world.member).post(OWN, {"markdown": "# Two"})
        for _ in range(2):
            assert member.post(OWN, {"markdown": "# Two"}).status_code == 204
        body = signed_in(world.member).get(OWN).json()
        assert (body["email"], body["activeHash"], body["upToDate"]) == (
            "member@example.org",
            md5("# Two"),
            True,
        )
        assert [entry["hash"] for entry in body["acknowledgements"]] == [md5("# Two"), md5("# One")]
        world.member.refresh_from_db()
        assert world.member.tos == md5("# Two")

    def test_is_an_event(self, publisher: ApiClient, world: factories.World) -> None:
        publisher.post("/tos", {"markdown": "# One"})
        for _ in range(2):
            assert signed_in(world.member).post(OWN, {"markdown": "# One"}).status_code == 204
        event = Event.objects.get(kind="terms.acknowledged")
        assert (event.actor, event.subject) == ("member@example.org", "member@example.org")
        assert (event.before, event.after) == (None, {"hash": md5("# One")})

    def test_another_text_is_a_409_with_the_current_hash(
        self, publisher: ApiClient, world: factories.World
    ) -> None:
        publisher.post("/tos", {"markdown": "# One"})
        answer = signed_in(world.member).post(OWN, {"markdown": "# Two"})
        assert answer.status_code == 409
        assert answer.json()["error"] == "tos_hash_mismatch"
        assert answer.json()["currentHash"] == md5("# One")
        assert not Acknowledgement.objects.exists()

    def test_terms_just_published_by_another_process_may_be_acknowledged(
        self, publisher: ApiClient, world: factories.World, object_store: Path
    ) -> None:
        publisher.post("/tos", {"markdown": "# One"})
        save_object(LocalStore(object_store), "tos/current.md", b"# Two")
        assert signed_in(world.member).post(OWN, {"markdown": "# Two"}).status_code == 204

    @pytest.mark.parametrize("body", [{"markdown": ""}, {"markdown": " \n"}, {"markdown": ["x"]}, {}, "x"])
    def test_an_empty_or_non_string_body_is_a_400(
        self, publisher: ApiClient, world: factories.World, body: object
    ) -> None:
        publisher.post("/tos", {"markdown": "# One"})
        assert signed_in(world.member).post(OWN, body).status_code == 400

    def test_before_the_first_publication_it_is_a_503(self, world: factories.World) -> None:
        answer = signed_in(world.member).post(OWN, {"markdown": "# One"})
        assert (answer.status_code, answer.json()["error"]) == (503, "tos_not_loaded")

    def test_a_record_that_goes_in_between_is_a_500(
        self, publisher: ApiClient, world: factories.World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        publisher.post("/tos", {"markdown": "# One"})
        member = signed_in(world.member)
        current = active_terms()
        get = current.get

        def gone(*, fresh: bool = False) -> Any:
            delete_user(world.member.email, author=Author("tests"))
            return get(fresh=fresh)

        monkeypatch.setattr(current, "get", gone)
        answer = member.post(OWN, {"markdown": "# One"})
        assert (answer.status_code, answer.json()["error"]) == (500, "internal_error")
        assert answer.json()["message"] == "This user has been deleted."


class TestBridge:
    def test_a_stale_acknowledgement_narrows_a_token_until_it_is_refreshed(
        self, publisher: ApiClient, world: factories.World, anonymous: ApiClient
    ) -> None:
        _, refresh = create_refresh_token(user=world.member)
        grant = {"grant_type": "refresh_token", "refresh_token": refresh}

        def refreshed() -> str:
            token: str = anonymous.post("/oauth/token", grant).json()["access_token"]
            return token

        assert "tos_required" not in claims(refreshed())
        publisher.post("/tos", {"markdown": "# One"})
        token = refreshed()
        assert claims(token)["tos_required"] is True
        bridge = ApiClient(token)
        for path in (OWN, f"/tos/{md5('# One')}", "/tos", "/"):
            assert bridge.get(path).status_code == 200, path
        for path in ("/users/member@example.org", "/users", "/users/owner@example.org/tos"):
            answer = bridge.get(path)
            expected = "forbidden" if path.endswith("/tos") else "tos_required"
            assert (answer.status_code, answer.json()["error"]) == (403, expected), path
        assert bridge.post(OWN, {"markdown": "# One"}).status_code == 204
        assert bridge.get("/users/member@example.org").json()["error"] == "tos_required"
        token = refreshed()
        assert "tos_required" not in claims(token)
        assert ApiClient(token).get("/users/member@example.org").json()["tos"] == md5("# One")
        publisher.post("/tos", {"markdown": "# Two"})
        assert claims(refreshed())["tos_required"] is True

    def test_a_personal_access_token_never_carries_the_claim(
        self, publisher: ApiClient, world: factories.World
    ) -> None:
        publisher.post("/tos", {"markdown": "# One"})
        token = factories.pat_token(world.member, "config:read", tenants=[str(world.tenant.pk)])
        assert "tos_required" not in claims(token)


@pytest.mark.django_db(transaction=True)
def test_two_publications_of_one_document_at_once_publish_it_once(object_store: Path) -> None:
    admin = factories.make_user("admin@example.org", role="admin")
    client = ApiClient(factories.pat_token(admin, "tos:publish", tenants=["*"]))
    for number in range(3):
        answers = at_once([partial(client.post, "/tos", {"markdown": f"# {number}"})] * 4)
        assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 201]
    assert len(list(LocalStore(object_store).list("tos/audit/"))) == 3
    shutil.rmtree(object_store)


@pytest.mark.django_db(transaction=True)
def test_an_acknowledgement_that_is_sent_twice_at_once_is_recorded_once(world: factories.World) -> None:
    publish("# One", actor="admin@example.org")
    own = partial(acknowledge, authenticate_token(factories.sign_in(world.member)), markdown="# One")
    with uncommitted(own) as first:
        second = in_thread(own)
        wait_until_blocked(second)
        first.finish(commit=True)
    second.result(PATIENCE)
    assert Acknowledgement.objects.get().hash == md5("# One")


@pytest.mark.django_db(transaction=True)
def test_a_user_can_sign_in_while_acknowledging(world: factories.World) -> None:
    publish("# One", actor="admin@example.org")
    principal = authenticate_token(factories.sign_in(world.member))
    with uncommitted(partial(acknowledge, principal, markdown="# One")):
        row, _ = result_unless_blocked(in_thread(partial(create_refresh_token, user=world.member)))
    assert RefreshToken.objects.filter(pk=row.pk).exists()
