"""Information about a request that the web server passes to Django beyond WSGI."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


#: Keys of the WSGI environment: the request's `Disconnection`, and the `ApiError` to answer if the body did
#: not arrive.
DISCONNECTION_KEY: Final = "tenantadmin.disconnection"
REFUSAL_KEY: Final = "tenantadmin.refusal"


class Disconnection:
    """Tells whether the caller of one request has closed the connection.

    Args:
        watch: begins to watch the connection. Most requests end before anything asks.
    """

    def __init__(self, watch: Callable[[], object] = lambda: None) -> None:
        self._watch: Callable[[], object] | None = watch
        self._lock = threading.Lock()
        self._happened = False
        self._callback: Callable[[], None] | None = None

    def happened(self) -> bool:
        self._begin()
        return self._happened

    def _begin(self) -> None:
        watch, self._watch = self._watch, None
        if watch:
            watch()

    def forget(self) -> None:
        """Forget how to watch. The connection closes only when nothing refers to it."""
        self._watch = None

    def set(self) -> None:
        """Record that the caller has disconnected, and call the function of `calling`."""
        with self._lock:
            self._happened = True
            if self._callback:
                self._callback()

    @contextmanager
    def calling(self, function: Callable[[], None]) -> Iterator[None]:
        """Call ``function`` if the caller disconnects during the block, or did so before.

        Any thread may call it, and it must return at once. It is not called after the block.
        """
        self._begin()
        with self._lock:
            self._callback = function
            if self._happened:
                function()
        try:
            yield
        finally:
            with self._lock:
                self._callback = None


def disconnection_of(environ: Mapping[str, Any]) -> Disconnection:
    """Return the `Disconnection` of a request. If the server does not watch, it never happens."""
    disconnection = environ.get(DISCONNECTION_KEY)
    return disconnection if isinstance(disconnection, Disconnection) else Disconnection()
