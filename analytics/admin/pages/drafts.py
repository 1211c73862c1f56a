"""Pages of a draft of rules: edit, rebase, replay, publish, delete."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpResponseRedirect

from accounts.admin.pages.base import PART, ReasonForm, TenantActPage
from accounts.models import Event
from accounts.models.events import EventKind
from accounts.models.users import StaffRole
from analytics.admin.completion import rule_words
from analytics.admin.pages.base import LogPage, say_published
from analytics.admin.pages.rules import RulesEditor, RulesTextForm
from analytics.admin.replays import ShownReplay, newest_done, replays_of_draft
from analytics.models import ReplayRun
from analytics.replay.runs import list_replays, queue_replay
from analytics.tasks import run_replay
from rules.admin.forms import RemovalsField, offer_removals
from rules.admin.rules import (
    check_text,
    compare_three,
    diff_lines,
    parse_rules,
    rebase_draft,
    rules_text,
)
from rules.drafts import delete_draft, diff_draft, draft_etag, find_draft, publish_draft, replace_draft
from rules.language import complete_rule
from rules.ruleset import read_ruleset
from tenantadmin.lib.core.errors import ApiError, Conflict
from tenantadmin.lib.core.timestamps import days_before

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse

    from accounts.admin.pages.base import Trail
    from rules.admin.rules import TextCheck
    from rules.models import RuleDraft
    from rules.ruleset import RulesetState

_REPLAY_DAYS: Final = 7


class OneDraftPage(LogPage, TenantActPage):
    """A page of one draft."""

    #: True once the draft has been published or deleted.
    is_gone: bool = False

    @cached_property
    def draft(self) -> RuleDraft:
        return find_draft(self.tenant.pk, self.kwargs["draft"])

    @cached_property
    def current(self) -> RulesetState:
        """The live rules."""
        return read_ruleset(self.tenant.pk)

    @cached_property
    def checked(self) -> TextCheck:
        """The findings of lint if the draft was published now, and its diff with the live rules."""
        return check_text(self.tenant.pk, rules_text(self.draft.rules))

    @cached_property
    def replays(self) -> list[ShownReplay]:
        return replays_of_draft(self.draft)

    @property
    def is_behind(self) -> bool:
        """True if the live rules were written since the draft began."""
        return self.draft.base_seq != self.current.seq

    @property
    def can_rebase(self) -> bool:
        return self.is_behind and not self.checked.blocking

    @property
    def why_not(self) -> str:
        """The reason why the draft cannot be published now, or an empty text."""
        if self.checked.blocking:
            return "Lint finds errors in the draft. Correct them in its editor, and save it."
        if self.is_behind:
            return (
                f"The live rules are at revision {self.current.seq} by now, and the draft began from "
                f"revision {self.draft.base_seq}. First rebase it: apply its changes to the live rules."
            )
        return ""

    @property
    def which(self) -> dict[str, Any]:
        """The arguments that every action on the draft takes."""
        return {"tenant_id": self.tenant.pk, "draft_id": self.kwargs["draft"], "actor": self.actor}

    @property
    def after(self) -> dict[str, Any]:
        """The values that the event adds."""
        return {"draftId": str(self.kwargs["draft"])}

    def initial(self) -> dict[str, Any]:
        return {"etag": draft_etag(self.draft)}

    def trail(self) -> Trail:
        return [*super().trail(), ("Rules", self.to("tenant-rules"))]

    def done_at(self) -> str:
        if self.is_gone:
            return self.to("tenant-rules")
        return self.to("tenant-draft", draft=self.kwargs["draft"])


class DraftForm(RulesTextForm):
    """Text and name of a draft."""

    draft_name = forms.CharField(label="Name of the draft", max_length=200, required=False)
    field_order = ("rules", "draft_name", "reason")


class DraftPage(OneDraftPage, RulesEditor):
    """The editor of a draft, what changed since it began, and its replays."""

    title = "Draft"
    name = "draft.saved"
    template_name = "backoffice/tenant/draft.html"
    form_class = DraftForm
    parts: ClassVar[Mapping[str, str]] = {"replays": "backoffice/tenant/replays.html"}

    def initial(self) -> dict[str, Any]:
        draft = self.draft
        text = {"rules": rules_text(draft.rules), "base_seq": draft.base_seq, "draft_name": draft.name}
        return {**super().initial(), **text}

    def read(self) -> Mapping[str, Any]:
        if self.request.GET.get(PART) in self.parts:
            return {"replays": self.replays}
        draft = self.draft
        return {
            "draft": draft,
            "name": draft.title,
            "checked": self.checked,
            "diff": diff_draft(self.tenant.pk, draft.pk),
            "three": compare_three(self.tenant.pk, base_seq=draft.base_seq, rules=self._rules)
            if self.is_behind
            else None,
            "words": rule_words(draft.rules),
            "replays": self.replays,
        }

    def get(self, request: HttpRequest, **more: Any) -> HttpResponse:
        shown = self._polled
        if shown is None:
            return super().get(request, **more)
        if shown.is_under_way:
            return self.show("backoffice/tenant/replay_progress.html", {"shown": shown})
        answer = super().get(request, **more)
        # The replay has ended: show it, and what it means for the draft.
        answer["HX-Retarget"] = "#replays"
        return answer

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

    @property
    def _rules(self) -> list[Any]:
        """The rules of the draft; valid rules have all defaults, like the live rules."""
        rules = self.draft.rules
        return rules if self.checked.blocking else [complete_rule(rule) for rule in rules]

    def post(self, request: HttpRequest, **more: Any) -> HttpResponse:
        if "replay" in request.POST:
            try:
                return self._replay()
            except ApiError as error:
                content = {"form": self.form(), "error": error, **self.read()}
                return self.show(self.template_name, content, status=error.status)
        return super().post(request, **more)

    def _replay(self) -> HttpResponse:
        """Replay the draft over the last days with log entries. Changes nothing, so it needs no reason."""
        run = queue_replay(
            tenant_id=self.tenant.pk,
            draft_id=self.kwargs["draft"],
            first_day=days_before(self.last_day, _REPLAY_DAYS - 1),
            last_day=self.last_day,
            warmup_days=1,
            gateway={},
            actor=self.actor,
        )
        if run.state == ReplayRun.State.QUEUED:
            tenant = str(self.tenant.pk)
            transaction.on_commit(lambda: run_replay.delay(tenant), robust=True)
        return HttpResponseRedirect(self.done_at())

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        replace_draft(
            **self.which,
            document={
                "rules": parse_rules(values["rules"]),
                "name": values["draft_name"],
                "baseSeq": values["base_seq"],
            },
            expected_etag=values["etag"],
        )
        return "Saved the draft. The live rules do not change.", self.after

    def refused(self, form: ReasonForm, error: ApiError) -> HttpResponse:
        values = form.cleaned_data
        content: dict[str, Any] = {"form": form, "error": error}
        if isinstance(error, Conflict):
            content["mine"] = diff_lines(self.draft.rules, parse_rules(values["rules"]))
            # The reader has now seen the other version, so saving again overwrites it.
            content["form"] = DraftForm({**values, "etag": draft_etag(self.draft)})
        content["checked"] = check_text(self.tenant.pk, values["rules"])
        return self.show(self.template_name, {**self.read(), **content}, status=error.status)


class SeenDraftForm(ReasonForm):
    """The version of the draft that the reader has seen."""

    etag = forms.CharField(widget=forms.HiddenInput)


class RebasePage(OneDraftPage):
    """Apply the changes of a draft to the live rules, which were written since it began."""

    title = "Rebase the draft"
    name = "draft.rebased"
    button = "Rebase and save the draft"
    effect = "The draft is saved with its changes applied to the live rules. The live rules do not change."
    template_name = "backoffice/tenant/rebase.html"
    needs: ClassVar[StaffRole] = StaffRole.ADMIN
    form_class = SeenDraftForm

    @cached_property
    def rebased(self) -> list[Any]:
        """The live rules with the changes of the draft.

        Raises:
            Conflict: lint finds errors in the draft, or another user has rebased it.
        """
        if not self.can_rebase:
            raise Conflict(self.why_not or "The draft begins from the live rules by now.")
        draft = self.draft
        return rebase_draft(self.tenant.pk, base_seq=draft.base_seq, rules=draft.rules)

    def read(self) -> Mapping[str, Any]:
        return {
            "draft": self.draft,
            "lines": diff_lines(self.current.rules, self.rebased),
            "both": diff_draft(self.tenant.pk, self.draft.pk).conflicts,
        }

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        seq = self.current.seq
        replace_draft(
            **self.which,
            document={"rules": self.rebased, "baseSeq": seq},
            expected_etag=values["etag"],
        )
        return f"Rebased onto revision {seq} and saved. The live rules do not change.", self.after


class PublishForm(SeenDraftForm):
    """The version, and confirmations."""

    confirm_deletes = RemovalsField()
    despite_poor = forms.BooleanField(
        label="Publish although the replay differs much from the log, so that its figures say little"
    )
    field_order = ("confirm_deletes", "despite_poor", "reason")


class PublishPage(OneDraftPage):
    """Publish a draft. Shows what changes, the findings of lint, and the last replay."""

    title = "Publish the draft"
    name = "draft.published"
    button = "Publish"
    effect = "The draft becomes the live rules, as a new revision. It is deleted, and the cache is emptied."
    template_name = "backoffice/tenant/publish.html"
    needs: ClassVar[StaffRole] = StaffRole.ADMIN
    form_class = PublishForm

    def form(self, data: Any = None) -> ReasonForm:
        """Return the form with the confirmations that this draft needs."""
        form = super().form(data)
        offer_removals(form, self.checked.to_confirm)
        shown = newest_done(self.replays)
        if shown is None or not shown.is_poor:
            del form.fields["despite_poor"]
        return form

    def read(self) -> Mapping[str, Any]:
        return {"draft": self.draft, "checked": self.checked, "shown": newest_done(self.replays)}

    def initial(self) -> dict[str, Any]:
        """Begin with the reason that the reader gave for the draft."""
        given = Event.objects.filter(
            kind=EventKind.STAFF_ACTED,
            actor=self.actor,
            tenant_id=self.tenant.pk,
            at__gte=self.draft.created_at,
            after__draftId=str(self.draft.pk),
        )
        return {**super().initial(), "reason": given.values_list("reason", flat=True).first() or ""}

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        written = publish_draft(
            **self.which,
            confirm_deletes=values.get("confirm_deletes", ()),
            expected_etag=values["etag"],
        )
        self.is_gone = True
        message = say_published(self, f"Published as revision {written.seq}.", written.seq)
        return message, {"seq": written.seq, **self.after}


class DeletePage(OneDraftPage):
    """Delete a draft."""

    title = "Delete the draft"
    name = "draft.deleted"
    button = "Delete"
    is_destructive = True
    effect = "The draft cannot be restored. The live rules do not change."
    needs: ClassVar[StaffRole] = StaffRole.ADMIN

    form_class = SeenDraftForm

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        title = self.draft.title
        delete_draft(**self.which, expected_etag=values["etag"])
        self.is_gone = True
        return f"Deleted: {title}.", self.after
