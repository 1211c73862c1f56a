"""Tests of what all endpoints share: error body, request id, strict JSON, body limit."""

from __future__ import annotations

import io
import json
import logging
import re
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.core.handlers.wsgi import WSGIHandler
from django.test import RequestFactory

if TYPE_CHECKING:
    from tests.conftest import ApiClient

LIMIT = 1_048_576
#: Django checks the database connection in every request, even if the request does not use it.
pytestmark = pytest.mark.django_db


def call_wsgi(path: str, body: bytes, **environ: Any) -> tuple[int, dict[str, str], Any]:
    """Call the application as a WSGI server does. Return status, headers and the JSON body."""
    started: dict[str, Any] = {}

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        started.update(status=int(status[:3]), headers=dict(headers))

    base = RequestFactory().post(path, content_type="application/json").environ
    stream = io.BytesIO(body)
    response = WSGIHandler()(
        {**base, "wsgi.input": stream, "CONTENT_LENGTH": str(len(body)), **environ}, start_response
    )
    text = b"".join(response)
    response.close()
    return started["status"], started["headers"], json.loads(text) if text else None


class TestErrorBody:
    def test_an_unknown_path_is_a_json_404_with_a_request_id(self, anonymous: ApiClient) -> None:
        answer = anonymous.get("/nowhere")
        assert answer.status_code == 404
        assert answer["Content-Type"] == "application/json"
        body = answer.json()
        assert re.fullmatch(r"[0-9a-f]{32}", body["requestId"])
        assert answer["X-Request-Id"] == body["requestId"]
        assert body == {
            "error": "not_found",
            "message": "There is nothing at this address.",
            "requestId": body["requestId"],
        }

    def test_a_wrong_method_is_a_json_405_that_names_the_right_ones(self, anonymous: ApiClient) -> None:
        answer = anonymous.request("DELETE", "/oauth/token")
        assert answer.status_code == 405
        assert answer.json()["error"] == "method_not_allowed"
        assert answer["Allow"] == "POST"

    @pytest.mark.parametrize("identifier", ["abc", "a.b_c-D9", "x" * 128])
    def test_the_callers_request_id_is_kept(self, anonymous: ApiClient, identifier: str) -> None:
        answer = anonymous.get("/nowhere", **{"X-Request-Id": identifier})
        assert (answer["X-Request-Id"], answer.json()["requestId"]) == (identifier, identifier)

    @pytest.mark.parametrize("identifier", ["", "x" * 129, "a b", "ä", "a\tb", "a/b"])
    def test_an_invalid_request_id_is_replaced(self, anonymous: ApiClient, identifier: str) -> None:
        answer = anonymous.get("/nowhere", **{"X-Request-Id": identifier})
        assert re.fullmatch(r"[0-9a-f]{32}", answer["X-Request-Id"])

    def test_a_request_without_credentials_is_a_401_with_a_challenge(self, anonymous: ApiClient) -> None:
        answer = anonymous.get("/config/tenants")
        assert answer.status_code == 401
        assert answer.json()["error"] == "unauthorized"
        assert answer["WWW-Authenticate"] == "Bearer"

    @pytest.mark.parametrize(
        ("header", "message"),
        [
            ("Basic eDp5", "The Authorization header is not 'Bearer <token>'."),
            ("Bearer", "The Authorization header is not 'Bearer <token>'."),
            ("Bearer a.b.c", "The access token is not valid."),
            (
                "Bearer tas_pat_x",
                (
                    "A personal access token is not a bearer token. Exchange it first: POST /oauth/token "
                    "with grant_type=pat_exchange."
                ),
            ),
        ],
    )
    def test_an_invalid_credential_is_a_401_with_the_reason(
        self, anonymous: ApiClient, header: str, message: str
    ) -> None:
        answer = anonymous.get("/config/tenants", Authorization=header)
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_token")
        assert answer.json()["message"] == message

    def test_an_unexpected_exception_is_a_500_without_its_message(
        self, anonymous: ApiClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail() -> None:
            raise RuntimeError("the secret is hunter2")

        monkeypatch.setattr("accounts.api.oauth.current_keys", fail)
        answer = anonymous.get("/.well-known/jwks.json")
        assert (answer.status_code, answer.json()["error"]) == (500, "internal_error")
        assert "hunter2" not in answer.content.decode()
        # The exception is logged once, with its traceback.
        assert [
            (record.name, bool(record.exc_info)) for record in caplog.records if record.levelname == "ERROR"
        ] == [("tenantadmin.lib.http.handler", True)]

    def test_every_log_line_goes_through_the_handler_that_adds_the_id(self) -> None:
        ids = "tenantadmin.lib.core.request_context.RequestIdFilter"
        assert logging.getLogger("django").handlers == []
        configured: Any = settings.LOGGING
        assert "request_id" in configured["handlers"]["stderr"]["filters"]
        assert configured["filters"]["request_id"]["()"] == ids


class TestQuery:
    @pytest.mark.parametrize("path", ["/tos", "/auth/login", "/auth/magic-link/verify"])
    def test_too_many_parameters_are_a_400(
        self, anonymous: ApiClient, path: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        answer = anonymous.get(f"{path}?{'&'.join(['a=1'] * 1001)}")
        assert (answer.status_code, answer.json()["error"]) == (400, "bad_request")
        assert answer.json()["message"] == ("The request has more than 1000 query parameters or form fields.")
        assert not [record for record in caplog.records if record.levelname == "ERROR"]

    def test_a_suspicious_operation_is_a_400_without_its_message(
        self, anonymous: ApiClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse() -> None:
            raise SuspiciousOperation("the secret is hunter2")

        monkeypatch.setattr("accounts.api.oauth.current_keys", refuse)
        answer = anonymous.get("/.well-known/jwks.json")
        assert (answer.status_code, answer.json()["message"]) == (400, "The request is malformed.")


class TestStrictJson:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (b" ", "The body is not valid JSON. Line 1: A value is missing."),
            (b'{"a": 1\n,}', "The body is not valid JSON. Line 2: The comma before } is one too many."),
            (b"[" + b"a" * 400 + b"]", f"The body is not valid JSON. Line 1: {'a' * 199}…"),
            (
                b"[" + b"\n" * 100_000 + b"1 2]",
                "The body is not valid JSON. Something is wrong in line 100001, column 3.",
            ),
            (b'{"a": 1, "a": 2}', 'The key "a" is given more than once in one object.'),
            (b'{"a": NaN}', "NaN is not a JSON number."),
            (b'{"a": -Infinity}', "-Infinity is not a JSON number."),
            (b'{"a": 1e999}', "The number 1e999 is out of range."),
            (b"1" * 5000, "The body has a number with too many digits."),
            (b'{"a": "\\u0000"}', "A text has a NUL character."),
            (b'{"a": ["\\ud800"]}', "A text has half of a surrogate pair."),
            (b"\xff", "The body is not UTF-8 (byte 0)."),
            (b"[" * 65 + b"]" * 65, "The body is nested deeper than 64 levels."),
            (b"[" * 400_000, "The body is nested deeper than 64 levels."),
        ],
    )
    def test_an_ambiguous_or_invalid_body_is_refused(
        self, anonymous: ApiClient, text: bytes, message: str
    ) -> None:
        answer = anonymous.post("/oauth/token", text)
        assert answer.status_code == 400
        assert answer.json()["message"].startswith(message)

    def test_brackets_in_texts_do_not_count_as_nesting(self, anonymous: ApiClient) -> None:
        answer = anonymous.post("/oauth/token", {"grant_type": "[" * 1000 + '"\\'})
        assert answer.json()["error"] == "unsupported_grant_type"

    def test_another_content_type_is_refused(self, anonymous: ApiClient) -> None:
        answer = anonymous.request("POST", "/oauth/token", b"{}", headers={"Content-Type": "text/plain"})
        assert answer.status_code == 400
        assert answer.json()["message"] == "Send the body as 'Content-Type: application/json'."


class TestBodyLimit:
    def test_a_body_of_exactly_the_limit_is_read(self) -> None:
        status, _, body = call_wsgi("/oauth/token", b" " * (LIMIT - 2) + b"{}")
        assert (status, body["error"]) == (400, "invalid_request")

    @pytest.mark.parametrize("path", ["/oauth/token", "/config/tenants", "/nowhere", "/admin/"])
    def test_a_declared_length_over_the_limit_is_a_413_before_the_body_is_read(self, path: str) -> None:
        class Unreadable(io.BytesIO):
            def read(self, size: int | None = -1, /) -> bytes:
                raise AssertionError("the body was read")

        status, headers, body = call_wsgi(
            path, b"", CONTENT_LENGTH=str(LIMIT + 1), **{"wsgi.input": Unreadable()}
        )
        assert (status, body["error"]) == (413, "payload_too_large")
        assert headers["X-Request-Id"] == body["requestId"]

    def test_a_chunked_body_is_counted_while_it_is_read(self) -> None:
        stream = io.BytesIO(b" " * (3 * LIMIT))
        status, _, body = call_wsgi(
            "/nowhere", b"", CONTENT_LENGTH="", **{"wsgi.input": stream, "wsgi.input_terminated": True}
        )
        assert (status, body["error"]) == (413, "payload_too_large")
        assert stream.tell() == LIMIT + 1

    def test_a_chunked_body_within_the_limit_is_read_whole(self) -> None:
        class SlowStream(io.BytesIO):
            """A stream that returns few bytes per call, like a socket."""

            def read(self, size: int | None = -1, /) -> bytes:
                return super().read(min(7, size or 0))

        status, _, body = call_wsgi(
            "/oauth/token",
            b"",
            CONTENT_LENGTH="",
            **{
                "wsgi.input": SlowStream(b'{"grant_type":"password"}'),
                "wsgi.input_terminated": True,
            },
        )
        assert (status, body["error"]) == (400, "unsupported_grant_type")

    def test_bytes_after_the_declared_length_are_not_read(self) -> None:
        text = b'{"grant_type":"password"}'
        status, _, body = call_wsgi("/oauth/token", text + b" " * 3 * LIMIT, CONTENT_LENGTH=str(len(text)))
        assert (status, body["error"]) == (400, "unsupported_grant_type")

    def test_a_length_that_is_not_a_number_is_a_400(self) -> None:
        status, _, body = call_wsgi("/oauth/token", b"{}", CONTENT_LENGTH="+2")
        assert (status, body["error"]) == (400, "bad_request")
