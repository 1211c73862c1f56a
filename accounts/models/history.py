"""The append-only history of documents. Contract: Change history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.db import models
from django.db.models.functions import Coalesce

from accounts.diff import label_of
from tenantadmin.lib.core.timestamps import now


class RevisionKind(models.TextChoices):
    RULES = "rules"
    CONFIG = "config"
    ACCOUNT = "account"


#: What a change that is no update did. `Revision.done` says it already.
_CREATED: Final = "created it"
_DELETED: Final = "deleted it with the tenant"
_NO_MORE: Final = frozenset({_CREATED, _DELETED})
#: The documents in words, where the kind is none.
_DOCUMENTS: Final = {"config": "configuration"}


class RevisionAction(models.TextChoices):
    CREATE = "create"
    UPDATE = "update"
    RESTORE = "restore"
    DELETE = "delete"


class Revision(models.Model):
    """One recorded change. The database itself refuses to update or delete a row (migration 0002).

    A document is a tenant's rules, a tenant's configuration or an account; ``seq`` counts within it from 0
    without gaps. Ids are plain values: the history outlives what it is about.
    """

    kind = models.CharField(max_length=10, choices=RevisionKind.choices)
    tenant_id = models.UUIDField(null=True)
    account_id = models.UUIDField()
    seq = models.PositiveIntegerField()
    action = models.CharField(max_length=10, choices=RevisionAction.choices)
    #: Normalized email of who made the change.
    user = models.CharField(max_length=320)
    changed_at = models.DateTimeField(default=now)
    restored_from = models.PositiveIntegerField(null=True)
    #: Counts and names of what changed.
    summary = models.JSONField(default=dict)
    #: The request that made it; empty for revisions of earlier releases.
    request_id = models.CharField(max_length=128, default="", db_default="")
    #: The whole document after the change; null after a deletion.
    document = models.JSONField(null=True)

    class Meta:
        ordering = ("-changed_at", "-id")
        constraints = (
            models.UniqueConstraint(
                "kind", Coalesce("tenant_id", "account_id"), "seq", name="revision_seq_once"
            ),
        )
        indexes = (
            models.Index(fields=["-changed_at", "-id"], name="revision_newest"),
            models.Index(fields=["user", "-changed_at", "-id"], name="revision_by_user"),
            models.Index(fields=["kind", "-changed_at", "-id"], name="revision_of_kind"),
            models.Index(fields=["tenant_id", "-changed_at", "-id"], name="revision_of_tenant"),
            models.Index(fields=["account_id", "-changed_at", "-id"], name="revision_of_account"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.tenant_id or self.account_id} #{self.seq}"

    @property
    def done(self) -> str:
        """What was done, in words: "changed the rules"."""
        verb = "changed" if self.action == RevisionAction.UPDATE else f"{self.action}d"
        return f"{verb} the {self.document_name}"

    @property
    def document_name(self) -> str:
        """What was changed, in words: "configuration"."""
        return _DOCUMENTS.get(self.kind, self.kind)

    @property
    def text(self) -> str:
        """What the change did, in words; without its comment."""
        summary = self.summary
        if self.action == RevisionAction.CREATE:
            return _CREATED
        if self.action == RevisionAction.DELETE:
            return _DELETED
        parts = [
            f"{verb} {_names(summary, verb)}" for verb in ("added", "removed", "changed") if summary.get(verb)
        ]
        if summary.get("reordered"):
            parts.append("changed the order")
        if draft := summary.get("draft"):
            parts.append(f"published the draft “{draft.get('name') or draft['draftId'][:8]}”")
        if fields := summary.get("fields") or summary.get("changedFields"):
            is_named = isinstance(fields, list)
            named = [f"“{label_of(path)}”" for path in fields] if is_named else [f"{fields} fields"]
            parts.append(f"changed {', '.join(named)}")
        text = ", ".join(parts) or "saved it without a difference"
        return text if self.restored_from is None else f"restored revision {self.restored_from}: {text}"


def beside(done: str, text: str) -> str:
    """Return what a change did beside the words ``done``, which say its verb already: "“Plan”"."""
    if text in _NO_MORE:
        return ""
    return text.removeprefix(f"{done.partition(' ')[0]} ")


def _names(summary: Mapping[str, Any], verb: str) -> str:
    ids = summary.get("names", {}).get(verb, ())
    # Revisions of earlier releases have no labels.
    labels = summary.get("labels", {})
    names = [f"“{labels[key]}”" if key in labels else key for key in ids]
    count = summary[verb]
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return ", ".join(names) + more if names else f"{count} rules"
