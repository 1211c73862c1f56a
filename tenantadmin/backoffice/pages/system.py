"""The page System."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from accounts.admin.base import PART, StaffPage
from tenantadmin.backoffice.system import SERVERS, read_servers, read_work
from tenantadmin.lib.core.queues import QUEUES

if TYPE_CHECKING:
    from collections.abc import Mapping


class SystemPage(StaffPage):
    """Queue and job state from the database. Server checks load in a second request."""

    title = "System"
    template_name = "backoffice/system.html"
    parts: ClassVar[Mapping[str, str]] = {"servers": "backoffice/system_servers.html"}

    def read(self) -> Mapping[str, Any]:
        if self.request.GET.get(PART) == "servers":
            return {"servers": read_servers()}
        return {"work": read_work(), "names": SERVERS, "queues": QUEUES}
