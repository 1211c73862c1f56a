"""What a Gateway logs of a statement, by sqlglot: the text without literals, its tables, what it does.

Tokens give text and literals, so that a literal is where the statement has it. The tree gives the rest, once
for each text without literals. A statement whose text differs from an earlier one in literals, comments and
white space alone takes neither: a regular expression finds the literals, if it found the same as sqlglot in
the first such statement.

A real Gateway may standardise in another way: docs/assess.md.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from json.encoder import encode_basestring as _quote
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from analytics.history.rows import Source
from rules.dialects.control import find_control
from rules.dialects.words import Dialect as Warehouse
from rules.dialects.words import find_chance, find_time, find_word

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

# It warns of each statement that it keeps as it is, such as VACUUM.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

_DIALECTS: Final = {
    Source.SNOWFLAKE: "snowflake",
    Source.DATABRICKS: "databricks",
    Source.POSTGRESQL: "postgres",
}
_TEXTS: Final = frozenset(
    getattr(TokenType, name)
    for name in [
        "STRING",
        "NATIONAL_STRING",
        "RAW_STRING",
        "HEREDOC_STRING",
        "UNICODE_STRING",
        "NATIONAL_RAW_STRING",
    ]
)
_LITERALS: Final = _TEXTS | {
    TokenType.NUMBER,
    TokenType.BIT_STRING,
    TokenType.BYTE_STRING,
    TokenType.HEX_STRING,
}
#: After these a colon begins a path or a type, not the name of a parameter.
_OPERANDS: Final = _LITERALS | {
    TokenType.VAR,
    TokenType.IDENTIFIER,
    TokenType.R_PAREN,
    TokenType.R_BRACKET,
}
_CHANGES: Final = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Copy, exp.TruncateTable, exp.LoadData)
_DEFINES: Final = (exp.Create, exp.Drop, exp.Alter, exp.Comment)
_READS: Final = (exp.Query, exp.Show, exp.Describe)
#: What follows these is one token to sqlglot, as if it was a literal.
_WHOLE: Final = frozenset({"SHOW", "FETCH"})
#: The bytes that a memory holds, and about as many of each thing beside its text.
_ROOM: Final = 32 << 20
_OVERHEAD: Final = 500
#: The most characters of a statement that later ones are compared with.
_MAX_COMPARED: Final = 20_000
#: Longer texts are kept as they are: sqlglot would take seconds for each.
_MAX_PARSED: Final = 100_000


class Facts(NamedTuple):
    """What a statement is, whatever its literals are. Null: sqlglot cannot tell.

    Attributes:
        parsed: sqlglot knows what it reads. Otherwise the text is kept as it is.
        known: sqlglot knows what it is, such as CALL or VACUUM.
    """

    kind: str
    tables: tuple[str, ...]
    reads: bool | None
    changes: bool | None
    defines: bool | None
    varies: bool
    parsed: bool
    known: bool


#: What a control statement is.
_NO_QUERY: Final = Facts(
    kind="", tables=(), reads=False, changes=False, defines=False, varies=False, parsed=True, known=True
)


class Standardized(msgspec.Struct, frozen=True, gc=False):
    """A statement without literals.

    Attributes:
        values: a JSON array of the literals, in the order of the text.
        has_parameters: the client sent values beside the text. Null: sqlglot cannot tell.
    """

    text: str
    values: str
    facts: Facts
    has_parameters: bool | None


class _Tokens(msgspec.Struct, frozen=True, gc=False):
    text: str
    values: str
    has_parameters: bool


_Key = TypeVar("_Key", bound="Hashable")
_Value = TypeVar("_Value")


class Memory(dict[_Key, _Value]):
    """Remembers what was found of texts, as long as there is room. Then it begins anew."""

    _bytes = 0

    def keep(self, key: _Key, value: _Value, *, text: str) -> _Value:
        """Remember a value, which is about twice as large as a text, and return it."""
        self._bytes += 3 * len(text) + _OVERHEAD
        if self._bytes > _ROOM:
            self.clear()
            self._bytes = 0
        self[key] = value
        return value


class Standardizer:
    """Standardises the statements of a source, and remembers what it found. Not for several threads."""

    def __init__(self, source: Source) -> None:
        self._dialect = Dialect.get_or_raise(_DIALECTS[source])
        self._source = source
        self._warehouse = Warehouse(source)
        #: By text without literals, what one like it is; None if only sqlglot finds its literals.
        self._templates: Memory[str, _Tokens | None] = Memory()
        self._facts: Memory[tuple[str, str, str], Facts] = Memory()

    def __call__(
        self,
        text: str,
        *,
        database: str = "",
        schema: str = "",
        parameters: Sequence[str | None] | None = None,
    ) -> Standardized:
        """Return a statement without its literals.

        Args:
            database, schema: of the session. They complete shorter names of tables.
            parameters: the values of ``$1`` and so on.
        """
        tokens = self._split(text, parameters) if len(text) <= _MAX_PARSED else None
        if tokens is None:
            kept = _keep(text)
            return Standardized(kept, "[]", _unknown(kept), None)
        key = (tokens.text, database, schema)
        facts = self._facts.get(key)
        if facts is None:
            facts = self._facts.keep(key, self._read(text, *key), text=text)
        if not facts.parsed:
            # The literals of what is not understood may be no literals.
            return Standardized(_keep(text), "[]", facts, tokens.has_parameters)
        return Standardized(tokens.text, tokens.values, facts, tokens.has_parameters)

    def _split(self, text: str, parameters: Sequence[str | None] | None) -> _Tokens | None:
        """Return the text without literals, and these as JSON; None if sqlglot finds no tokens."""
        guess = None if parameters or len(text) > _MAX_COMPARED else _guess(text, self._source)
        if guess is not None and (template := self._templates.get(guess[0])) is not None:
            return _Tokens(template.text, guess[1], template.has_parameters)
        try:
            found = self._dialect.tokenize(text)
        except SqlglotError:
            return None
        has_parameters = _has_parameters([token.token_type for token in found], self._source)
        tokens = _Tokens(*_without_literals(text, found, parameters), has_parameters)
        if guess is not None:
            template = tokens if tokens.values == guess[1] else None
            self._templates.keep(guess[0], template, text=text)
        return tokens

    def _read(self, text: str, standard: str, database: str, schema: str) -> Facts:
        # sqlglot reads ``CLOSE c`` as a column CLOSE with the alias c.
        control = find_control(text, self._warehouse)
        if control is not None:
            kind = control[1]
            return _NO_QUERY._replace(kind=kind, parsed=kind not in _WHOLE)
        if (inner := _INNER.match(text)) is not None and self._warehouse is Warehouse.POSTGRESQL:
            kind, query = ("COPY", inner[1]) if inner[1] else ("DECLARE", inner[2])
            return self._parse(query, standard, database, schema)._replace(kind=kind)
        return self._parse(text, standard, database, schema)

    def _parse(self, text: str, standard: str, database: str, schema: str) -> Facts:
        try:
            trees = [tree for tree in self._dialect.parse(text) if tree is not None]
        except (SqlglotError, RecursionError):
            return _unknown(standard)
        if not trees:
            return _unknown(standard)
        found = [_describe(tree, database=database, schema=schema) for tree in trees]
        varies = any(find(standard) for find in (find_word, find_time, find_chance))
        first = found[0]
        if len(found) == 1:
            return first._replace(varies=varies)
        return Facts(
            kind=first.kind,
            tables=tuple(dict.fromkeys(name for facts in found for name in facts.tables)),
            reads=all(facts.reads for facts in found),
            changes=any(facts.changes for facts in found),
            defines=any(facts.defines for facts in found),
            varies=varies,
            parsed=all(facts.parsed for facts in found),
            known=True,
        )


#: Comments before and after a statement, where it is clear that they are comments. Hints stay.
_COMMENT: Final = r"/\*(?![+!])(?:(?!/\*|\*/)[\s\S])*\*/"
_AROUND: Final = re.compile(rf"\A(?:\s|--[^\n]*\n|{_COMMENT})+|(?:\s|{_COMMENT})+;?\s*\Z")


def _keep(text: str) -> str:
    """Return what is not understood as it is, but for white space and comments around it."""
    return " ".join(_AROUND.sub("", text).split())


def _unknown(text: str) -> Facts:
    words = text.split(None, 1)
    return Facts(
        words[0].upper()[:40] if words else "", (), None, None, None, varies=False, parsed=False, known=False
    )


#: A query whose result PostgreSQL sends to the client, or opens a cursor for. sqlglot cannot parse them.
_INNER: Final = re.compile(
    r"\s*(?:COPY\s*\((.*)\)\s*TO\s+STDOUT\b|DECLARE\s.*?\bCURSOR\b.*?\bFOR\s+(.*))", re.IGNORECASE | re.DOTALL
)


def _without_literals(
    text: str, tokens: Sequence[Token], parameters: Sequence[str | None] | None
) -> tuple[str, str]:
    """Return the text of tokens with one ``?`` for each literal, and the literals as JSON."""
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens = tokens[:-1]
    pieces: list[str] = []
    values: list[str] = []
    end, before = -1, None
    for token in tokens:
        kind = token.token_type
        if token.start <= end:
            # sqlglot reads ``1L`` as ``1::BIGINT``. The literal has its own letter.
            end = max(end, token.end)
            continue
        written = text[token.start : token.end + 1]
        if pieces and token.start > end + 1 and pieces[-1] != " ":
            pieces.append(" ")
        if kind is TokenType.NUMBER and pieces and pieces[-1] == "$":
            # A parameter, or a column of a stage.
            number = int(written) if written.isdecimal() else 0
            if parameters is not None and 0 < number <= len(parameters):
                pieces[-1] = "?"
                value = parameters[number - 1]
                values.append("null" if value is None else _quote(value))
            else:
                pieces.append(written)
        elif kind in _LITERALS and not (pieces and pieces[-1] == ":" and before not in _OPERANDS):
            pieces.append("?")
            values.append(_as_json(token, written))
        else:
            pieces.append(written)
            if kind is TokenType.DCOLON or (kind is TokenType.COLON and before in _OPERANDS):
                # So that a type or a path does not look like a parameter.
                pieces.append(" ")
        if kind is not TokenType.COLON:
            before = kind
        end = token.end
    return "".join(pieces), f"[{', '.join(values)}]"


def _has_parameters(kinds: Sequence[TokenType], source: Source) -> bool:
    """Return True if a statement has ``$1``, in PostgreSQL, or ``?`` or ``:name``, elsewhere.

    In PostgreSQL ``?`` is an operator; elsewhere ``$1`` is a column of a file.
    """
    if source is Source.POSTGRESQL:
        return (TokenType.PARAMETER, TokenType.NUMBER) in pairwise(kinds)
    return TokenType.PLACEHOLDER in kinds or any(
        kind is TokenType.COLON and before not in _OPERANDS for before, kind in pairwise((None, *kinds))
    )


def _as_json(token: Token, written: str) -> str:
    if token.token_type is TokenType.NUMBER:
        return _number(token.text) or _quote(written)
    return _quote(token.text if token.token_type in _TEXTS else written)


_NUMBER: Final = re.compile(r"(\d[\d_]*)?(?:\.(\d[\d_]*)?)?([eE][+-]?\d+)?", re.ASCII)


def _number(text: str) -> str | None:
    """Return a number of SQL as one of JSON, with its own digits. None if it is none."""
    match = _NUMBER.fullmatch(text)
    if match is None or not (match[1] or match[2]):
        return None
    whole, part = ((group or "").replace("_", "") for group in match.group(1, 2))
    return (whole.lstrip("0") or "0") + (f".{part}" if part else "") + (match[3] or "")


def _describe(tree: exp.Expr, *, database: str, schema: str) -> Facts:
    if isinstance(tree, exp.Command):
        return Facts(tree.name.upper(), (), None, None, None, varies=False, parsed=False, known=True)
    copies_to_client = isinstance(tree, exp.Copy) and _is_sent(tree)
    changes = tree.find(*_CHANGES) is not None and not copies_to_client
    is_query = copies_to_client or (
        isinstance(tree, _READS)
        and not any(node.args.get("locks") or node.args.get("into") for node in tree.find_all(exp.Select))
    )
    return Facts(
        kind="SELECT" if isinstance(tree, exp.Query) else _KINDS.get(tree.key, tree.key.upper()),
        tables=tuple(dict.fromkeys(_find_tables(tree, database=database, schema=schema))),
        reads=is_query and not changes,
        changes=changes,
        defines=isinstance(tree, _DEFINES),
        varies=False,
        parsed=True,
        known=True,
    )


def _is_sent(copy: exp.Copy) -> bool:
    """Return True if a COPY sends a table to the client."""
    return copy.args.get("kind") is False and [file.name.upper() for file in copy.args["files"]] == ["STDOUT"]


_KINDS: Final = {"truncatetable": "TRUNCATE", "loaddata": "LOAD", "transaction": "BEGIN"}
_PARTS_OF_SCHEMA: Final = 2


def _find_tables(tree: exp.Expr, *, database: str, schema: str) -> Iterator[str]:
    """Yield the names of the tables, without quotes, in the order of the text."""
    found = [
        table
        for table in tree.find_all(exp.Table)
        if table.name and not table.name.startswith(("@", "%", "~"))
    ]
    for table in sorted(found, key=lambda table: table.parts[-1].meta.get("start", 0)):
        # `parts` leaves out an empty schema (``db..t``).
        parts = [part.name for part in table.parts]
        if table.catalog and not table.db:
            parts.insert(1, "")
        if len(parts) == 1 and _is_cte(table):
            continue
        if len(parts) == 1 and schema:
            parts.insert(0, schema)
        if len(parts) == _PARTS_OF_SCHEMA and database:
            parts.insert(0, database)
        yield ".".join(parts)


def _is_cte(table: exp.Table) -> bool:
    """Return True if a WITH that the name is inside of defines it."""
    name = table.name.casefold()
    node: exp.Expr = table
    while (parent := node.parent) is not None:
        clause = parent.args.get("with_")
        if clause is not None and clause is not node and name in _names(clause.expressions):
            return True
        if isinstance(parent, exp.With):
            # A definition sees those before it, and itself if it is recursive.
            before = parent.expressions[: parent.expressions.index(node) + bool(parent.recursive)]
            if name in _names(before):
                return True
        node = parent
    return False


def _names(expressions: Sequence[exp.Expr]) -> set[str]:
    return {expression.alias.casefold() for expression in expressions}


#: Texts, numbers, comments, white space other than one space, and names in quotes, which stay. First comes
#: what they begin with, by which `re` finds the next one at once; then is asked what it was.
_LITERAL: Final = r"""
    ['"`\d\s/-](?:
        (?<=')(?<![\w'$@&]')(?P<text>{text})'(?!')
        | (?<=\d)(?<![\w.$:@"']\d)\d*(?:\.\d+)?(?![\w.$])(?P<number>)
        | (?:{comment}(?<=/)\*(?!\+)(?s:.*?)\*/|(?<=-)-[^\n]*|(?<=\s)\s+|(?<=[\t\r\n\f\v]))(?P<space>)
        | (?<=")[^"]*(?:""[^"]*)*"|(?<=`)[^`]*`
    )
"""
_LITERAL_PATTERNS: Final = {
    source: re.compile(_LITERAL.format(text=text, comment=comment), re.VERBOSE | re.ASCII)
    for source, text, comment in (
        (Source.SNOWFLAKE, "[^']*(?:''[^']*)*", r"(?<=/)/[^\n]*|"),
        (Source.DATABRICKS, r"[^'\\]*(?:\\'[^'\\]*)*", ""),
        (Source.POSTGRESQL, "[^']*(?:''[^']*)*", ""),
    )
}
#: What makes the end of a text or a comment a matter of the dialect.
_ENDS: Final = r"\$\w*\$|/\*(?:(?!\*/)[\s\S])*/\*"
_UNCLEAR: Final = {
    Source.SNOWFLAKE: re.compile(rf"{_ENDS}|\\"),
    # Two quotes end one text and begin another.
    Source.DATABRICKS: re.compile(rf"{_ENDS}|''|\\(?!')"),
    Source.POSTGRESQL: re.compile(rf"{_ENDS}|\\"),
}
#: How a text writes a quote.
_QUOTE_IN: Final = {Source.SNOWFLAKE: "''", Source.DATABRICKS: "\\'", Source.POSTGRESQL: "''"}


def _guess(text: str, source: Source) -> tuple[str, str] | None:
    """Return the text and the literals as `_without_literals`, but for the spaces; None if it is unclear.

    Marks that no text has stand for literals.
    """
    if "\0" in text or _UNCLEAR[source].search(text):
        return None
    values: list[str] = []
    quote = _QUOTE_IN[source]

    def mark(match: re.Match[str]) -> str:
        found = match.lastgroup
        if found == "text":
            values.append(_quote(match[1].replace(quote, "'")))
            return "\0"
        written = match[0]
        if found == "number":
            # With a zero in front it is no number of JSON.
            values.append((_number(written) or "") if written[0] == "0" else written)
            return "\0\0"
        return " " if found == "space" else written

    return _LITERAL_PATTERNS[source].sub(mark, text), f"[{', '.join(values)}]"
