"""How a query fails, as the caller is told. Contract: Errors; docs/decisions/0007-sql-guard-and-engine.md."""

from __future__ import annotations

from tenantadmin.core.errors import ApiError, InternalError


class QueryRejected(ApiError):
    """The statement may not run; nothing of it did."""

    status = 400
    code = "query_rejected"
    message = "Only one SELECT, or WITH … SELECT, over proxy_logs may run."


class QueryFailed(ApiError):
    """The engine refused the statement or gave up on it at run time."""

    status = 400
    code = "query_failed"
    message = "The engine could not answer the query."


class QueryTimeout(ApiError):
    """The query, waiting for its turn included, took longer than it may."""

    status = 400
    code = "query_timeout"
    message = "The query took too long."


class EngineUnavailable(InternalError):
    """A fault of ours: no query process, or a file of the log that cannot be read."""
