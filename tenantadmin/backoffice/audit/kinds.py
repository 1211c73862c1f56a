"""The kinds of records that the audit is filtered by."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from accounts.models.events import EventKind
from accounts.models.history import RevisionKind


class Source(IntEnum):
    """The tables of the timeline. Rows with equal times are ordered by source, highest value first."""

    REVISION = 0
    READ = 1
    QUERY = 2
    EVENT = 3


#: Groups of event kinds, by prefix.
_PREFIXES: Final = {
    "sign-ins": ("sign-in.", "session.", "password.", "second-factor.", "identity."),
    "tokens": ("token.", "pat."),
    "rights": ("user.", "roles.", "membership.", "invitation.", "access.", "grant."),
    "proposals": ("draft.", "replay.", "recommendation"),
    "staff": ("staff.",),
}
_GROUPED: Final = tuple(prefix for prefixes in _PREFIXES.values() for prefix in prefixes)
#: The event kinds of each group; the last group has all others.
EVENT_GROUPS: Final = {
    **{
        name: tuple(kind for kind in EventKind if kind.startswith(prefixes))
        for name, prefixes in _PREFIXES.items()
    },
    "other-events": tuple(kind for kind in EventKind if not kind.startswith(_GROUPED)),
}
SOURCE_KINDS: Final = {
    "documents": (Source.REVISION,),
    **dict.fromkeys(RevisionKind.values, (Source.REVISION,)),
    "logs": (Source.READ, Source.QUERY),
    "raw-reads": (Source.READ,),
    "queries": (Source.QUERY,),
    "figures": (Source.QUERY,),
}
#: Choices of revisions and of reads of logs: value and title.
_CHANGES: Final = (
    (RevisionKind.RULES.value, "Rules published or restored"),
    (RevisionKind.CONFIG.value, "Configuration changed"),
    (RevisionKind.ACCOUNT.value, "Account, plan or owners changed"),
)
_READS: Final = (
    ("raw-reads", "Log files and single requests read"),
    ("queries", "SQL run by people"),
    ("figures", "Figures shown by pages"),
)
_EVENT_TITLES: Final = {
    "sign-ins": "Sign-ins and sessions",
    "tokens": "Tokens",
    "rights": "People and rights",
    "proposals": "Drafts, replays and recommendations",
    "staff": "Acts of staff",
    "other-events": "Domains, alerts, saved SQL, terms",
}
#: Kinds whose name is not in the words of the pages.
_WORDS: Final = {
    EventKind.SIGN_IN_SUCCEEDED: "Signed in",
    EventKind.TOKEN_MINTED: "Token for requests issued",
    EventKind.TOKEN_REFUSED: "Token for requests refused",
    EventKind.PAT_ROTATED: "Access token renewed",
    EventKind.SECOND_FACTOR_RESET: "Second factor reset by staff",
    EventKind.IDENTITY_LINKED: "Identity provider linked",
    EventKind.IDENTITY_UNLINKED: "Identity provider unlinked",
    EventKind.USER_CHANGED: "Name of a user changed",
    EventKind.MEMBERSHIP_ADDED: "Member added",
    EventKind.MEMBERSHIP_CHANGED: "Role of a member changed",
    EventKind.MEMBERSHIP_REMOVED: "Member removed",
    EventKind.ACCESS_REQUESTED: "Access for staff requested",
    EventKind.ACCESS_APPROVED: "Access for staff approved",
    EventKind.ACCESS_DECLINED: "Access for staff declined",
    EventKind.ACCESS_WITHDRAWN: "Request for access withdrawn",
    EventKind.GRANT_CREATED: "Permissions given",
    EventKind.GRANT_REVOKED: "Permissions revoked",
    EventKind.DOMAIN_ADDED: "Domain registered",
    EventKind.DIGEST_MAIL_CHANGED: "Digest mails changed",
    EventKind.PER_USER_TABLES_REMOVED: "Tables no longer listed as per user",
    EventKind.RECOMMENDATIONS_REQUESTED: "Search for recommendations begun",
    EventKind.QUERY_SAVED: "SQL saved",
    EventKind.QUERY_DELETED: "Saved SQL deleted",
}


def _title(kind: EventKind) -> str:
    """Return the name of a kind of event in the words of the pages: "Draft of rules changed"."""
    words = kind.replace("pat.", "access token.").replace("draft.", "draft of rules.")
    words = words.replace("sign-in.", "sign-in ").replace("second-factor", "second factor")
    return _WORDS.get(kind) or words.replace(".", " ").replace("link-req", "link req").capitalize()


#: Choices of the filter by kind: value and title, in groups. A group of one kind has one choice.
KIND_CHOICES: Final = (
    ("Changes", (("documents", "Changes: all"), *_CHANGES)),
    ("Reads of logs", (("logs", "Reads of logs: all"), *_READS)),
    *(
        (
            title,
            (
                (group, f"{title}: all" if len(kinds) > 1 else title),
                *((kind.value, _title(kind)) for kind in kinds if len(kinds) > 1),
            ),
        )
        for (group, title), kinds in zip(_EVENT_TITLES.items(), EVENT_GROUPS.values(), strict=True)
    ),
)
KINDS: Final = frozenset((*EventKind, *(value for _, kinds in KIND_CHOICES for value, _ in kinds)))
