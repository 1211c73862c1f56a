"""Bodies: strict parsers, the choice of a response's media type (RFC 9110, 12.5.1), and the renderer of JSON.

Imports no view, because DRF's settings name the classes, and DRF imports them with its own views.
"""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn

from django.http.request import MediaType
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser, FormParser
from rest_framework.renderers import BaseRenderer

from tenantadmin.lib.core.errors import BadRequest, Detail, InvalidJson, NotAcceptable
from tenantadmin.lib.core.json_lines import JsonFault, read_lines
from tenantadmin.lib.core.rendering import dump_json

if TYPE_CHECKING:
    from rest_framework.request import Request

#: No document of the contract is nested deeper, and Python's recursion is limited.
MAX_DEPTH = 64
#: A fault that comes later is not put into words: reading the lines is slow.
_MOST_READ: Final = 100_000
#: Words of a body in a message may be long.
_MAX_MESSAGE: Final = 200


def parse_json(text: bytes, *, any_text: bool = False) -> Any:
    """Parse one JSON value. A byte order mark before it is ignored (RFC 8259, 8.1).

    These are refused, too: duplicate keys; NaN and infinities; numbers that overflow a double; lone
    surrogates and NUL characters, which PostgreSQL cannot store (with ``any_text``, only in keys); nesting
    deeper than `MAX_DEPTH`.

    Raises:
        InvalidJson: the text is not JSON, or has one of these.
    """
    try:
        decoded = text.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidJson(f"The body is not UTF-8 (byte {error.start}).") from error
    if _is_too_deep(decoded):
        raise InvalidJson(f"The body is nested deeper than {MAX_DEPTH} levels.")
    try:
        value = json.loads(
            decoded,
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except json.JSONDecodeError as error:
        raise InvalidJson(f"The body is not valid JSON. {_describe_fault(decoded, error)}") from error
    except ValueError as error:  # an integer of thousands of digits
        raise InvalidJson("The body has a number with too many digits.") from error
    _refuse_unstorable(value, only_keys=any_text)
    return value


class StrictJsonParser(BaseParser):
    """Parse ``application/json`` with `parse_json`."""

    media_type = "application/json"
    any_text = False

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,  # noqa: ARG002
        parser_context: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> Any:
        try:
            text = stream.read()
        except OSError as error:
            raise BadRequest("The body ended before its declared length.") from error
        return parse_json(text, any_text=self.any_text)


class AnyTextJsonParser(StrictJsonParser):
    """Allow NUL characters and lone surrogates in values. The operation checks them itself."""

    any_text = True


class StrictFormParser(FormParser):
    """Parse ``application/x-www-form-urlencoded`` into a dict. Refuse repeated fields (RFC 6749, 3.2)."""

    def parse(  # type: ignore[override] # DRF accepts any type from a parser
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, str]:
        fields = super().parse(stream, media_type, parser_context)
        repeated = [name for name, values in fields.lists() if len(values) > 1]
        if repeated:
            raise BadRequest(
                f"The form field {repeated[0]} is given more than once.",
                details=[Detail(f"/{name}", "repeated-field", f"Send '{name}' once.") for name in repeated],
            )
        form: dict[str, str] = fields.dict()
        return form


def _describe_fault(text: str, error: json.JSONDecodeError) -> str:
    """Say on which line what is wrong."""
    if error.pos <= _MOST_READ:
        try:
            read_lines(text)
        except JsonFault as fault:
            said = str(fault)
            shown = said if len(said) <= _MAX_MESSAGE else f"{said[: _MAX_MESSAGE - 1]}…"
            return f"Line {fault.line}: {shown}"
    return f"Something is wrong in line {error.lineno}, column {error.colno}."


def _is_too_deep(text: str) -> bool:
    """Return True if brackets outside strings are nested deeper than `MAX_DEPTH`. Uses no recursion."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth, in_string, position, end = 0, False, 0, len(text)
    while position < end:
        character = text[position]
        if in_string:
            if character == "\\":
                position += 1
            elif character == '"':
                in_string = False
        elif character == '"':
            in_string = True
        elif character in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif character in "]}":
            depth -= 1
        position += 1
    return False


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InvalidJson(f"The key {json.dumps(key)} is given more than once in one object.")
            seen.add(key)
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidJson(f"{name} is not a JSON number.")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise InvalidJson(f"The number {text[:40]} is out of range.")
    return number


def _refuse_unstorable(value: Any, *, only_keys: bool) -> None:
    """Refuse a NUL or a lone surrogate in a key or in any text. The error has the place of one of them."""
    pending: list[tuple[str, Any]] = [("", value)]
    while pending:
        path, node = pending.pop()
        if isinstance(node, str):
            if not only_keys:
                _refuse_text(path, node)
        elif isinstance(node, dict):
            for key, member in node.items():
                _refuse_text(path, key)
                if isinstance(member, str | dict | list):
                    pending.append((f"{path}/{key.replace('~', '~0').replace('/', '~1')}", member))
        elif isinstance(node, list):
            pending.extend(
                (f"{path}/{index}", member)
                for index, member in enumerate(node)
                if isinstance(member, str | dict | list)
            )


def _refuse_text(path: str, text: str) -> None:
    if text.isascii() and "\0" not in text:
        return
    if "\0" in text:
        raise InvalidJson(
            "A text has a NUL character.",
            details=[Detail(path, "nul-character", "Remove the NUL character (\\u0000).")],
        )
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidJson(
            "A text has half of a surrogate pair.",
            details=[Detail(path, "lone-surrogate", "Send the whole character, or remove it.")],
        )


class OneRepresentation(BaseContentNegotiation):
    """Use the view's first renderer and ignore ``Accept``. A view with several media types chooses itself.

    A body of a type such as ``application/merge-patch+json`` is JSON (RFC 6839, 3.1).
    """

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        media_type = (request.content_type or "").partition(";")[0].strip().lower()
        if media_type.startswith("application/") and media_type.endswith("+json"):
            media_type = "application/json"
        return next((parser for parser in parsers if not media_type or parser.media_type == media_type), None)

    def select_renderer(
        self,
        request: Request,  # noqa: ARG002
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,  # noqa: ARG002
    ) -> tuple[BaseRenderer, str]:
        first = next(iter(renderers))
        return first, str(first.media_type)


class JsonRenderer(BaseRenderer):
    """Render ``application/json``. Bytes must be JSON already and are sent unchanged."""

    media_type = "application/json"
    format = "json"
    charset = None
    render_style = "binary"

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,  # noqa: ARG002
        renderer_context: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> bytes:
        if data is None:
            return b""
        return data if isinstance(data, bytes) else dump_json(data)


def preferred_media_type(accept: str, offered: Sequence[str]) -> str:
    """Return the type of ``offered`` with the highest weight in ``accept``. Without a header, the first.

    The most specific range that fits a type gives its weight. A weight of 0 excludes the type. If weights are
    equal, an exact name goes before a wildcard, then the earlier range before the later. Parameters
    are ignored, unless a type is offered with them, such as ``text/csv; for=people``.

    Raises:
        NotAcceptable: none fits.
    """
    if not accept.strip():
        return offered[0]
    variants = [MediaType(media_type) for media_type in offered if ";" in media_type]
    ranges = [(entry, _variant(entry, variants)) for entry in _ranges(accept)]
    best = None
    best_rank = (0.0, 0, 0)
    for media_type in offered:
        main, _, sub = media_type.partition("/")
        matches = [
            (_count_wildcards(entry), position, entry.quality)
            for position, (entry, variant) in enumerate(ranges)
            if variant == media_type
            or (not variant and (entry.main_type, entry.sub_type) in {(main, sub), (main, "*"), ("*", "*")})
        ]
        if not matches:
            continue
        wildcards, position, quality = min(matches)
        rank = (quality, -wildcards, -position)
        if quality > 0 and rank > best_rank:
            best, best_rank = media_type, rank
    if best is None:
        raise NotAcceptable(f"None of the types in Accept is offered. Ask for {', '.join(offered)} or */*.")
    return best


def accepts_gzip(request: Request) -> bool:
    """Return True if ``Accept-Encoding`` names gzip with a weight that is not 0."""
    for part in request.headers.get("Accept-Encoding", "").split(","):
        coding, _, weight = part.replace(" ", "").lower().partition(";q=")
        if coding == "gzip":
            return weight.rstrip("0") not in {"0", "0.", ""} if weight else True
    return False


def _ranges(accept: str) -> Iterator[MediaType]:
    for part in accept.split(","):
        try:
            yield MediaType(part)
        except ValueError:  # a parameter in an unknown charset
            yield MediaType(part.partition(";")[0])


def _variant(entry: MediaType, variants: Sequence[MediaType]) -> str:
    """Return the type with parameters that a range names, or an empty text."""
    named = {name.lower(): value.lower() for name, value in entry.params.items()}
    fitting = (
        str(variant)
        for variant in variants
        if (entry.main_type, entry.sub_type) == (variant.main_type, variant.sub_type)
        and variant.params.items() <= named.items()
    )
    return next(fitting, "")


def _count_wildcards(entry: MediaType) -> int:
    return (entry.main_type, entry.sub_type).count("*")
