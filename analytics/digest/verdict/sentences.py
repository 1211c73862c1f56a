"""The shape of a verdict: a sentence for each finding, each with its state."""

from __future__ import annotations

import datetime as dt
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from tenantadmin.lib.core.structs import JsonStruct


class VerdictState(StrEnum):
    """How a tenant is. What is found is told in this order, the worst first."""

    NO_LOG_YET = "no-log-yet"
    LOG_LATE = "log-late"
    HIT_RATE_FELL = "hit-rate-fell"
    FINDING = "finding"
    NOT_JUDGED_YET = "not-judged-yet"
    FINDING_CLOSED = "finding-closed"
    HIT_RATE_RECOVERED = "hit-rate-recovered"
    HEALTHY = "healthy"


STATES: Final = [state.value for state in VerdictState]


class VerdictSentence(JsonStruct, kw_only=False):
    """One thing that was found."""

    state: VerdictState
    text: Annotated[str, Meta(description="Without a full stop.")]
    day: Annotated[dt.date | None, Meta(description="The day that the sentence is about, or the log's last.")]

    @property
    def is_good(self) -> bool:
        return self.state is VerdictState.HEALTHY

    @property
    def is_bad(self) -> bool:
        return self.is_open or self.state is VerdictState.LOG_LATE

    @property
    def is_open(self) -> bool:
        """True if a digest found it, and nothing has ended it since."""
        return self.state in {VerdictState.HIT_RATE_FELL, VerdictState.FINDING}

    @property
    def is_closed(self) -> bool:
        """True if the rules and the configuration of today no longer cause it."""
        return self.state is VerdictState.FINDING_CLOSED

    @property
    def has_digest(self) -> bool:
        """True if the digest of ``day`` says more."""
        return self.is_open or self.is_closed or self.state is VerdictState.HIT_RATE_RECOVERED


class Verdict(VerdictSentence, kw_only=False):
    """How a tenant is: the worst that was found."""

    more: Annotated[list[VerdictSentence], Meta(description="What else was found, the worst first.")]
    advice: Annotated[
        str | None, Meta(description="What is recommended now, for people to read. Absent if nothing is.")
    ] = None

    @property
    def open_findings(self) -> list[VerdictSentence]:
        """What must be mended, the worst first."""
        return [sentence for sentence in (self, *self.more) if sentence.is_open]
