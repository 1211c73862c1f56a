"""A real SMTP server that keeps what it receives."""

from __future__ import annotations

import email
import email.policy
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from aiosmtpd.controller import Controller

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import EmailMessage


class Inbox:
    """The messages of an SMTP server; it refuses while ``refuses`` is set."""

    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []
        self.refuses = False
        self.port = 0

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        if self.refuses:
            return "554 Not today"
        self.messages.append(email.message_from_bytes(envelope.content, policy=email.policy.default))
        return "250 OK"

    def link(self) -> str:
        """The link of the newest message."""
        body = self.messages[-1].get_body(("plain",))
        assert body is not None
        match = re.search(r"https?://\S+[?&]t=\S+", body.get_content())
        assert match is not None
        return match.group()

    def token(self) -> str:
        """The token of the newest message's link."""
        return parse_qs(urlsplit(self.link()).query)["t"][0]


class _AnyPort(Controller):
    """Listens on a port that the system chooses."""

    def _trigger_server(self) -> None:
        server: Any = self.server
        self.port = server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]


@contextmanager
def running_inbox() -> Iterator[Inbox]:
    """Run an SMTP server on 127.0.0.1 until the block ends."""
    inbox = Inbox()
    controller = _AnyPort(inbox, hostname="127.0.0.1", port=0)
    controller.start()
    inbox.port = controller.port
    try:
        yield inbox
    finally:
        controller.stop()
