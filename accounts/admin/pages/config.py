"""Pages of a tenant's configuration, and of the restore of a deleted tenant.

The first shows both versions if another user saved first.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms

from accounts.admin.forms import config_editor
from accounts.admin.pages.base import ReasonForm, TenantActPage, may
from accounts.models.history import RevisionKind
from accounts.models.users import StaffRole
from accounts.revisions import DocumentHistory, read_pair
from accounts.serializers.tenants import parse_config
from accounts.tenants.config import read_config, write_config
from accounts.tenants.lifecycle import restore_tenant
from tenantadmin.lib.core.errors import ApiError, Conflict, Forbidden
from tenantadmin.lib.http.difference import diff_documents
from tenantadmin.lib.http.parsers import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse

_MAX_TEXT: Final = 1_000_000
#: The order of members in the editor. The database does not keep it.
_ORDER: Final = ("tenantName", "fqdns", "warehouse", "defaults", "logging", "labels")


def config_text(document: Mapping[str, Any]) -> str:
    """Return the text of a configuration for the editor."""
    return json.dumps(
        {name: document[name] for name in _ORDER if name in document}, indent=2, ensure_ascii=False
    )


class ConfigForm(ReasonForm):
    """The text, and the revision that it changes."""

    config = forms.CharField(
        label="Configuration",
        max_length=_MAX_TEXT,
        widget=config_editor(),
        strip=False,
    )
    etag = forms.CharField(widget=forms.HiddenInput)
    base_seq = forms.IntegerField(widget=forms.HiddenInput, min_value=0)
    field_order = ("config", "reason")


class ConfigPage(TenantActPage):
    """Edit the configuration. Support may only read it."""

    title = "Configuration"
    name = "config.saved"
    button = "Save"
    template_name = "backoffice/tenant/config.html"
    form_class = ConfigForm

    def initial(self) -> dict[str, Any]:
        if self.tenant.deleted_at is not None:
            return {}
        stored = read_config(self.tenant.pk)
        return {"config": config_text(stored.document), "etag": stored.etag, "base_seq": stored.seq}

    def read(self) -> Mapping[str, Any]:
        if self.tenant.deleted_at is not None:
            return {"config": None}
        stored = read_config(self.tenant.pk)
        return {"config": stored, "text": config_text(stored.document)}

    def post(self, request: HttpRequest, **more: Any) -> HttpResponse:
        if not may(request, StaffRole.ADMIN):
            raise Forbidden("Support may look at a configuration. A platform admin saves it.")
        return super().post(request, **more)

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        written = write_config(
            tenant_id=self.tenant.pk,
            document=parse_json(values["config"].encode()),
            parse=parse_config,
            actor=self.actor,
            expected_etag=values["etag"],
        )
        return f"Saved as revision {written.seq}.", {"seq": written.seq}

    def refused(self, form: ReasonForm, error: ApiError) -> HttpResponse:
        content: dict[str, Any] = {"form": form, "error": error}
        # A name or FQDN of another tenant is a conflict too, but not another version of this document.
        if isinstance(error, Conflict):
            content |= self._both_sides(form.cleaned_data)
        return self.show(self.template_name, {**self.read(), **content}, status=error.status)

    def _both_sides(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the changes of both sides since the reader began, and a form to overwrite them."""
        stored = read_config(self.tenant.pk)
        history = DocumentHistory(RevisionKind.CONFIG, self.tenant.pk)
        before, _ = read_pair(history, earlier=values["base_seq"], later=values["base_seq"])
        fresh = {"etag": stored.etag, "base_seq": stored.seq}
        return {
            "theirs": diff_documents(before, stored.document),
            "mine": diff_documents(before, parse_json(values["config"].encode())),
            "form": ConfigForm({**{name: values[name] for name in self.form_class.base_fields}, **fresh}),
        }

    def done_at(self) -> str:
        return self.to("tenant-config")


class RestoreTenantPage(TenantActPage):
    """Make a deleted tenant live again."""

    title = "Restore the tenant"
    name = "tenant.restored"
    button = "Restore"
    needs: ClassVar[StaffRole] = StaffRole.ADMIN
    effect = (
        "The tenant will be live again with the configuration, rules, FQDNs and members that it had. "
        "Gateways will start with an empty cache. It is refused if another tenant has its name or an FQDN "
        "now."
    )

    def act(self, _values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        restored = restore_tenant(tenant_id=self.tenant.pk, actor=self.actor)
        return f"{self.tenant.name} is live again.", {"seq": restored.seq}
