"""Send a request to a URL that a user gave: by https alone, and to no private address.

The address that is checked is the address that is connected to, so a name that resolves to another address
in the next moment gains nothing. A connection follows no redirect and uses no proxy.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cache
from http.client import HTTPException
from time import monotonic
from typing import Final, TypeAlias
from urllib.parse import SplitResult, urlsplit

from urllib3.connection import HTTPSConnection
from urllib3.exceptions import HTTPError
from urllib3.util.connection import create_connection

from tenantadmin.lib.core.timestamps import now

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

MAX_URL: Final = 2_000
#: The addresses of the internet. Others carry IPv4 addresses (NAT64), which may be private.
_GLOBAL_V6: Final = ipaddress.IPv6Network("2000::/3")


class NotSent(Exception):
    """The receiver did not accept it. The text says why, without naming addresses.

    Attributes:
        has_answered: it refused it; otherwise there was no answer.
        retry_after: after how many seconds it wants the next attempt, if it said so.
    """

    def __init__(self, text: str, *, has_answered: bool = False, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.has_answered = has_answered
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Answer:
    """The status of an answer, and after how many seconds the receiver wants the next request, if it says."""

    status: int
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Exceptions:
    """Hosts and networks that may be private."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[_Network, ...] = ()

    def allow(self, host: str, address: str) -> bool:
        """Return True if a request to ``host`` may go to this address, to which it resolved."""
        ip = ipaddress.ip_address(address.partition("%")[0])
        return host in self.hosts or any(ip in network for network in self.networks) or _is_public(ip)


def _is_public(ip: _Address) -> bool:
    if isinstance(ip, ipaddress.IPv6Address) and (ip not in _GLOBAL_V6 or ip.sixtofour is not None):
        return False
    return ip.is_global and not ip.is_multicast


@cache
def parse_exceptions(entries: tuple[str, ...]) -> Exceptions:
    """Return the exceptions of a setting: host names, and addresses or networks."""
    hosts, networks = set(), []
    for entry in entries:
        try:
            networks.append(ipaddress.ip_network(entry))
        except ValueError:
            hosts.add(entry)
    return Exceptions(frozenset(hosts), tuple(networks))


#: A name that can be looked up: labels of 1 to 63 characters, at most 253 in all.
_HOST: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?")


def _is_host(text: str) -> bool:
    labels = text.split(".")
    return _HOST.fullmatch(text) is not None and all(1 <= len(label) <= 63 for label in labels)


def check_url(url: str, *, exceptions: Exceptions) -> str:
    """Return a URL whose host is in lower case.

    Raises:
        ValueError: it is not https, or its host is a private address. The message says what to give.
    """
    if len(url) > MAX_URL or not re.fullmatch(r"[!-~]+", url):
        raise ValueError(f"Give a URL of at most {MAX_URL} characters, without spaces, in ASCII.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("Give a URL like https://example.org/hook.") from None
    if parts.scheme.lower() != "https" or not host or port == 0:
        raise ValueError("Give a URL that begins with https:// and a host.")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise ValueError("Give a URL without a user, a password and a fragment.")
    try:
        is_allowed = exceptions.allow(host, host)
    except ValueError:
        if not _is_host(host):
            raise ValueError(
                "Give a URL whose host is a name or an address. Between the dots of a name are 1 to 63 "
                "characters, and it has at most 253."
            ) from None
        is_allowed = True
    if not is_allowed:
        raise ValueError("Give a URL whose host is public.")
    literal = f"[{host}]" if ":" in host else host
    netloc = literal if port is None else f"{literal}:{port}"
    return SplitResult("https", netloc, parts.path, parts.query, "").geturl()


class _Connection(HTTPSConnection):
    """Connects to the first address that answers and that the exceptions allow.

    `abort` ends it from another thread.
    """

    exceptions: Exceptions
    _connected: socket.socket | None = None

    def _new_conn(self) -> socket.socket:
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        # Some texts are no names, such as one with an empty label.
        except (OSError, UnicodeError):
            found = []
        addresses = dict.fromkeys(str(entry[4][0]) for entry in found)
        allowed = [address for address in addresses if self.exceptions.allow(self.host, address)]
        if not allowed:
            raise NotSent("The host has no public address.")
        connected = self._connect_to_one(allowed)
        # TLS takes the socket away, so the abort has one of its own.
        self._connected = connected.dup()
        return connected

    def _connect_to_one(self, addresses: Sequence[str]) -> socket.socket:
        """Connect to the first address that answers. A silent one leaves time for those after it."""
        ends_at = monotonic() + float(self.timeout or 0)
        for left in range(len(addresses), 0, -1):
            seconds = max((ends_at - monotonic()) / left, 0.001)
            try:
                connected = create_connection(
                    (addresses[-left], self.port), seconds, socket_options=self.socket_options
                )
            except OSError:
                if left == 1:
                    raise
            else:
                connected.settimeout(self.timeout)
                return connected
        raise AssertionError("The last address connects or raises.")

    def abort(self) -> None:
        if self._connected is not None:
            with suppress(OSError):
                self._connected.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        super().close()
        if self._connected is not None:
            self._connected.close()


def post(
    url: str, *, body: bytes, headers: Mapping[str, str], seconds: float, exceptions: Exceptions
) -> Answer:
    """Send a POST request and return the answer, whose body is not read.

    Raises:
        NotSent: no address is allowed, no connection, or no answer within ``seconds``.
    """
    parts = urlsplit(url)
    connection = _Connection(parts.hostname or "", parts.port or 443, timeout=seconds)
    connection.exceptions = exceptions
    is_over = threading.Event()

    def end() -> None:
        is_over.set()
        connection.abort()

    # A timeout of the socket begins anew with each byte.
    deadline = threading.Timer(seconds, end)
    deadline.start()
    target = SplitResult("", "", parts.path or "/", parts.query, "").geturl()
    try:
        connection.request("POST", target, body=body, headers=headers, preload_content=False)
        response = connection.getresponse()
        answer = Answer(response.status, _read_wait(response.headers.get("Retry-After", "")))
    except (HTTPError, HTTPException, OSError) as error:
        if isinstance(error, TimeoutError) or is_over.is_set():
            raise NotSent(f"No answer within {seconds:g} seconds.") from error
        if isinstance(error, ssl.SSLError):
            raise NotSent("The certificate is not valid, or the host does not speak TLS.") from error
        raise NotSent("The connection failed, or the answer is not HTTP.") from error
    else:
        # Headers that the end of the connection cut look complete.
        if is_over.is_set():
            raise NotSent(f"No answer within {seconds:g} seconds.")
        return answer
    finally:
        deadline.cancel()
        connection.close()


def _read_wait(retry_after: str) -> float | None:
    """Return the seconds of a ``Retry-After`` (RFC 9110 10.2.3): a number, or the time until a date."""
    if re.fullmatch(r"[0-9]{1,9}", retry_after):
        return float(retry_after)
    try:
        return max((parsedate_to_datetime(retry_after) - now()).total_seconds(), 0.0)
    except (TypeError, ValueError):
        return None
