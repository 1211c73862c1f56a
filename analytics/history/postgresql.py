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
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from analytics.history.rows import DEFAULT_HOST, BadHistory, Row
from analytics.history.tables import CSVLOG_COLUMNS, Clock, looks_like, open_text, unchanging

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from analytics.history.rows import Notes, Options

_FAILURES: Final = frozenset({"ERROR", "FATAL", "PANIC"})
_DURATION: Final = re.compile(r"duration: (\d+(?:\.\d+)?) ms")
_STEP: Final = re.compile(r"(?:statement|execute (?P<name>[^:]*)|(?P<other>parse|bind) [^:]*): ")
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


class _Started(NamedTuple):
    """A statement of a session that may get its duration by the next line, or be logged again."""

    line: _Line
    text: str
    parameters: list[str | None] | None
    took_us: int | None


def read_postgresql(path: Path, options: Options, notes: Notes) -> Iterator[Row]:  # noqa: ARG001
    """Yield the statements of a log. See `analytics.history.rows.Reader`."""
    statements = _Statements(Clock(path, options.timezone), options.host)
    with unchanging(path):
        for line in _read_lines(path, options):
            yield from statements.read(line)
        yield from statements.end()


class _Statements:
    """Makes statements of lines. A statement may need two lines of its session."""

    def __init__(self, clock: Clock, host: str) -> None:
        self._clock, self._host = clock, host
        # Sessions of two servers may have one id.
        self._prefix = "" if host == DEFAULT_HOST else f"{host}/"
        self._waiting: dict[str, _Started] = {}

    def read(self, line: _Line) -> Iterator[Row]:
        """Yield the statements that a line ends."""
        before = self._waiting.pop(line.session, None)
        if line.severity in _FAILURES:
            yield from self._fail(line, before)
            return
        duration = _DURATION.match(line.message)
        rest = line.message[duration.end() :].lstrip() if duration else line.message
        took_us = _as_us(duration[1]) if duration else None
        step = _STEP.match(rest)
        if step is not None and not step["other"]:
            is_fetch = (step["name"] or "").startswith(_FETCH)
            yield from self._step(line, before, rest[step.end() :], took_us, is_fetch=is_fetch)
        elif duration and not rest and before is not None and before.took_us is None:
            yield self._make(line, before.text, took_us, before.parameters)
        elif duration and (plan := _PLAN.match(rest)):
            yield from self._flush(before, only_planned=True)
            parameters = _read_parameters(plan[2] or "")
            self._waiting[line.session] = _Started(line, plan[1].strip(), parameters, took_us)
        elif before is not None and before.took_us is None:
            # The lines of parsing and binding are between a statement and its duration.
            self._waiting[line.session] = before
        else:
            yield from self._flush(before)

    def end(self) -> Iterator[Row]:
        """Yield the statements that no line followed."""
        for started in self._waiting.values():
            yield from self._flush(started)

    def _flush(self, started: _Started | None, *, only_planned: bool = False) -> Iterator[Row]:
        """Yield a statement of which only the plan was logged, or only the text."""
        if started is not None and not (only_planned and started.took_us is None):
            yield self._make(started.line, started.text, started.took_us, started.parameters)

    def _fail(self, line: _Line, before: _Started | None) -> Iterator[Row]:
        # The text that was logged before is of the statement that failed.
        yield from self._flush(before, only_planned=True)
        if line.query:
            yield self._make(line, line.query, None, _read_parameters(line.detail))

    def _step(
        self, line: _Line, before: _Started | None, text: str, took_us: int | None, *, is_fetch: bool
    ) -> Iterator[Row]:
        # Otherwise it is logged twice, with its plan and without.
        if before is not None and (before.took_us is None or before.text != text.strip()):
            yield from self._flush(before)
        if is_fetch:
            return
        parameters = _read_parameters(line.detail)
        if took_us is None:
            self._waiting[line.session] = _Started(line, text, parameters, None)
        else:
            yield self._make(line, text, took_us, parameters)

    def _make(self, line: _Line, text: str, took_us: int | None, parameters: list[str | None] | None) -> Row:
        ended_us = self._clock.read(line.time, f"line {line.number}")
        took_ms = None if took_us is None else (took_us + 500) // 1_000
        return Row(
            id=f"{self._prefix}{line.session}/{line.line}",
            text=text,
            started_at=(ended_us - (took_us or 0)) // 1_000,
            took_ms=took_ms,
            total_ms=took_ms,
            user=line.user,
            session=line.session,
            host=self._host,
            database=line.database,
            client=line.application,
            failed=line.severity in _FAILURES,
            parameters=parameters,
        )


def _as_us(ms: str) -> int:
    whole, _, part = ms.partition(".")
    return int(whole) * 1_000 + int(part.ljust(3, "0")[:3])


def _read_parameters(detail: str) -> list[str | None] | None:
    """Return the values in a DETAIL; None if it has none."""
    found = {
        int(number): None if value == "NULL" else value[1:-1].replace("''", "'")
        for number, value in _PARAMETER.findall(detail)
    }
    return [found.get(number) for number in range(1, max(found) + 1)] if found else None


def _read_lines(path: Path, options: Options) -> Iterator[_Line]:
    with open_text(path) as stream:
        head = stream.read(64 << 10)
    if not head:
        raise BadHistory(f"{path.name} is empty. Export the log of other days.")
    try:
        if options.log_line_prefix:
            yield from _read_text(path, options.log_line_prefix)
        elif head.lstrip().startswith("{"):
            yield from _read_jsonlog(path)
        else:
            yield from _read_csvlog(path)
    except UnicodeDecodeError as error:
        raise BadHistory(f"{path.name} is not UTF-8 ({error.reason}). Convert it with iconv.") from error


def _read_csvlog(path: Path) -> Iterator[_Line]:
    with open_text(path) as stream:
        records = csv.reader(stream, strict=True)
        try:
            for record in records:
                number = records.line_num
                if len(record) < CSVLOG_COLUMNS:
                    raise BadHistory(_explain_no_csvlog(path, number, record))
                yield _Line(
                    number=number,
                    time=record[0],
                    user=record[1] or None,
                    database=record[2],
                    session=record[5],
                    line=record[6],
                    application=record[22] or None,
                    severity=record[11],
                    message=record[13],
                    detail=record[14],
                    query=record[19],
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
