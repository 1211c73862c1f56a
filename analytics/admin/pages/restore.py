"""The page that restores a revision of a tenant's rules or configuration."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from accounts.admin.pages.base import PART, ReasonForm
from accounts.models.history import RevisionKind
from accounts.models.users import StaffRole
from accounts.revisions import DocumentHistory, read_revision, say_in_force
from accounts.serializers.tenants import parse_config
from accounts.tenants.restore import restore_config
from analytics.admin.pages.replaying import ReplayPage
from analytics.admin.replays import newest_done, replays_of_rules
from rules.admin.forms import RemovalsField, offer_removals
from rules.admin.history import KINDS, compare_with_live
from rules.admin.rules import check_text, rules_text
from rules.restore import restore_ruleset
from rules.ruleset import read_ruleset
from tenantadmin.lib.core.errors import Conflict, NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accounts.admin.pages.base import Trail
    from accounts.models import Revision
    from rules.admin.rules import TextCheck


class RestoreForm(ReasonForm):
    """The version that the reader has seen, and removals to confirm."""

    etag = forms.CharField(widget=forms.HiddenInput, required=False)
    confirm_deletes = RemovalsField()
    field_order = ("confirm_deletes", "reason")


class RestorePage(ReplayPage):
    """Restore a revision. Shows the diff, the findings of lint, and the last replay, or replays the rules."""

    title = "Restore"
    button = "Restore"
    is_destructive = True
    template_name = "backoffice/tenant/restore.html"
    needs: ClassVar[StaffRole] = StaffRole.ADMIN
    form_class = RestoreForm
    parts: ClassVar[Mapping[str, str]] = {"replays": "backoffice/tenant/would_have_done.html"}

    def trail(self) -> Trail:
        return [*super().trail(), ("History", f"{self.to('tenant-history')}?kind={self.kwargs['kind']}")]

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.kind.value}.restored"

    @property
    def kind(self) -> RevisionKind:
        """The kind of document."""
        kind: str = self.kwargs["kind"]
        if kind not in {kind.value for kind in KINDS}:
            raise NotFound
        return RevisionKind(kind)

    @property
    def effect(self) -> str:  # type: ignore[override]
        if self.kind is RevisionKind.RULES:
            return "This revision will replace the rules, as a new revision. This will empty the cache."
        return "This revision will replace the configuration, as a new revision, after today's checks."

    def form(self, data: Any = None) -> ReasonForm:
        """Return the form, with what this revision needs confirmed."""
        form = super().form(data)
        offer_removals(form, self.checked.to_confirm if self.checked else {})
        return form

    @cached_property
    def revision(self) -> Revision:
        return read_revision(DocumentHistory(self.kind, self.tenant.pk), self.kwargs["seq"])

    @property
    def rules(self) -> list[Any] | None:
        """The rules of the revision. None of a configuration, or where the tenant was deleted."""
        if self.kind is not RevisionKind.RULES or self.revision.document is None:
            return None
        rules: list[Any] = self.revision.document.get("rules", [])
        return rules

    @cached_property
    def checked(self) -> TextCheck | None:
        """What lint says of the rules today."""
        return None if self.rules is None else check_text(self.tenant.pk, rules_text(self.rules))

    def initial(self) -> dict[str, Any]:
        return {"etag": read_ruleset(self.tenant.pk).etag if self.kind is RevisionKind.RULES else ""}

    def read(self) -> Mapping[str, Any]:
        if self.request.GET.get(PART) in self.parts:
            return self._replays
        return {
            "revision": self.revision,
            "in_force": say_in_force(self.revision),
            "compared": compare_with_live(self.tenant.pk, self.kind, seq=self.kwargs["seq"]),
            "checked": self.checked,
            **self._replays,
        }

    @property
    def _replays(self) -> dict[str, Any]:
        found = [] if self.rules is None else replays_of_rules(self.tenant.pk, self.rules)
        return {"replays": found, "shown": newest_done(found)}

    @property
    def replayed(self) -> Mapping[str, Any]:
        # The API replays rules alone.
        if self.kind is not RevisionKind.RULES:
            raise NotFound
        return {"seq": self.kwargs["seq"]}

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        seq: int = self.kwargs["seq"]
        if not compare_with_live(self.tenant.pk, self.kind, seq=seq).lines:
            raise Conflict(f"Revision {seq} says the same as the one in force: there is nothing to restore.")
        if self.kind is RevisionKind.RULES:
            restored = restore_ruleset(
                tenant_id=self.tenant.pk,
                seq=seq,
                actor=self.actor,
                confirm_deletes=values.get("confirm_deletes", ()),
                expected_etag=values["etag"],
            ).seq
        else:
            restored = restore_config(
                tenant_id=self.tenant.pk,
                seq=seq,
                parse=parse_config,
                actor=self.actor,
            ).seq
        return f"Restored revision {seq} as revision {restored}.", {"seq": restored, "restoredFrom": seq}

    def done_at(self) -> str:
        return f"{self.to('tenant-history')}?kind={self.kind.value}"
