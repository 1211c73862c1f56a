"""What an hour of a tenant's warehouse costs, and from which day on. Contract: TenantConfig."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

Billing: TypeAlias = Literal["suspending", "busy", "always-on"]
BILLINGS: Final[tuple[Billing, ...]] = get_args(Billing)
MAX_PRICES: Final = 100
#: A week: the longest time until a warehouse suspends, and the longest minimum of a start.
MAX_SECONDS: Final = 604_800
DEFAULT_SUSPEND: Final = 300
DEFAULT_MINIMUM: Final = 60
_PER_HOUR_DECIMALS: Final = 4
#: Digits after the point in amounts (ISO 4217). All other currencies have two.
_DIGITS: Final[Mapping[str, int]] = {
    **dict.fromkeys(
        ("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV"), 0
    ),
    **dict.fromkeys(("XAF", "XOF", "XPF"), 0),
    **dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3),
    **dict.fromkeys(("CLF", "UYW"), 4),
}
_MS_PER_HOUR: Final = 3_600_000


def digits_of(currency: str) -> int:
    """Return the number of digits after the point in amounts of a currency."""
    return _DIGITS.get(currency, 2)


@dataclass(frozen=True, slots=True)
class Terms:
    """How a day is billed. ``per_hour`` is in ten-thousandths of the currency; None without a price."""

    first: date
    billing: Billing
    suspend_seconds: int
    minimum_seconds: int
    per_hour: int | None


@dataclass(frozen=True, slots=True)
class Pricing:
    """The prices of a warehouse.

    Days before the first price are billed like it, without money. Without any price, the warehouse suspends
    after `DEFAULT_SUSPEND` seconds.

    Attributes:
        terms: of every host that has none of its own.
        hosts: the terms of hosts that have prices of their own (``serverHostname`` of the log).
    """

    currency: str | None
    terms: Sequence[Terms]
    hosts: Mapping[str, Sequence[Terms]] = field(default_factory=dict)

    #: Milliseconds times ten-thousandths per hour in one unit of the currency.
    DIVISOR: ClassVar = _MS_PER_HOUR * 10**_PER_HOUR_DECIMALS

    @classmethod
    def of(cls, prices: Sequence[Mapping[str, Any]]) -> Pricing:
        """Return the prices in ``warehouse.pricing`` of a tenant's configuration."""
        by_host: dict[str | None, list[Mapping[str, Any]]] = {}
        for price in prices:
            by_host.setdefault(price.get("host"), []).append(price)
        terms = {host: _read_terms(own) for host, own in by_host.items()}
        return cls(
            prices[0]["currency"] if prices else None,
            terms.pop(None, [Terms(date.min, "suspending", DEFAULT_SUSPEND, DEFAULT_MINIMUM, None)]),
            {host: own for host, own in terms.items() if host is not None},
        )

    @property
    def digits(self) -> int:
        """The number of digits after the point in amounts."""
        return digits_of(self.currency or "")

    def on(self, day: date, host: str | None = None) -> Terms:
        """Return the terms in force on a day: of every host, or of one."""
        own = self.terms if host is None else self.hosts.get(host, self.terms)
        return own[bisect_right(own, day, key=lambda terms: terms.first) - 1]

    def each(self) -> Mapping[str | None, Sequence[Terms]]:
        """Return all terms: by the host that they are of, or None for every other host."""
        every: dict[str | None, Sequence[Terms]] = {None: self.terms}
        return every | dict(self.hosts)

    def suspending_after(self, seconds: int) -> Pricing:
        """Return the prices if the warehouse always suspended after these seconds."""

        def change(own: Sequence[Terms]) -> Sequence[Terms]:
            return [replace(terms, suspend_seconds=seconds) for terms in own]

        hosts = {host: change(own) for host, own in self.hosts.items()}
        return replace(self, terms=change(self.terms), hosts=hosts)

    def money(self, amount: int) -> str:
        """Return an amount in milliseconds times ten-thousandths per hour, with all digits of the currency.

        It is rounded here only: half up, away from zero.
        """
        digits = self.digits
        units = (2 * abs(amount) * 10**digits + self.DIVISOR) // (2 * self.DIVISOR)
        whole, part = divmod(units, 10**digits)
        sign = "-" if amount < 0 and units else ""
        return f"{sign}{whole}" + (f".{part:0{digits}}" if digits else "")


def _read_terms(prices: Sequence[Mapping[str, Any]]) -> Sequence[Terms]:
    terms = [
        Terms(
            first=date.fromisoformat(price["from"]),
            billing=price["billing"],
            suspend_seconds=price.get("autoSuspendSeconds", DEFAULT_SUSPEND),
            minimum_seconds=price.get("minimumSeconds", DEFAULT_MINIMUM),
            per_hour=_in_ten_thousandths(price["perHour"]),
        )
        for price in prices
    ]
    if terms[0].first > date.min:
        terms.insert(0, replace(terms[0], first=date.min, per_hour=None))
    return terms


def _in_ten_thousandths(text: str) -> int:
    whole, _, part = text.partition(".")
    return int(whole + part.ljust(_PER_HOUR_DECIMALS, "0"))
