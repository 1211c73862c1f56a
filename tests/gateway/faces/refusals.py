"""What a refusal looks like in each protocol: an answer, because drivers try again after statuses of HTTP."""

from __future__ import annotations

import struct
from typing import Any, Final

#: Of SQL: insufficient_privilege, system_error (a failure outside the database), invalid_password. HY000 is
#: for what the warehouse says.
_STATES: Final = {
    "BLOCKED": "42501",
    "INVALIDATION_ERROR": "58000",
    "AUTH_ERROR": "28P01",
    "ERROR": "HY000",
}
#: Of Snowflake: a statement may not run, a token is not valid. No connector tries again.
_CODES: Final = {"AUTH_ERROR": "390303"}
_REFUSED: Final = "003001"
#: Of Thrift.
_ERROR_STATUS: Final = 3


def describe_refusal(cache_status: str, rule_id: str | None) -> str:
    """Return what the user reads."""
    if cache_status == "AUTH_ERROR":
        return "The token is not valid."
    if cache_status == "BLOCKED":
        return f"The rule {rule_id} refuses this statement."
    return "Nothing was changed, because cached results could not be made stale. Try again."


def refuse(adapter: str, cache_status: str, message: str) -> dict[str, Any]:
    """Return the parts of a refusal by the names of the protocol.

    Snowflake: the body of an answer with the status 200. Databricks: the members of a `TStatus`, in an
    answer with the status 200. PostgreSQL: the fields of an ErrorResponse.
    """
    state = _STATES[cache_status]
    if adapter == "snowflake":
        code = _CODES.get(cache_status, _REFUSED)
        data = {"errorCode": code, "sqlState": state}
        return {"success": False, "code": code, "message": message, "data": data}
    if adapter == "databricks":
        texts = {"errorMessage": message, "displayMessage": message}
        return {"statusCode": _ERROR_STATUS, "sqlState": state, **texts}
    severity = "FATAL" if cache_status == "AUTH_ERROR" else "ERROR"
    return {"S": severity, "V": severity, "C": state, "M": message}


def pack_error(fields: dict[str, str]) -> bytes:
    """Return the fields of an ErrorResponse as the message that PostgreSQL sends."""
    body = b"".join(f"{name}{value}\0".encode() for name, value in fields.items()) + b"\0"
    return b"E" + struct.pack("!i", len(body) + 4) + body
