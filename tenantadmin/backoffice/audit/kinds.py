"""The kinds of records that the audit is filtered by."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from accounts.models.events import EventKind


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
    "rights": ("user.", "roles.", "membership.", "grant."),
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
    "logs": (Source.READ, Source.QUERY),
    "raw-reads": (Source.READ,),
    "queries": (Source.QUERY,),
    "figures": (Source.QUERY,),
}
_EVENT_TITLES: Final = {
    "sign-ins": "Sign-ins and sessions",
    "tokens": "Tokens",
    "rights": "People and rights",
    "staff": "Acts of staff",
    "other-events": "Other events",
}
#: Choices of the filter by kind: value and title, in groups.
KIND_CHOICES: Final = (
    (
        "Groups",
        (
            *_EVENT_TITLES.items(),
            ("documents", "Changes of documents"),
            ("logs", "Reads of logs: all"),
            ("raw-reads", "Reads of logs: raw files and single requests"),
            ("queries", "Reads of logs: SQL that people wrote"),
            ("figures", "Reads of logs: by pages that show figures"),
        ),
    ),
    *(
        (
            title,
            tuple(
                (
                    kind.value,
                    kind.replace("pat.", "access token.").replace(".", ": ").replace("-", " ").capitalize(),
                )
                for kind in EVENT_GROUPS[group]
            ),
        )
        for group, title in _EVENT_TITLES.items()
    ),
)
KINDS: Final = frozenset(value for _, kinds in KIND_CHOICES for value, _ in kinds)
