"""The errors of a query. Contract: Errors; docs/decisions/0007-sql-guard-and-engine.md."""

from __future__ import annotations

from tenantadmin.lib.core.errors import ApiError, InternalError, ServiceBusy


class QueryRejected(ApiError):
    """The statement is not allowed. It was not run."""

    status = 400
    code = "query_rejected"
    message = "Only one SELECT, or WITH … SELECT, over proxy_logs may run."


class QueryFailed(ApiError):
    """The engine refused the statement, or failed while it ran."""

    status = 400
    code = "query_failed"
    message = "The engine could not answer the query."


class QueryTimeout(ApiError):
    """The query took too long, including the wait for a slot."""

    status = 400
    code = "query_timeout"
    message = "The query took too long."


class QueryCancelled(ApiError):
    """The query was ended because its caller is gone. Only the audit shows this error."""

    status = 400
    code = "query_cancelled"
    message = "The connection was closed before the query ended."


class CancelledByStaff(QueryCancelled):
    """Staff ended the query on the admin site. The caller gets this error."""

    message = "The query was cancelled on the admin site of this service."


class QueryInterrupted(ServiceBusy):
    """Something outside of the query ended its process, such as the kernel for want of memory."""

    message = "The query was stopped from outside before it ended. Try it again."


class EngineUnavailable(InternalError):
    """A fault of the service: no query process started, or a file of the log cannot be read."""
