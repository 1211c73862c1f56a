"""The audit in words: the records of one request are one act, told by who did it, what, and why."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from accounts.models.events import EventKind
from accounts.models.history import RevisionKind
from rules.admin.history import sentence
from tenantadmin.backoffice.audit import Entry, Source
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.timestamps import parse_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from accounts.admin.names import Names

#: What was done, by the kind of event. Of the square brackets, the text is left out if the actor is the
#: subject. After the bar is what leads to the name of the tenant or account.
_EVENTS: Final[Mapping[str, str]] = {
    EventKind.SIGN_IN_LINK_REQUESTED: "asked for a sign-in link[ to {subject}]",
    EventKind.SIGN_IN_SUCCEEDED: "signed in",
    EventKind.SIGN_IN_FAILED: "failed to sign in[ as {subject}]",
    EventKind.SESSION_ENDED: "ended a session[ of {subject}]",
    EventKind.TOKEN_MINTED: "got an access token[ of {subject}]",
    EventKind.TOKEN_REFUSED: "sent a token[ of {subject}] that was refused",
    EventKind.PAT_CREATED: "created a personal access token[ for {subject}]",
    EventKind.PAT_ROTATED: "renewed a personal access token[ of {subject}]",
    EventKind.PAT_REVOKED: "revoked a personal access token[ of {subject}]",
    EventKind.PASSWORD_CHANGED: "changed the password[ of {subject}]",
    EventKind.SECOND_FACTOR_ADDED: "added a second factor[ of {subject}]",
    EventKind.SECOND_FACTOR_REMOVED: "removed a second factor[ of {subject}]",
    EventKind.SECOND_FACTOR_RESET: "removed all second factors[ of {subject}]",
    EventKind.IDENTITY_LINKED: "linked an identity provider[ to {subject}]",
    EventKind.IDENTITY_UNLINKED: "unlinked the identity provider[ of {subject}]",
    EventKind.USER_CREATED: "created the user {subject}",
    EventKind.USER_CHANGED: "changed the name[ of {subject}]",
    EventKind.USER_ACTIVATED: "activated the user {subject}",
    EventKind.USER_DEACTIVATED: "deactivated the user {subject}",
    EventKind.USER_DELETED: "deleted the user {subject}",
    EventKind.ROLES_CHANGED: "changed the roles of {subject}",
    EventKind.MEMBERSHIP_ADDED: "made {subject} {role}|of",
    EventKind.MEMBERSHIP_CHANGED: "made {subject} {role}|of",
    EventKind.MEMBERSHIP_REMOVED: "removed {subject}|from",
    EventKind.ACCESS_REQUESTED: "asked the owners for access|to",
    EventKind.ACCESS_APPROVED: "approved the access[ of {subject}]|to",
    EventKind.ACCESS_DECLINED: "declined the access[ of {subject}]|to",
    EventKind.ACCESS_WITHDRAWN: "withdrew the request for access|to",
    EventKind.TENANT_RESTORED: "restored the tenant|",
    EventKind.INVITATION_CREATED: "invited {subject} as {role}|of",
    EventKind.INVITATION_ACCEPTED: "accepted the invitation as {role}|of",
    EventKind.INVITATION_DECLINED: "declined the invitation|of",
    EventKind.INVITATION_WITHDRAWN: "withdrew the invitation of {subject}|to",
    EventKind.GRANT_CREATED: "gave {subject} permissions|on",
    EventKind.GRANT_REVOKED: "revoked permissions of {subject}|on",
    EventKind.DOMAIN_ADDED: "registered the domain {subject}|for",
    EventKind.DOMAIN_VERIFIED: "verified the domain {subject}|of",
    EventKind.DOMAIN_REMOVED: "removed the domain {subject}|of",
    EventKind.DIGEST_MAIL_CHANGED: "changed the digest mails[ of {subject}]|about",
    EventKind.ALERT_CREATED: "created an alert|of",
    EventKind.ALERT_CHANGED: "changed an alert|of",
    EventKind.ALERT_DELETED: "deleted an alert|of",
    EventKind.ALERT_TESTED: "tested an alert|of",
    EventKind.PER_USER_TABLES_REMOVED: "no longer lists some tables as per user|of",
    EventKind.DRAFT_CREATED: "created a draft of the rules|of",
    EventKind.DRAFT_CHANGED: "changed a draft of the rules|of",
    EventKind.DRAFT_DELETED: "deleted a draft of the rules|of",
    EventKind.REPLAY_REQUESTED: "began a replay|of",
    EventKind.REPLAY_CANCELLED: "cancelled a replay|of",
    EventKind.REPLAY_REMOVED: "removed a replay|of",
    EventKind.RECOMMENDATIONS_REQUESTED: "began a search for recommendations|for",
    EventKind.RECOMMENDATION_DISMISSED: "dismissed a recommendation|for",
    EventKind.RECOMMENDATION_REOPENED: "reopened a recommendation|for",
    EventKind.QUERY_SAVED: "saved SQL as “{subject}”",
    EventKind.QUERY_DELETED: "deleted the saved SQL “{subject}”",
    EventKind.TERMS_PUBLISHED: "published terms of service",
    EventKind.TERMS_ACKNOWLEDGED: "acknowledged the terms of service",
    EventKind.STAFF_ACTED: "did “{act}”|on",
}
#: As `_EVENTS`, by the name of an act of staff (`ActPage.name`).
_ACTS: Final[Mapping[str, str]] = {
    "account.changed": "changed the account|",
    "account.created": "created the account|",
    "tenant.created": "created the tenant|",
    "tenant.restored": "restored the tenant|",
    "domain.checked": "verified the domain {domain} by DNS|of",
    "domain.verified": "verified the domain {domain} by hand|of",
    "access.taken": "took access|to",
    "access.requested": "asked the owners for access|to",
    "access.withdrawn": "withdrew the request for access|to",
    "access.approved": "approved the access of {person} for the owners|of",
    "access.ended": "ended the own access|to",
    "config.saved": "changed the configuration|of",
    "engine.chosen": "chose the engine of SQL|of",
    "rights.revoked": "revoked rights[ of {subject}]|on",
    "rights.exported": "downloaded the rights[ of {subject}]|on",
    "member.set": "made {person} {role}|of",
    "person.offboarded": "offboarded {subject}",
    "second-factor.invited": "invited {subject} to add a second factor",
    "days.rebuilt": "built days again|of",
    "rules.published": "changed the rules|of",
    "draft.kept": "kept rules as a draft|of",
    "rules.restored": "restored the rules|of",
    "config.restored": "restored the configuration|of",
    "query.cancelled": "cancelled a running query|of",
    "marker.created": "invalidated results|of",
    "marker.removed": "removed an invalidation|of",
    "recommendation.accepted": "accepted a recommendation|for",
    "recommendation.drafted": "made a draft of a recommendation|for",
    "recommendation.dismissed": "dismissed a recommendation|for",
    "recommendation.reopened": "reopened a recommendation|for",
    "draft.saved": "changed a draft of the rules|of",
    "draft.published": "published a draft of the rules|of",
    "draft.deleted": "deleted a draft of the rules|of",
    "terms.published": "published terms of service",
    "audit.exported": "downloaded the audit",
    "view.saved": "saved the view of the audit “{name}”",
    "view.forgotten": "forgot the view of the audit “{name}”",
}
_SOURCES: Final = {Source.READ: "read the raw log|of", Source.QUERY: "ran SQL over the log|of"}
_FIGURES: Final = "looked at figures|of"
_REVISIONS: Final = {
    RevisionKind.RULES: "the rules|of",
    RevisionKind.CONFIG: "the configuration|of",
    RevisionKind.ACCOUNT: "the account|",
}
_VERBS: Final = {"create": "created", "update": "changed", "delete": "deleted", "restore": "restored"}

#: What the sentence says already, and numbers of rows.
_SAID: Final = frozenset(
    {"act", "role", "domain", "person", "seq", "pat", "session", "invitation", "request"}
)
_VALUE: Final = 200
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_NO_REQUEST: Final = frozenset({"", "-"})


@dataclass(frozen=True, slots=True)
class Act:
    """What one request did. ``entry`` tells it best; ``more`` are its other records, in words."""

    entry: Entry
    #: In the past, without who: "changed the rules", and what leads to the name: "of".
    what: str
    joint: str
    detail: str
    reason: str
    more: Sequence[str]
    #: The record to open: the difference of the one document that changed, if any.
    record: Entry


def tell_acts(entries: Sequence[Entry], names: Names) -> list[Act]:
    """Return the acts of a page of the timeline, newest first. Records of one request are one act."""
    requests: defaultdict[Any, list[Entry]] = defaultdict(list)
    for entry in entries:
        is_alone = entry.request_id in _NO_REQUEST or entry.source is Source.READ
        requests[entry.order if is_alone else (entry.request_id, entry.who)].append(entry)
    return [_tell(found, names) for found in requests.values()]


def _tell(entries: Sequence[Entry], names: Names) -> Act:
    main = min(entries, key=_rank)
    documents = [entry for entry in entries if entry.source is Source.REVISION]
    record = documents[0] if len(documents) == 1 else main
    what, joint = phrase_of(main)
    others = [entry for entry in entries if entry is not main]
    return Act(
        entry=main,
        what=what,
        joint=joint,
        detail=detail_of(record, names),
        reason=next((entry.reason for entry in (main, *others) if entry.reason), ""),
        more=_unique(_whole(entry, names) for entry in others if entry is not record),
        record=record,
    )


def _rank(entry: Entry) -> int:
    """Return the place of an entry among those of its request; the lowest tells the act."""
    if entry.source is not Source.EVENT:
        return 1
    if entry.row.kind == EventKind.STAFF_ACTED:
        return 0
    return 3 if entry.row.kind in {EventKind.TOKEN_MINTED, EventKind.USER_CREATED} else 2


def _whole(entry: Entry, names: Names) -> str:
    """Return an entry as one sentence, with the name of its tenant or account."""
    what, joint = phrase_of(entry)
    _, name = names.get(entry.tenant_id or entry.account_id or UUID(int=0), ("", ""))
    return " ".join(filter(None, (what, joint if name else "", name)))


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def phrase_of(entry: Entry) -> tuple[str, str]:
    """Return what was done in words, and what leads to the name of the tenant or account."""
    row = entry.row
    values: defaultdict[str, str] = defaultdict(str)
    if entry.source is Source.EVENT:
        values |= {key: str(value) for key, value in {**(row.before or {}), **(row.after or {})}.items()}
        template = _ACTS.get(values["act"]) or _EVENTS.get(row.kind, row.kind)
    elif entry.source is Source.REVISION:
        template = f"{_VERBS.get(row.action, row.action)} {_REVISIONS.get(row.kind, row.kind)}"
    else:
        template = _FIGURES if getattr(row, "by_service", False) else _SOURCES[entry.source]
    values["subject"] = entry.what
    is_other = entry.what and entry.what != entry.who
    template = re.sub(r"\[(.*)\]", r"\1" if is_other else "", template)
    what, has_joint, joint = template.partition("|")
    return what.format_map(values), joint if has_joint else "on"


def detail_of(entry: Entry, names: Names) -> str:
    """Return in words what changed, or how a query ended."""
    if entry.source is Source.REVISION:
        said = sentence(entry.row)
        return "" if said in {"created it", "deleted it with the tenant"} else said
    if entry.source is Source.EVENT:
        text = _changes(entry.row.before or {}, entry.row.after or {}, names)
        return text if len(text) <= _VALUE else f"{text[: _VALUE - 1]}…"
    return entry.text


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], names: Names) -> str:
    parts = []
    for key in dict.fromkeys((*before, *after)):
        old, new = (_told(values.get(key), names) for values in (before, after))
        if (key in _SAID and not (old and new)) or old == new == "":
            continue
        label = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).lower()
        parts.append(f"{label}: {f'{old} → {new}' if old and new and old != new else new or old}")
    return "; ".join(parts)


def _told(value: Any, names: Names) -> str:
    """Return a value of an event in words; empty for an id that has no name."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(filter(None, (_told(it, names) for it in value.values())))
    if isinstance(value, list):
        return ", ".join(filter(None, (_told(it, names) for it in value)))
    text = "" if value is None else str(value)
    if text == "*":
        return "everything"
    if _MOMENT.fullmatch(text):
        return formats.exact_time(parse_timestamp(text))
    try:
        return names.get(UUID(text), ("", ""))[1]
    except ValueError:
        return text
