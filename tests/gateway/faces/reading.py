"""What a Gateway knows of the text of a statement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlglot.dialects.dialect import Dialect as Grammar
from sqlglot.errors import SqlglotError

from analytics.history.rows import Source
from analytics.history.standardize import Standardizer
from rules.dialects.control import find_control
from rules.dialects.words import Dialect
from tests.gateway.gateway import Statement

_GRAMMARS = {"postgresql": "postgres", "snowflake": "snowflake", "databricks": "databricks"}


class Reader:
    """Reads statements of one kind of warehouse. Not for several threads."""

    def __init__(self, adapter: str) -> None:
        self._dialect = Dialect(adapter)
        self._grammar = Grammar.get_or_raise(_GRAMMARS[adapter])
        self._standardize = Standardizer(Source(adapter))

    def read(self, text: str, parameters: Sequence[Any] = ()) -> Statement:
        found = self._standardize(text)
        facts = found.facts
        control = find_control(text, self._dialect)
        return Statement(
            standardized_sql=found.text,
            statement_type=facts.kind,
            tables=list(facts.tables),
            is_read_only=bool(facts.reads),
            is_data_change=bool(facts.changes),
            parameter_values=list(parameters),
            is_ddl=bool(facts.defines),
            has_non_deterministic_functions=facts.varies,
            text=self._tokens(text),
            control=control[0] if control else None,
        )

    def _tokens(self, text: str) -> str:
        """Return the text with its literals and without comments, as a list that no other statement has."""
        try:
            tokens = self._grammar.tokenize(text)
        except SqlglotError:
            return text
        return json.dumps([text[token.start : token.end + 1] for token in tokens])
