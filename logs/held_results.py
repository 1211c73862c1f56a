"""The memory that results of queries take in this process until their readers have them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from tenantadmin.lib.core.errors import RateLimited, ServiceBusy
from tenantadmin.lib.core.serving import UnreadBytes

if TYPE_CHECKING:
    from logs.sql.protocol import QueryResult

OF_CALLER: Final = 160 << 20
_HELD: Final = UnreadBytes(per_caller=OF_CALLER, total=320 << 20)


class NoRoom(ServiceBusy):
    """The results of all callers take too much memory for another one."""


def require_room(size: int, *, caller: str) -> None:
    """Refuse a caller whose results take too much memory for ``size`` bytes more.

    Raises:
        RateLimited: until the caller has read some.
    """
    if _HELD.of(caller) + size > OF_CALLER:
        raise RateLimited("Read the answers to your earlier queries first.", retry_after=1)


def hold(result: QueryResult, *, caller: str, until: ExitStack) -> None:
    """Count the memory of a result until ``until`` ends.

    Raises:
        RateLimited, NoRoom: results of the caller, or of all callers, take too much memory already.
    """
    require_room(result.nbytes, caller=caller)
    if not _HELD.take(caller, result.nbytes):
        raise NoRoom
    until.callback(_HELD.give_back, caller, result.nbytes)
