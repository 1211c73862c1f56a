"""Staff pages that replay rules over the last days, and show the progress until the replay ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from django.http import HttpResponseRedirect

from accounts.admin.pages.base import TenantActPage
from analytics.admin.pages.base import LogPage
from analytics.admin.replays import ShownReplay
from analytics.replay.runs import list_replays, queue_replay
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.timestamps import days_before

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse

_REPLAY_DAYS: Final = 7
_AGAIN: Final = "again"


class ReplayPage(LogPage, TenantActPage):
    """A page with a button that replays its rules. Its part ``replays`` is the element of this id."""

    @property
    def replayed(self) -> Mapping[str, Any]:
        """The rules, as `queue_replay` takes them: a draft or a revision."""
        raise NotImplementedError

    def get(self, request: HttpRequest, **more: Any) -> HttpResponse:
        shown = self._polled
        if shown is None:
            return super().get(request, **more)
        if shown.is_under_way:
            return self.show("backoffice/tenant/replay_progress.html", {"shown": shown})
        answer = super().get(request, **more)
        # The replay has ended: show it, and what it means for the rules.
        answer["HX-Retarget"] = "#replays"
        return answer

    def post(self, request: HttpRequest, **more: Any) -> HttpResponse:
        if "replay" not in request.POST:
            return super().post(request, **more)
        try:
            # Changes nothing, so it needs no reason.
            run = queue_replay(
                **self.replayed,
                tenant_id=self.tenant.pk,
                first_day=days_before(self.last_day, _REPLAY_DAYS - 1),
                last_day=self.last_day,
                warmup_days=1,
                gateway={},
                actor=self.actor,
            )
        except ApiError as error:
            content = {"form": self.form(), "error": error, **self.read()}
            return self.show(self.template_name, content, status=error.status)
        again = "" if run.finished_at is None else f"?{_AGAIN}=yes"
        return HttpResponseRedirect(f"{request.path}{again}#replays")

    @property
    def is_again(self) -> bool:
        """True if the reader asked for a replay that is there already."""
        return _AGAIN in self.request.GET

    @property
    def _polled(self) -> ShownReplay | None:
        """The replay whose progress the page polls, without its result; None if the request is for more."""
        if "run" not in self.request.GET:
            return None
        try:
            run = list_replays(tenant_id=self.tenant.pk).filter(pk=self.request.GET["run"]).first()
        except ValidationError:
            return None
        return None if run is None else ShownReplay(run)
