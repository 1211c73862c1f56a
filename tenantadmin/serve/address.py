"""The address that the web server listens on."""

from __future__ import annotations

import errno
import socket
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


def check_is_free(address: Address) -> None:
    """Raise AddressError if a server could not listen on the address now."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address.host, address.port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise AddressError(
                    f"Port {address.port} on {address.host} is in use. "
                    "Stop the process that uses it, or choose another port with PORT=8001."
                ) from None
            reason = (error.strerror or str(error)).lower()
            raise AddressError(
                f"Cannot listen on {address.host}, port {address.port}: {reason}."
                " Set HOST and PORT to an address of this machine."
            ) from None
