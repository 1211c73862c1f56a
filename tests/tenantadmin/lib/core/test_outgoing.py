"""Requests to URLs that users gave: to no private address, without redirects, within a time limit."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tenantadmin.lib.core.outgoing import Answer, Exceptions, NotSent, check_url, parse_exceptions, post
from tenantadmin.lib.core.timestamps import now
from tests.receiver import HOST, Receiver, running_receiver

LOCAL = parse_exceptions(("127.0.0.0/8",))
NONE = Exceptions()


@pytest.fixture
def receiver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with running_receiver(tmp_path) as stub:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
        yield stub


@pytest.fixture
def resolve(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Let `HOST` resolve to these addresses, one for each call. Return the calls."""
    real = socket.getaddrinfo

    def install(*answers: list[str]) -> list[str]:
        calls: list[str] = []
        remaining = list(answers)

        def getaddrinfo(host: Any, port: Any, *arguments: Any, **options: Any) -> Any:
            if host != HOST:
                return real(host, port, *arguments, **options)
            calls.append(host)
            addresses = remaining.pop(0) if len(remaining) > 1 else remaining[0]
            return [entry for address in addresses for entry in real(address, port, type=socket.SOCK_STREAM)]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        return calls

    return install


def send(url: str, *, exceptions: Exceptions = LOCAL, seconds: float = 5.0) -> int:
    return ask(url, exceptions=exceptions, seconds=seconds).status


def ask(url: str, *, exceptions: Exceptions = LOCAL, seconds: float = 5.0) -> Answer:
    return post(url, body=b"{}", headers={"X-A": "b"}, seconds=seconds, exceptions=exceptions)


def test_the_status_of_the_answer_is_returned(receiver: Receiver) -> None:
    assert send(receiver.url) == 204
    ((headers, body),) = receiver.messages
    assert (headers["x-a"], headers["host"], body) == ("b", f"127.0.0.1:{receiver.port}", b"{}")
    receiver.status = 500
    assert send(receiver.url) == 500


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    receiver.status = 302
    assert send(receiver.url) == 302
    assert len(receiver.messages) == 1


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".example.org"])
def test_a_host_that_is_no_name_has_no_address(host: str) -> None:
    """Channels that were stored before such hosts were refused."""
    with pytest.raises(NotSent, match=r"^The host has no public address\.$"):
        send(f"https://{host}/")


def test_a_private_address_gets_no_connection(receiver: Receiver) -> None:
    with pytest.raises(NotSent, match=r"^The host has no public address\.$"):
        send(receiver.url, exceptions=NONE)
    assert receiver.messages == []


def test_the_address_that_is_checked_is_the_one_that_is_connected_to(
    receiver: Receiver, resolve: Callable[..., list[str]]
) -> None:
    """A name server that answers first with a public address and then with 127.0.0.1 gains nothing."""
    url = f"https://{HOST}:{receiver.port}/"
    calls = resolve(["127.0.0.1"])
    with pytest.raises(NotSent, match="no public address"):
        send(url, exceptions=NONE)
    assert len(calls) == 1
    # 192.0.2.0/24 has no host (RFC 5737). An exception lets it pass as the public one.
    calls = resolve(["192.0.2.1"], ["127.0.0.1"])
    with pytest.raises(NotSent, match=r"No answer|connection failed"):
        send(url, exceptions=parse_exceptions(("192.0.2.0/24",)), seconds=0.5)
    assert len(calls) == 1
    assert receiver.messages == []


@pytest.mark.parametrize("silent", ["127.0.0.2", "192.0.2.1"])
def test_each_address_is_tried_in_turn(
    receiver: Receiver, resolve: Callable[..., list[str]], silent: str
) -> None:
    """The first refuses the connection or is silent, the second is private, and the third is the host."""
    resolve([silent, "10.0.0.1", "127.0.0.1"])
    allowed = parse_exceptions(("127.0.0.0/8", "192.0.2.0/24"))
    assert send(f"https://{HOST}:{receiver.port}/", exceptions=allowed, seconds=4.0) == 204
    assert len(receiver.messages) == 1


def test_an_answer_may_take_the_whole_time_after_a_silent_address(
    receiver: Receiver, resolve: Callable[..., list[str]]
) -> None:
    receiver.respond = lambda handler: _answer_late(handler, receiver)
    resolve(["127.0.0.2", *(f"127.0.0.{number}" for number in range(3, 12)), "127.0.0.1"])
    assert send(f"https://{HOST}:{receiver.port}/", seconds=5.0) == 200


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("120", 120), ("0", 0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0), ("soon", None), ("-1", None), ("", None)],
)
def test_how_long_a_receiver_wants_to_rest(receiver: Receiver, header: str, seconds: float | None) -> None:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(429)
        handler.send_header("Retry-After", header)
        handler.end_headers()

    receiver.respond = respond
    assert ask(receiver.url) == Answer(429, seconds)


