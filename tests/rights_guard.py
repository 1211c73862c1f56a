"""Writes of rights, and whether `accounts.readers` makes them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

from accounts.readers import rule

#: The package that may write rights.
READERS: Final = Path(rule.__file__).parent
_WRITE: Final = re.compile(
    r'\s*(?:INSERT INTO|UPDATE|DELETE FROM)\s+"?accounts_(membership|account_owners|permissiongrant)\b'
    r'|\s*UPDATE "accounts_(user)" SET (?:(?!WHERE).)*"(?:role|scopes|is_active|is_support)" ='
    r'|\s*DELETE FROM "accounts_(user)"'
    r'|\s*INSERT INTO "accounts_(personalaccesstoken)"',
    re.IGNORECASE,
)


def rights_written(sql: str, params: Any) -> str:
    """Return the table of rights that a statement writes; empty if it writes none.

    Of personal access tokens, only new ones with a wildcard are rights on tenants of others.
    """
    found = _WRITE.match(sql)
    table = next(filter(None, found.groups()), "") if found else ""
    if table == "personalaccesstoken" and ["*"] not in list(params or ()):
        return ""
    return table


def require_readers(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
    """Let no statement write rights, unless `accounts.readers` runs it. For `connection.execute_wrapper`."""
    if table := rights_written(sql, params):
        frame: FrameType | None = sys._getframe()
        while frame is not None and Path(frame.f_code.co_filename).parent != READERS:
            frame = frame.f_back
        if frame is None:
            raise AssertionError(f"{table} is not written by accounts.readers: {sql}")
    return execute(sql, params, many, context)
