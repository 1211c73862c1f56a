"""Events in words, for pages: what was done, what changed, and the latest acts about a person or a tenant."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from accounts.access.scopes import ABILITIES, ALL_SCOPES, Scope
from accounts.admin.names import names_of
from accounts.models import Event
from accounts.models.events import EventKind
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.timestamps import parse_timestamp

if TYPE_CHECKING:
    from accounts.admin.names import Names


Record = TypeVar("Record")

#: What was done, by the kind of event. Of the square brackets, the text is left out if the actor is the
#: subject. After the bar is what leads to the name of the tenant or account.
EVENTS: Final[Mapping[str, str]] = {
    EventKind.SIGN_IN_LINK_REQUESTED: "asked for a sign-in link[ to {subject}]",
    EventKind.SIGN_IN_SUCCEEDED: "signed in",
    EventKind.SIGN_IN_FAILED: "failed to sign in[ as {subject}]",
    EventKind.SESSION_ENDED: "ended {sessions}[ of {subject}]",
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
    EventKind.TENANT_ADOPTED: "turned an assessment into the tenant|",
    EventKind.INVITATION_CREATED: "invited {subject} as {role}|of",
    EventKind.INVITATION_ACCEPTED: "accepted the invitation as {role}|of",
    EventKind.INVITATION_DECLINED: "declined the invitation|of",
    EventKind.INVITATION_WITHDRAWN: "withdrew the invitation of {subject}|to",
    EventKind.RIGHTS_PROPOSED: "asked a second platform admin for new rights of {subject}|on",
    EventKind.RIGHTS_CONFIRMED: "confirmed new rights of {subject}|on",
    EventKind.GRANT_CREATED: "gave {subject} permissions|on",
    EventKind.GRANT_REVOKED: "revoked permissions of {subject}|on",
    EventKind.DOMAIN_ADDED: "registered the domain {subject}|for",
    EventKind.DOMAIN_VERIFIED: "verified the domain {subject} {how}|of",
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
#: As `EVENTS`, by the name of an act of staff (`ActPage.name`).
ACTS: Final[Mapping[str, str]] = {
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
    "dashboard.opened": "opened the dashboard|of",
    "config.saved": "changed the configuration|of",
    "engine.chosen": "chose the engine of SQL|of",
    "rights.revoked": "revoked rights[ of {subject}]|on",
    "rights.exported": "downloaded the rights[ of {subject}]|on",
    "member.set": "made {person} {role}|of",
    "person.offboarded": "offboarded {subject}",
    "second-factor.invited": "invited {subject} to add a second factor",
    "days.rebuilt": "asked to build days again|of",
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
    "draft.rebased": "rebased a draft of the rules|of",
    "draft.published": "published a draft of the rules|of",
    "draft.deleted": "deleted a draft of the rules|of",
    "terms.published": "published terms of service",
    "audit.exported": "downloaded the audit",
    "view.saved": "saved the view of the audit “{name}”",
    "view.forgotten": "forgot the view of the audit “{name}”",
}
#: What the sentence says already, and numbers of rows.
_SAID: Final = frozenset(
    {
        "act",
        "role",
        "domain",
        "byHand",
        "person",
        "seq",
        "pat",
        "session",
        "invitation",
        "request",
        "everywhere",
    }
)
_LABELS: Final = {
    "baseSeq": "from revision",
    "withoutLog": "no log, nothing to build",
    "scopes": "may",
    "permissions": "may",
    "provider": "by",
}
_NO_REQUEST: Final = frozenset({"", "-"})
_IDENTIFIER: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


def group_requests(records: Iterable[Record], request_of: Callable[[Record], Any]) -> list[list[Record]]:
    """Group records by their request and actor, in the order of the first of each group.

    Args:
        request_of: returns id of the request and actor; None: the record is alone.
    """
    groups: dict[Any, list[Record]] = {}
    for number, record in enumerate(records):
        request = request_of(record)
        is_alone = request is None or request[0] in _NO_REQUEST
        groups.setdefault(number if is_alone else request, []).append(record)
    return list(groups.values())


def rank_event(row: Event) -> int:
    """Return the rank of an event in its request. The one with the lowest rank tells what was done."""
    if row.kind == EventKind.STAFF_ACTED:
        return 0
    return 3 if row.kind in {EventKind.TOKEN_MINTED, EventKind.USER_CREATED} else 2


def describe_event(row: Event) -> tuple[str, str]:
    """Return what was done, in the past and without who, and what leads to the tenant or account: "of"."""
    values: defaultdict[str, str] = defaultdict(str)
    values |= {key: str(value) for key, value in {**(row.before or {}), **(row.after or {})}.items()}
    values["how"] = "by hand" if values["byHand"] == "True" else "by DNS"
    if row.kind == EventKind.SESSION_ENDED:
        values["sessions"] = "all sessions" if values["everywhere"] else "a session"
    # An id is told by the name beside it.
    values["subject"] = "" if _IDENTIFIER.fullmatch(row.subject) else row.subject
    template = ACTS.get(values["act"]) or EVENTS.get(row.kind, row.kind)
    is_other = values["subject"] not in {"", row.actor}
    template = re.sub(r"\[(.*)\]", r"\1" if is_other else "", template)
    what, has_joint, joint = template.partition("|")
    return what.format_map(values), joint if has_joint else "on"


def describe_changes(row: Event, names: Names | None) -> str:
    """Return in words what changed, without ids that have no name; without ``names``, ids as they are."""
    if row.kind == EventKind.TOKEN_MINTED:
        # What it may do is what its session or personal access token may.
        return ""
    before, after = row.before or {}, row.after or {}
    parts = []
    # The database keeps no order.
    for key in sorted({*before, *after}, key=lambda key: (key != "name", key)):
        old, new = (_describe_value(values.get(key), names) for values in (before, after))
        if (key in _SAID and not (old and new)) or old == new == "":
            continue
        if key in {"first", "last"} and "days" in after:
            continue
        label = _LABELS.get(key) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).lower()
        parts.append(f"{label}: {f'{old} → {new}' if old and new and old != new else new or old}")
    return "; ".join(parts)


def _describe_value(value: Any, names: Names | None) -> str:
    """Return a value of an event in words; empty for an id that has no name in ``names``."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(filter(None, (_describe_value(part, names) for part in value.values())))
    if isinstance(value, list):
        return ", ".join(filter(None, (_describe_value(part, names) for part in value)))
    text = "" if value is None else str(value)
    if text in ALL_SCOPES:
        return ABILITIES[Scope(text)]
    if text == "*":
        return "everything"
    if _MOMENT.fullmatch(text):
        return formats.exact_time(parse_timestamp(text))
    try:
        return text if names is None else names.get(UUID(text), ("", ""))[1]
    except ValueError:
        return text


_EVENTS: Final = 20


def latest_acts(**fields: Any) -> list[tuple[Event, str]]:
    """Return the newest acts: the event that tells it, what was done, and to which tenant or account."""
    found = Event.objects.filter(**fields).order_by("-at", "-id")[:_EVENTS]
    requests = group_requests(found, lambda event: (event.request_id, event.actor))
    events = [min(request, key=rank_event) for request in requests]
    names = names_of(key for event in events for key in (event.tenant_id, event.account_id) if key)
    told = []
    for event in events:
        what, joint = describe_event(event)
        place = event.tenant_id or event.account_id
        name = names[place][1] if place is not None and place in names else ""
        told.append((event, " ".join(filter(None, (what, joint, name))) if name else what))
    return told