def test_a_receiver_may_rest_until_a_date(receiver: Receiver) -> None:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(503)
        handler.send_header("Retry-After", format_datetime(now() + timedelta(hours=1), usegmt=True))
        handler.end_headers()

    receiver.respond = respond
    answer = ask(receiver.url)
    assert answer.retry_after is not None
    assert 3_590 < answer.retry_after <= 3_600


def test_a_name_is_an_exception_wherever_it_resolves(
    receiver: Receiver, resolve: Callable[..., list[str]]
) -> None:
    resolve(["127.0.0.1"])
    assert send(f"https://{HOST}:{receiver.port}/", exceptions=parse_exceptions((HOST,))) == 204
    ((headers, _),) = receiver.messages
    assert headers["host"] == f"{HOST}:{receiver.port}"


def test_the_certificate_must_be_of_the_host(
    receiver: Receiver, resolve: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotSent, match="certificate is not valid"):
        send(f"https://localhost:{receiver.port}/", exceptions=parse_exceptions(("localhost",)))
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(NotSent, match="certificate is not valid"):
        send(receiver.url)
    assert receiver.messages == []


def _hang(handler: BaseHTTPRequestHandler, receiver: Receiver) -> None:
    receiver.over.wait(10)


def _drip_headers(handler: BaseHTTPRequestHandler, receiver: Receiver) -> None:
    """Send a byte of a header again and again, each within the timeout of a socket."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not receiver.over.wait(0.05):
        handler.wfile.write(b"a")


def _answer_late(handler: BaseHTTPRequestHandler, receiver: Receiver) -> None:
    receiver.over.wait(0.8)
    handler.send_response(200)
    handler.end_headers()


@pytest.mark.parametrize("behave", [_hang, _drip_headers, _answer_late])
def test_an_answer_that_comes_late_does_not_count(receiver: Receiver, behave: Callable[..., None]) -> None:
    receiver.respond = lambda handler: behave(handler, receiver)
    started = time.monotonic()
    with pytest.raises(NotSent, match=r"^No answer within 0\.4 seconds\.$"):
        send(receiver.url, seconds=0.4)
    assert time.monotonic() - started < 8


def test_a_body_is_not_read(receiver: Receiver) -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not receiver.over.wait(0.001):
            handler.wfile.write(b"a" * 65_536)

    receiver.respond = endless
    started = time.monotonic()
    assert send(receiver.url) == 200
    assert time.monotonic() - started < 8


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"a" * 70_000])
def test_an_answer_that_is_no_http(receiver: Receiver, answer: bytes) -> None:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(answer)

    receiver.respond = respond
    with pytest.raises(NotSent, match="connection failed, or the answer is not HTTP"):
        send(receiver.url)


def test_a_port_that_nobody_listens_on() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(NotSent, match="connection failed"):
            send(f"https://127.0.0.1:{unused.getsockname()[1]}/")


PRIVATE = (
    *("0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "192.168.1.1"),  # noqa: S104
    *("192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::ffff:10.0.0.1", "fc00::1", "fd12::1", "fe80::1", "ff02::1", "2001:db8::1"),
    # What carries an IPv4 address: NAT64, 6to4, Teredo.
    *("64:ff9b::a00:1", "64:ff9b:1::a00:1", "2002:a00:1::1", "2001:0:a00:1::1"),
)


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses(address: str) -> None:
    assert not NONE.allow("example.org", address)
    literal = f"[{address}]" if ":" in address else address
    with pytest.raises(ValueError, match="whose host is public"):
        check_url(f"https://{literal}/", exceptions=NONE)


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "2a00:1450::1"])
def test_public_addresses(address: str) -> None:
    assert NONE.allow("example.org", address)


@pytest.mark.parametrize(
    ("url", "stored"),
    [
        ("https://Hooks.Example.org/A?b=C", "https://hooks.example.org/A?b=C"),
        ("HTTPS://example.org", "https://example.org"),
        ("https://example.org:8443/a", "https://example.org:8443/a"),
        ("https://[2606:4700::1111]/", "https://[2606:4700::1111]/"),
        *((f"https://{host}/", f"https://{host}/") for host in (f"{'a' * 63}.b", f"{'a.' * 126}b")),
    ],
)
def test_urls(url: str, stored: str) -> None:
    assert check_url(url, exceptions=NONE) == stored


@pytest.mark.parametrize(
    "url",
    [
        *("http://example.org/", "ftp://example.org/", "example.org", "https:///a", "https://", ""),
        *("https://user@example.org/", "https://u:p@example.org/", "https://example.org/#a"),
        *("https://example.org:0/", "https://example.org:70000/", "https://exa mple.org/"),
        *("https://example.org/\n", "https://exämple.org/", "https://[::1", "https://a..b%2f/"),
        *("https://127.0.0.1/", "https://0x7f000001./", "https://" + "a" * 2_000),
        *("https://a..b/x", f"https://{'a' * 64}.example.org/", f"https://{'a.' * 126}bc/"),
    ],
)
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"^Give a URL"):
        check_url(url, exceptions=NONE)
