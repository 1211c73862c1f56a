"""What the tests of this area share."""

from __future__ import annotations

import datetime as dt
import email
import email.policy
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from email.message import EmailMessage
from threading import Barrier
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from aiosmtpd.controller import Controller
from django.db import connection

from accounts.models import Fqdn, Tenant
from accounts.serializers.tenants import parse_config
from accounts.tenants.config import write_config
from tests import factories
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from accounts.models import User
    from accounts.tenants.config import ConfigState


Result = TypeVar("Result")


def signed_in(user: User) -> ApiClient:
    """Return a client that carries the token of a sign-in."""
    return ApiClient(factories.sign_in(user))


def configure(tenant_id: UUID, *, name: str = "W", **more: Any) -> ConfigState:
    """Write a tenant's configuration as a request does; ``more`` are members beside its name."""
    document = {"tenantName": name, **more}
    return write_config(tenant_id=tenant_id, document=document, parse=parse_config, actor="owner@example.org")


def at_once(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """Call all of ``calls`` at the same moment, each in a thread and connection of its own."""
    ready = Barrier(len(calls))

    def run(call: Callable[[], Result]) -> Result:
        ready.wait(timeout=30)
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def age(tenant: Tenant, days: float) -> None:
    """Let a tombstone and its names be ``days`` old."""
    delta = dt.timedelta(days=days)
    deleted_at = Tenant.objects.get(pk=tenant.pk).deleted_at
    assert deleted_at is not None
    Tenant.objects.filter(pk=tenant.pk).update(deleted_at=deleted_at - delta)
    Fqdn.objects.filter(tenant_id=tenant.pk).update(released_at=deleted_at - delta)


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
