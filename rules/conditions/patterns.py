"""What tests compare texts with: RE2 patterns, patterns of table names, networks, and the folded case.

RE2's ``(?i)``, Go's ``strings.EqualFold`` and JavaScript's regexes with ``iu`` fold in the same way. A folded
text is in lower case, and has one letter for all that fold to the same.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

import re2

#: Letters that lower case leaves apart from the letter that they fold to.
_APART: Final = "ſµ\u0345\u1fbeϐϵϑϰϖϱςϕᲀᲁᲂᲃᲄᲅᲆᲇᲈẛ"

_TOGETHER: Final = "sμιιβεθκπρσφвдосттъѣꙋṡ"

_FOLDS: Final = str.maketrans(_APART, _TOGETHER)

#: The only letter that lower case changes and folding does not.
_KEPT: Final = "İ"


def fold_case(text: str) -> str:
    """Return a text without differences of case."""
    if text.isascii():
        return text.lower()
    lowered = "".join(letter if letter == _KEPT else letter.lower() for letter in text)
    return lowered.translate(_FOLDS)


def fold_case_sql(text: str) -> str:
    """Return SQL for `fold_case` of an expression. It is null if the expression is null."""
    folded = f"translate(lower(part), '{_APART}', '{_TOGETHER}')"
    parts = f"list_transform(string_split({text}, '{_KEPT}'), lambda part: {folded})"
    # ``translate`` is slow, and a text that has as many bytes as characters is ASCII.
    ascii_only = f"strlen({text}) = length({text})"
    return f"CASE WHEN {ascii_only} THEN lower({text}) ELSE array_to_string({parts}, '{_KEPT}') END"


#: Maximum length of a pattern in characters.
MAX_GLOB: Final = 2_000

#: The most patterns of one test, and the most names in ``tables`` of a request to explain. Each pattern is
#: compared with each name.
MAX_GLOBS: Final = 1_000

MAX_NAMES: Final = 1_000


def glob_matches(pattern: str, name: str) -> bool:
    """Return True if the pattern matches the whole name.

    The leftmost match of each piece between two ``*`` is enough, so no backtracking is needed.
    """
    head, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    tail = rest.pop()
    if len(name) < len(head) + len(tail) or not (name.startswith(head) and name.endswith(tail)):
        return False
    position, end = len(head), len(name) - len(tail)
    for piece in rest:
        position = name.find(piece, position, end)
        if position < 0:
            return False
        position += len(piece)
    return True


def glob_covers(outer: str, inner: str) -> bool:
    """Return True if ``outer`` certainly matches every name that ``inner`` matches.

    The ``*`` of the inner pattern is treated as a character of a name. Only a ``*`` of the outer pattern can
    match it, so True is never wrong.
    """
    return glob_matches(outer, inner)


Network: TypeAlias = IPv4Network | IPv6Network

Address: TypeAlias = IPv4Address | IPv6Address

_PREFIX: Final = re.compile(r"[^/%]+(/[0-9]{1,3})?", re.ASCII)

_MAPPED: Final = IPv6Network("::ffff:0:0/96")


class InvalidCidr(ValueError):
    """A text is not a network. ``suggestion`` is the network that was probably meant, if that is clear."""

    def __init__(self, problem: str, *, suggestion: str | None = None) -> None:
        super().__init__(problem)
        self.suggestion = suggestion


@lru_cache(maxsize=4096)
def parse_network(text: str) -> Network:
    """Read ``10.0.0.0/8``, ``2001:db8::/32`` or a single address.

    A network inside ``::ffff:0:0/96`` is returned as the IPv4 network that it maps.

    Raises:
        InvalidCidr: not a network, or with bits set to the right of the prefix.
    """
    if not _PREFIX.fullmatch(text):
        raise InvalidCidr("is not an address, or an address and a prefix length such as 10.0.0.0/8")
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise InvalidCidr("does not appear to be an IPv4 or IPv6 network") from None
    address = ip_address(text.partition("/")[0])
    if network.network_address != address:
        raise InvalidCidr(
            f"has bits set to the right of its prefix; the network is {network}", suggestion=str(network)
        )
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        mapped = IPv4Address(int(network.network_address) & 0xFFFFFFFF)
        return IPv4Network((mapped, network.prefixlen - 96))
    return network


def parse_address(text: str) -> Address | None:
    """Return a client address, or None if the text is not one. ``::ffff:10.0.0.1`` becomes ``10.0.0.1``."""
    if "%" in text:
        return None
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def contains_network(outer: str, inner: str) -> bool:
    """Return True if the network ``inner`` is part of the network ``outer``."""
    wide, narrow = parse_network(outer), parse_network(inner)
    if isinstance(wide, IPv4Network):
        return isinstance(narrow, IPv4Network) and narrow.subnet_of(wide)
    return isinstance(narrow, IPv6Network) and narrow.subnet_of(wide)


#: Maximum length of a pattern in characters.
MAX_PATTERN: Final = 2_000

#: Maximum memory of a compiled pattern in bytes. It also limits the time for compiling and matching.
_MAX_MEMORY: Final = 1 << 20


class InvalidRegex(ValueError):
    """A pattern does not compile. The message says why."""


class Regex:
    """A compiled pattern."""

    __slots__ = ("_compiled",)

    def __init__(self, compiled: re2._Regexp) -> None:
        self._compiled = compiled

    @property
    def size(self) -> int:
        """The number of instructions of the compiled program, a measure for the cost of compiling."""
        return int(self._compiled.programsize)

    def is_found_in(self, text: str) -> bool:
        """Return True if the pattern matches anywhere in the text.

        The text is searched as bytes, because ``\\C`` can match within a character.
        """
        return self._compiled.search(text.encode("utf-8", "surrogatepass")) is not None


def _make_options(*, ignore_case: bool) -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    options.max_mem = _MAX_MEMORY
    return options


#: By ``ignore_case``. Making the options takes half as long as compiling a pattern.
_OPTIONS: Final = {value: _make_options(ignore_case=value) for value in (False, True)}

#: Group 1 is there for ``\\C`` that is not quoted, group 2 is the name of a group.
_ESCAPES: Final = re.compile(r"\\Q.*?(?:\\E|\Z)|\\(C)|\\.|\(\?P<(\w+)>", re.DOTALL)


def _text_of(name: str | bytes) -> str:
    return name if isinstance(name, str) else name.decode("utf-8", "replace")


@lru_cache(maxsize=256)
def compile_regex(pattern: str, *, ignore_case: bool = False) -> Regex:
    """Compile a pattern. ``.`` does not match a newline; ``^`` and ``$`` match only at the ends of the text.

    Raises:
        InvalidRegex: the pattern is not RE2, is too large when compiled, or has a group ``(?<name>…)``, which
            DuckDB's version of RE2 does not support.
    """
    try:
        compiled = re2.compile(pattern.encode("utf-8", "surrogatepass"), _OPTIONS[ignore_case])
    except re2.error as error:
        detail = error.args[0] if error.args else "does not compile"
        raise InvalidRegex(
            detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
        ) from None
    if compiled.groupindex and "(?<" in pattern:
        raise InvalidRegex("write a named group as (?P<name>…)")
    # Other implementations of RE2 refuse all three, and a Gateway may use one of them.
    escapes = list(_ESCAPES.finditer(pattern))
    if any(escape[1] for escape in escapes):
        raise InvalidRegex(r"\C is a single byte, which other implementations of RE2 refuse; write .")
    if not "".join(map(_text_of, compiled.groupindex)).isascii():
        raise InvalidRegex("write the names of groups with ASCII letters, digits and _")
    if any(count > 1 for count in Counter(escape[2] for escape in escapes if escape[2]).values()):
        raise InvalidRegex("give each group a name of its own")
    return Regex(compiled)
