"""Read the logs of PostgreSQL servers: csvlog, jsonlog, and text with a given ``log_line_prefix``.

A statement is a line ``duration: 1.234 ms  statement: …`` or ``… execute <name>: …``
(``log_min_duration_statement``), a line ``statement: …`` before ``duration: 1.234 ms`` of the same session
(``log_statement`` with ``log_duration``), or a plan of ``auto_explain``. A line is written when the statement
ends. DETAIL has the parameters; a line of ERROR has the statement that failed.
Source: postgresql.org/docs/18/runtime-config-logging.html (19.8) and auto-explain.html, read on 2026-11-29.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from analytics.history.clock import Clock
from analytics.history.rows import DEFAULT_HOST, BadHistory, Rows
from analytics.history.tables import (
    CSVLOG_COLUMNS,
    in_batches,
    looks_like,
    open_text,
    refusing_damage,
    unchanging,
)

if TYPE_CHECKING:
    from analytics.history.rows import Notes, Options

_FAILURES: Final = frozenset({"ERROR", "FATAL", "PANIC"})
#: A duration, and what took it or begins. Both may be absent.
_BEGIN: Final = re.compile(r"(?:duration: (\d+(?:\.\d+)?) ms\s*)?(?:(statement|execute (?P<name>[^:]*)): )?")
#: A portal that is fetched from again is no new request.
_FETCH: Final = "fetch from "
_PLAN: Final = re.compile(
    r"plan:\s+Query Text: (.*?)(?:\nQuery Parameters: (.*?))?\n(?=[^\n]*\(cost=)", re.DOTALL
)
_PARAMETER: Final = re.compile(r"\$(\d+) = (NULL|'(?:[^']|'')*')")


class _Line(NamedTuple):
    """A message of a log, with what belongs to it."""

    number: int
    time: Any
    user: str | None
    database: str
    session: str
    line: str
    application: str | None
    severity: str
    message: str
    detail: str
    query: str


class _Found(NamedTuple):
    """The text of a statement, how long it took, None if unknown, and its parameters."""

    text: str
    took_us: int | None
    parameters: tuple[str | None, ...] | None


#: A statement, and the line that ends it, or began it if no other did.
_Statement = tuple[_Line, _Found]


def read_postgresql(path: Path, options: Options, notes: Notes) -> Iterator[Rows]:  # noqa: ARG001
    """Yield the statements of a log. See `analytics.history.rows.Reader`."""
    clock, host = Clock(path, options.timezone), options.host
    # Sessions of two servers may have one id.
    prefix = "" if host == DEFAULT_HOST else f"{host}/"

    def make_rows(lines: Sequence[_Line], found: Iterable[Sequence[Any]]) -> Rows:
        texts, took_us, parameters = zip(*found, strict=True)
        columns = [*zip(*lines, strict=True)]
        (numbers, times, users, databases, sessions, places, applications, severities) = columns[:8]
        took_ms = [us if us is None else (us + 500) // 1_000 for us in took_us]
        ended = clock.read_all(times, "line", numbers)
        return Rows(
            id=[f"{prefix}{session}/{place}" for session, place in zip(sessions, places, strict=True)],
            text=texts,
            started_at=[(end - (us or 0)) // 1_000 for end, us in zip(ended, took_us, strict=True)],
            took_ms=took_ms,
            total_ms=took_ms,
            user=users,
            session=sessions,
            host=repeat(host),
            client=applications,
            database=databases,
            failed=[severity in _FAILURES for severity in severities],
            parameters=parameters,
        )

    with unchanging(path):
        yield from in_batches(_find_statements(_read_lines(path, options)), make_rows)


def _find_statements(lines: Iterable[_Line]) -> Iterator[_Statement]:
    """Yield the statements of lines. One may need two lines of its session."""
    #: By session, a statement that may get its duration by the next line, or be logged again.
    waiting: dict[str, _Statement] = {}
    for line in lines:
        session = line.session
        before = waiting.pop(session, None)
        if line.severity in _FAILURES:
            yield from _fail(line, before)
            continue
        _, ms, step, name, rest = _BEGIN.split(line.message, 1)
        took_us = _as_us(ms) if ms else None
        if step:
            # Otherwise it is logged twice, with its plan and without.
            if before is not None and (before[1].took_us is None or before[1].text != rest.strip()):
                yield from _flush(before)
            if name and name.startswith(_FETCH):
                continue
            found = _Found(rest, took_us, _read_parameters(line.detail))
            if took_us is None:
                waiting[session] = line, found
            else:
                yield line, found
            continue
        if ms and not rest and before is not None and before[1].took_us is None:
            yield line, before[1]._replace(took_us=took_us)
        elif ms and (plan := _PLAN.match(rest)):
            yield from _flush(before, only_planned=True)
            waiting[session] = line, _Found(plan[1].strip(), took_us, _read_parameters(plan[2] or ""))
        elif before is not None and before[1].took_us is None:
            # The lines of parsing and binding are between a statement and its duration.
            waiting[session] = before
        else:
            yield from _flush(before)
    # No line followed these.
    yield from chain.from_iterable(map(_flush, waiting.values()))


def _fail(line: _Line, before: _Statement | None) -> Iterator[_Statement]:
    # The text that was logged before is of the statement that failed.
    yield from _flush(before, only_planned=True)
    if line.query:
        yield line, _Found(line.query, None, _read_parameters(line.detail))


def _flush(statement: _Statement | None, *, only_planned: bool = False) -> Iterator[_Statement]:
    """Yield a statement of which only the plan was logged, or only the text."""
    if statement is not None and not (only_planned and statement[1].took_us is None):
        yield statement


@lru_cache(65_536)
def _as_us(ms: str) -> int:
    whole, _, part = ms.partition(".")
    return int(whole) * 1_000 + int(part.ljust(3, "0")[:3])


def _read_parameters(detail: str) -> tuple[str | None, ...] | None:
    """Return the values in a DETAIL; None if it has none."""
    if not detail:
        return None
    found = {
        int(number): None if value == "NULL" else value[1:-1].replace("''", "'")
        for number, value in _PARAMETER.findall(detail)
    }
    return tuple(found.get(number) for number in range(1, max(found) + 1)) if found else None


def _read_lines(path: Path, options: Options) -> Iterator[_Line]:
    with refusing_damage(path):
        with open_text(path) as stream:
            head = stream.read(64 << 10)
        if not head:
            raise BadHistory(f"{path.name} is empty. Export the log of other days.")
        if options.log_line_prefix:
            yield from _read_text(path, options.log_line_prefix)
        elif head.lstrip().startswith("{"):
            yield from _read_jsonlog(path)
        else:
            yield from _read_csvlog(path)


def _read_csvlog(path: Path) -> Iterator[_Line]:
    with open_text(path) as stream:
        records = csv.reader(stream, strict=True)
        try:
            for record in records:
                number = records.line_num
                if len(record) < CSVLOG_COLUMNS:
                    raise BadHistory(_explain_no_csvlog(path, number, record))
                yield _Line(
                    number,
                    record[0],
                    record[1] or None,
                    record[2],
                    record[5],
                    record[6],
                    record[22] or None,
                    record[11],
                    record[13],
                    record[14],
                    record[19],
                )
        except csv.Error as error:
            raise BadHistory(
                f"{path.name}, line {records.line_num}: {error}. Its quotes break there: copy the log again."
            ) from error


def _explain_no_csvlog(path: Path, number: int, record: list[str]) -> str:
    looks = looks_like(record) or (
        " If it is a log in text, give its --log-line-prefix, as SHOW log_line_prefix prints it."
    )
    return (
        f"{path.name}, line {number}: {len(record)} values, and csvlog has {CSVLOG_COLUMNS} or more.{looks}"
    )


def _read_jsonlog(path: Path) -> Iterator[_Line]:
    decode = msgspec.json.Decoder().decode
    with open_text(path) as stream:
        for number, text in enumerate(stream, start=1):
            try:
                record = decode(text)
                yield _Line(
                    number=number,
                    time=record["timestamp"],
                    user=record.get("user"),
                    database=record.get("dbname", ""),
                    session=record["session_id"],
                    line=str(record["line_num"]),
                    application=record.get("application_name"),
                    severity=record["error_severity"],
                    message=record.get("message", ""),
                    detail=record.get("detail", ""),
                    query=record.get("statement", ""),
                )
            except msgspec.DecodeError as error:
                raise BadHistory(
                    f"{path.name}, line {number} is not JSON: {error}. If the server still writes it, copy "
                    "it first."
                ) from error
            except (KeyError, TypeError, AttributeError) as error:
                raise BadHistory(_explain_no_jsonlog(path, number, record, error)) from error


def _explain_no_jsonlog(path: Path, number: int, record: Any, error: Exception) -> str:
    keys = ", ".join(map(str, record))[:200] if isinstance(record, dict) else type(record).__name__
    return (
        f"{path.name}, line {number} is no line of jsonlog: it has no {error}."
        f"{looks_like([*record] if isinstance(record, dict) else [])} It has: {keys}"
    )


#: What an escape of ``log_line_prefix`` writes, and the fields that are read.
_ESCAPES: Final = {
    "a": "(?P<application>.*?)",
    "u": "(?P<user>.*?)",
    "d": "(?P<database>.*?)",
    "h": r"(?P<host>\S*?)",
    "r": r"(?P<remote>\S*?)",
    "p": r"(?P<pid>\d+)",
    "c": r"(?P<session>[0-9a-f]+\.[0-9a-f]+)",
    "l": r"(?P<line>\d+)",
    "m": r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} [\w+-]+)",
    "t": r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [\w+-]+)",
    "n": r"(?P<epoch>\d+\.\d{3})",
    "%": "%",
}
_ESCAPE: Final = re.compile(r"%(-?\d+)?([a-zA-Z%])")
_AFTER_PREFIX: Final = r"(?P<severity>[A-Z]+\d?):\s\s?(?P<message>.*)"


def _compile_prefix(prefix: str) -> re.Pattern[str]:
    """Return the pattern of a line.

    Raises:
        BadHistory: the prefix does not say when a line was written, and by which session.
    """
    pattern, end, found, is_optional = "", 0, set[str](), False
    for match in _ESCAPE.finditer(prefix):
        pattern += re.escape(prefix[end : match.start()])
        end, name = match.end(), match[2]
        if name == "q":
            # The processes of the server itself write the prefix up to here.
            pattern += "(?:"
            is_optional = True
            continue
        pattern += r"\s*" if match[1] else ""
        pattern += r".*?" if name in found else _ESCAPES.get(name, r".*?")
        pattern += r"\s*" if match[1] else ""
        found.add(name)
    pattern += re.escape(prefix[end:]) + (")?" if is_optional else "")
    if not found & {"m", "t", "n"} or not found & {"p", "c"}:
        raise BadHistory(
            "--log-line-prefix must have %m, %t or %n, the time, and %p or %c, the session: "
            "give what SHOW log_line_prefix prints."
        )
    return re.compile(pattern + _AFTER_PREFIX, re.DOTALL)


def _read_text(path: Path, prefix: str) -> Iterator[_Line]:
    pattern = _compile_prefix(prefix)
    #: By session, the message to which DETAIL and STATEMENT may follow.
    open_lines: dict[str, _Line] = {}
    for number, text in _join_lines(path, pattern):
        match = pattern.match(text)
        if match is None:
            if number == 1:
                raise BadHistory(
                    f"{path.name}, line 1 does not begin with --log-line-prefix {prefix!r}: {text[:80]!r}. "
                    "Give what SHOW log_line_prefix prints."
                )
            continue
        got = match.groupdict()
        session = got.get("session") or got.get("pid") or ""
        severity, message = got["severity"], got["message"]
        if severity in {"DETAIL", "STATEMENT", "HINT", "CONTEXT", "QUERY", "LOCATION"}:
            if (before := open_lines.get(session)) is not None:
                if severity == "DETAIL":
                    open_lines[session] = before._replace(detail=message)
                elif severity == "STATEMENT":
                    open_lines[session] = before._replace(query=message)
            continue
        if (before := open_lines.pop(session, None)) is not None:
            yield before
        open_lines[session] = _Line(
            number=number,
            time=got.get("time") or int(float(got.get("epoch") or 0) * 1_000),
            user=got.get("user") or None,
            database=got.get("database") or "",
            session=session,
            # Without %l, the place in the file, which is the same when it is read again.
            line=got.get("line") or f"{path.name}:{number}",
            application=got.get("application") or None,
            severity=severity,
            message=message,
            detail="",
            query="",
        )
    yield from open_lines.values()


def _join_lines(path: Path, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield the messages with the numbers of their first lines. Lines that go on begin with a tab."""
    parts: list[str] = []
    first = 1
    with open_text(path) as stream:
        for number, line in enumerate(stream, start=1):
            text = line.rstrip("\r\n")
            if parts and (text.startswith("\t") or not pattern.match(text)):
                parts.append(text.removeprefix("\t"))
                continue
            if parts:
                yield first, "\n".join(parts)
            parts, first = [text], number
    if parts:
        yield first, "\n".join(parts)
