"""The address that the web server listens on."""

from __future__ import annotations

import errno
import socket
import sys
from dataclasses import dataclass


class AddressError(Exception):
    """The address cannot be used. The message says why and what to do."""


@dataclass(frozen=True)
class Address:
    """A host to bind to and a port."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The base URL for a client on this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)  # noqa: S104 - only compared
        return f"http://{host}:{self.port}"


def check_is_free(address: Address, *, cure: str = "PORT=8001") -> None:
    """Raise AddressError if a server could not listen on the address now. `cure` chooses another port."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address.host, address.port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise _in_use(address, cure) from None
            reason = (error.strerror or str(error)).lower()
            raise AddressError(
                f"Cannot listen on {address.host}, port {address.port}: {reason}."
                " Choose an address of this machine."
            ) from None


def hold(address: Address, *, cure: str) -> socket.socket:
    """Keep the address from other instances that call this, until the returned socket is closed.

    Its copies in child processes count too. Servers that listen with SO_REUSEPORT do not see each other. This
    takes a second address for them, which only one socket can have. Only Linux needs it.

    Raises:
        AddressError: another process uses the address, or the machine does not have it.
    """
    held = socket.socket(socket.AF_UNIX)
    try:
        if sys.platform == "linux":
            # Such a name, with a zero byte first, is no file, and is free again when its socket is closed.
            held.bind(f"\0tenantadmin {address.host} {address.port}")
        check_is_free(address, cure=cure)
    except OSError:
        held.close()
        raise _in_use(address, cure) from None
    except AddressError:
        held.close()
        raise
    return held


def _in_use(address: Address, cure: str) -> AddressError:
    return AddressError(
        f"Port {address.port} on {address.host} is in use. "
        f"Stop the process that uses it, or choose another port with {cure}."
    )
