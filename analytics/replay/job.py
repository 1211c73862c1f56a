"""The input of a replay: files, rulesets, markers made by people, and settings of the Gateway."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from accounts.tenants.pricing import Pricing
from rules.tables.warehouse import ANY_TABLES, WarehouseTables
from tenantadmin.lib.core.timestamps import days_before

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from rules.language import Rule


@dataclass(frozen=True, slots=True)
class Ruleset:
    """Rules that apply from a time on (epoch ms). The first ruleset of a list also applies before it."""

    starts_at: int
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Marker:
    """An invalidation marker that a person made: its target and its time (epoch ms)."""

    rule_id: str
    at: int


@dataclass(frozen=True, slots=True)
class Gateway:
    """What the Gateway does by itself; None if it is not known.

    Attributes:
        nocache: it skips the cache for requests with ``cacheOverride`` = ``nocache``.
        non_deterministic: it skips the cache for statements with non-deterministic functions, unless
            ``cacheOverride`` is ``cache``.
        keys_per_user: it keeps the results of users apart, also under rules that do not vary.
    """

    nocache: bool | None = None
    non_deterministic: bool | None = None
    keys_per_user: bool | None = None


@dataclass(frozen=True, slots=True)
class DayFile:
    """A Parquet file of a day. A day may have several, in the order of their rows."""

    day: date
    file: str


@dataclass(frozen=True, slots=True)
class Job:
    """One replay.

    Attributes:
        files: the files of the chosen days and of the warm-up days before them.
        first_day, last_day: the days that are counted, both included.
        subject: the ruleset to replay.
        current: the current ruleset.
        in_force: the rulesets that were in force, oldest first, for the calibration.
        changes: the times of all writes of the ruleset (epoch ms). Each write empties the cache.
        gateway: the settings that the caller knows. The others are learned from the log.
        cache_enabled: False if the tenant's configuration has the Gateway decline every cache rule. The
            rulesets are replayed all the same.
        hour: the current hour of the day (UTC). The cost of publishing has it as ``now``.
        tables: what the tenant says of its tables.
        pricing: how the warehouse bills its time.
    """

    files: Sequence[DayFile]
    first_day: date
    last_day: date
    subject: tuple[Rule, ...]
    current: tuple[Rule, ...]
    in_force: Sequence[Ruleset] = ()
    changes: Sequence[int] = ()
    markers: Sequence[Marker] = ()
    warmup_days: int = 1
    gateway: Gateway = field(default_factory=Gateway)
    cache_enabled: bool = True
    hour: int = 0
    tables: WarehouseTables = ANY_TABLES
    pricing: Pricing = field(default_factory=lambda: Pricing.of([]))

    @property
    def rulesets_in_force(self) -> Sequence[Ruleset]:
        """The rulesets that were in force; the current one if they are not known."""
        return self.in_force or [Ruleset(0, self.current)]

    @property
    def has_one_ruleset(self) -> bool:
        """True if the current ruleset was in force all the time."""
        return [ruleset.rules for ruleset in self.rulesets_in_force] == [self.current]

    @property
    def before(self) -> date:
        """The day before the window."""
        return days_before(self.first_day, 1)
