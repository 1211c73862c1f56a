"""Pages of a draft of rules: edit, rebase, replay, publish, delete."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from accounts.admin.pages.base import PART, ReasonForm, TenantActPage
from accounts.models import Event
from accounts.models.events import EventKind
from accounts.models.users import StaffRole
from analytics.admin.completion import rule_words
from analytics.admin.pages.base import LogPage, say_published
from analytics.admin.pages.replaying import ReplayPage
from analytics.admin.pages.rules import RulesEditor, RulesTextForm
from analytics.admin.replays import ShownReplay, newest_done, replays_of_rules
from rules.admin.forms import RemovalsField, offer_removals
from rules.admin.rules import (
    check_text,
    compare_three,
    diff_lines,
    parse_rules,
    rebase_draft,
    written_text,
)
from rules.drafts import delete_draft, diff_draft, draft_etag, find_draft, publish_draft, replace_draft
from rules.language import complete_rule
from rules.ruleset import read_ruleset
from tenantadmin.lib.core.errors import ApiError, Conflict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpResponse

    from accounts.admin.pages.base import Trail
    from rules.admin.rules import TextCheck
    from rules.models import RuleDraft
    from rules.ruleset import RulesetState


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
        return check_text(self.tenant.pk, written_text(self.draft.rules))

    @cached_property
    def replays(self) -> list[ShownReplay]:
        return replays_of_rules(self.tenant.pk, self.draft.rules, draft_id=self.draft.pk)

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

    @property
    def given_reason(self) -> str:
        """The reason that the reader gave for the draft last."""
        given = Event.objects.filter(
            kind=EventKind.STAFF_ACTED,
            actor=self.actor,
            tenant_id=self.tenant.pk,
            at__gte=self.draft.created_at,
            after__draftId=str(self.draft.pk),
        )
        return given.values_list("reason", flat=True).first() or ""

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


class DraftPage(ReplayPage, OneDraftPage, RulesEditor):
    """The editor of a draft, what changed since it began, and its replays."""

    title = "Draft"
    name = "draft.saved"
    template_name = "backoffice/tenant/draft.html"
    form_class = DraftForm
    parts: ClassVar[Mapping[str, str]] = {"replays": "backoffice/tenant/replays.html"}

    @property
    def replayed(self) -> Mapping[str, Any]:
        return {"draft_id": self.kwargs["draft"]}

    def initial(self) -> dict[str, Any]:
        draft = self.draft
        return {
            **super().initial(),
            "rules": written_text(draft.rules),
            "base_seq": draft.base_seq,
            "draft_name": draft.name,
            "reason": self.given_reason,
        }

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

    @property
    def _rules(self) -> list[Any]:
        """The rules of the draft; valid rules have all defaults, like the live rules."""
        rules = self.draft.rules
        return rules if self.checked.blocking else [complete_rule(rule) for rule in rules]

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
    effect = (
        "Rebasing will save the draft with its changes applied to the live rules. The live rules stay as "
        "they are."
    )
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
    effect = (
        "The draft will become the live rules, as a new revision, and leave the drafts. "
        "This will empty the cache."
    )
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
        return {**super().initial(), "reason": self.given_reason}

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
    effect = "The draft will be gone, and cannot be restored. The live rules stay as they are."
    needs: ClassVar[StaffRole] = StaffRole.ADMIN

    form_class = SeenDraftForm

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        title = self.draft.title
        delete_draft(**self.which, expected_etag=values["etag"])
        self.is_gone = True
        return f"Deleted: {title}.", self.after
