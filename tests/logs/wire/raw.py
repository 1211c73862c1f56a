"""A client of PostgreSQL's protocol that may say anything."""

from __future__ import annotations

import socket
import ssl
import struct
from typing import TYPE_CHECKING, Final, Self

from logs.wire.messages import SSL_REQUEST, Message, pack_cancel, pack_startup
from tests.gateway.faces.tls import HOST

if TYPE_CHECKING:
    from tests.logs.wire.scene import Scene

_SECONDS: Final = 20


class Raw:
    """A connection. ``signed_in`` makes one that has signed in."""

    def __init__(self, scene: Scene, *, tls: bool = True) -> None:
        self.socket: socket.socket = socket.create_connection(("127.0.0.1", scene.port), timeout=_SECONDS)
        self.key = b""
        if tls:
            self.socket.sendall(struct.pack("!ii", 8, SSL_REQUEST))
            assert self.socket.recv(1) == b"S"
            context = ssl.create_default_context(cafile=str(scene.authority))
            self.socket = context.wrap_socket(self.socket, server_hostname=HOST)

    @classmethod
    def signed_in(cls, scene: Scene) -> Self:
        made = cls(scene)
        made.socket.sendall(pack_startup({"user": "x", "database": scene.database}))
        assert made.read().body == struct.pack("!i", 3)
        made.send(Message(b"p", scene.password.encode() + b"\0"))
        for message in made.read_all():
            if message.kind == b"K":
                made.key = message.body
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, *messages: Message) -> None:
        self.socket.sendall(b"".join(message.pack() for message in messages))

    def read(self) -> Message:
        kind, length = struct.unpack("!ci", self._take(5))
        return Message(kind, self._take(length - 4))

    def read_all(self) -> list[Message]:
        """Read up to ReadyForQuery, or the end of the connection."""
        found = list[Message]()
        while not found or found[-1].kind != b"Z":
            try:
                found.append(self.read())
            except EOFError:
                break
        return found

    def read_for_ever(self) -> None:
        while True:
            self.read()

    def query(self, text: str) -> list[Message]:
        self.send(Message(b"Q", text.encode() + b"\0"))
        return self.read_all()

    def is_closed(self) -> bool:
        return self.socket.recv(1) == b""

    def _take(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data


def cancel(scene: Scene, key: bytes) -> None:
    """Send a CancelRequest, and wait until the server has closed the connection."""
    with Raw(scene, tls=False) as raw:
        raw.socket.sendall(pack_cancel(key))
        assert raw.is_closed()


def states(messages: list[Message]) -> list[str]:
    """Return the SQLSTATEs of the errors."""
    found = []
    for message in messages:
        if message.kind == b"E":
            fields = {field[:1]: field[1:].decode() for field in message.body.split(b"\0") if field}
            found.append(fields[b"C"])
    return found
