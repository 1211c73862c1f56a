"""Generate requests with the rhythm of a working week: consumer, statement and time."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from analytics.demo.statements import Call, Persona, Statement, make_call
from logs.layout import HOUR_MS, day_start_ms

if TYPE_CHECKING:
    from random import Random

    from analytics.demo.profile import Profile

_SATURDAY: Final = 5

_OFFICE: Final = (1, 1, 1, 1, 1, 2, 6, 20, 55, 90, 100, 95, 70, 85, 100, 90, 75, 50, 25, 12, 8, 5, 3, 2)
_ALWAYS: Final = (
    14,
    10,
    8,
    7,
    8,
    12,
    22,
    40,
    62,
    78,
    88,
    92,
    90,
    92,
    96,
    100,
    98,
    92,
    88,
    84,
    72,
    52,
    34,
    22,
)
_NIGHTLY: Final = (
    40,
    100,
    100,
    60,
    40,
    90,
    30,
    25,
    25,
    25,
    25,
    25,
    25,
    25,
    25,
    25,
    25,
    25,
    20,
    20,
    20,
    20,
    25,
    30,
)

#: By persona: the weight of each hour (UTC) of a weekday, a factor for weekends, and the relative number of
#: bursts.
_RHYTHM: Final[dict[Persona, tuple[tuple[int, ...], float, float]]] = {
    Persona.DASHBOARD: (_OFFICE, 0.25, 1.0),
    Persona.ANALYST: (_OFFICE, 0.06, 1.0),
    Persona.APPLICATION: (_ALWAYS, 0.8, 1.5),
    Persona.LOADER: (_NIGHTLY, 0.7, 0.4),
    Persona.OPERATOR: (_OFFICE, 0.1, 0.025),
}

#: By persona: the least and the most statements in a burst, and the most ms between two statements.
_BURSTS: Final[dict[Persona, tuple[int, int, int]]] = {
    Persona.DASHBOARD: (3, 7, 700),
    Persona.ANALYST: (1, 4, 80_000),
    Persona.APPLICATION: (1, 6, 300),
    Persona.LOADER: (1, 1, 1),
    Persona.OPERATOR: (1, 2, 20_000),
}

#: The share of dashboard bursts that a second viewer repeats at once. The Gateway holds these requests until
#: the first results are ready.
_SECOND_VIEWER_SHARE: Final = 0.15
_REPEAT_SHARE: Final = 0.25
_NOCACHE_SHARE, _CACHE_SHARE = 0.012, 0.008

#: Requests without a statement: their status, and their number as a share of the statements.
_WITHOUT_STATEMENT: Final = (("SPOOFED", 0.030), ("TELEMETRY", 0.015), ("AUTH_ERROR", 0.004))


class Arrival(NamedTuple):
    """A request that arrives at the Gateway.

    ``consumer`` is an index in the profile. Without a statement, ``call`` is None and ``status`` is the
    status of the log entry.
    """

    at: int
    consumer: int
    call: Call | None
    status: str = ""
    override: str | None = None


class Traffic:
    """The arrivals of one tenant, hour by hour: about ``entries`` in ``days`` days from ``first_day``."""

    def __init__(self, profile: Profile, *, rng: Random, first_day: date, days: int, entries: int) -> None:
        self._profile = profile
        self._rng = rng
        self._count = 0
        self._choices = {persona: _weighted(profile.statements, persona) for persona in Persona}
        self._dashboards = [
            index for index, consumer in enumerate(profile.consumers) if consumer.persona is Persona.DASHBOARD
        ]
        weights = [
            sum(self._shares(hour % 24, weekend=(first_day.weekday() + hour // 24) % 7 >= _SATURDAY))
            for hour in range(days * 24)
        ]
        scale = entries / sum(weights)
        #: The start of each hour (epoch ms), and the number of arrivals until its end.
        self.hours = [
            (day_start_ms(first_day) + hour * HOUR_MS, round(due * scale))
            for hour, due in enumerate(accumulate(weights))
        ]

    def arrivals(self, hour_start: int, *, due: int) -> list[Arrival]:
        """Return the unsorted arrivals of one hour, so that the total since the beginning is ``due``."""
        when = datetime.fromtimestamp(hour_start / 1000, UTC)
        cumulative = list(accumulate(self._shares(when.hour, weekend=when.weekday() >= _SATURDAY)))
        arrivals: list[Arrival] = []
        consumers = range(len(self._profile.consumers))
        while self._count + len(arrivals) < due:
            (consumer,) = self._rng.choices(consumers, cum_weights=cumulative)
            burst = self._burst(consumer, hour_start=hour_start, day=when.date())
            arrivals += burst
            if self._profile.consumers[consumer].persona is Persona.DASHBOARD:
                arrivals += self._second_viewer(burst, hour_start=hour_start)
        self._count += len(arrivals)
        return arrivals

    def _shares(self, hour: int, *, weekend: bool) -> list[float]:
        shares = []
        for consumer in self._profile.consumers:
            weights, weekend_factor, bursts = _RHYTHM[consumer.persona]
            share = weights[hour] * bursts * consumer.share
            shares.append(share * weekend_factor if weekend else share)
        return shares

    def _burst(self, consumer: int, *, hour_start: int, day: date) -> list[Arrival]:
        rng = self._rng
        persona = self._profile.consumers[consumer].persona
        fewest, most, gap = _BURSTS[persona]
        statements, cumulative = self._choices[persona]
        last = hour_start + HOUR_MS - 1
        at = hour_start + int(rng.random() * HOUR_MS)
        arrivals: list[Arrival] = []
        call: Call | None = None
        for statement in rng.choices(statements, cum_weights=cumulative, k=rng.randint(fewest, most)):
            if call is None or persona is not Persona.ANALYST or rng.random() > _REPEAT_SHARE:
                call = make_call(statement, rng=rng, day=day)
            arrivals.append(Arrival(at, consumer, call, override=self._override(call, persona)))
            chance = rng.random()
            for status, share in _WITHOUT_STATEMENT:
                if chance < share:
                    arrivals.append(Arrival(at, consumer, None, status=status))
                    break
                chance -= share
            at = min(at + 1 + int(rng.random() * gap), last)
        return arrivals

    def _second_viewer(self, burst: list[Arrival], *, hour_start: int) -> list[Arrival]:
        rng = self._rng
        if rng.random() > _SECOND_VIEWER_SHARE:
            return []
        viewer = rng.choice(self._dashboards)
        delay = int(rng.random() * 1_500)
        last = hour_start + HOUR_MS - 1
        return [
            Arrival(min(arrival.at + delay, last), viewer, arrival.call) for arrival in burst if arrival.call
        ]

    def _override(self, call: Call, persona: Persona) -> str | None:
        if persona not in {Persona.ANALYST, Persona.DASHBOARD} or not call.statement.is_read_only:
            return None
        chance = self._rng.random()
        if chance < _NOCACHE_SHARE:
            return "nocache"
        return "cache" if chance < _NOCACHE_SHARE + _CACHE_SHARE else None


def _weighted(statements: tuple[Statement, ...], persona: Persona) -> tuple[list[Statement], list[float]]:
    chosen = [statement for statement in statements if persona in statement.personas]
    return chosen, list(accumulate(statement.weight for statement in chosen))
