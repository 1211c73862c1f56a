"""Databricks' Thrift over HTTP in front of the reference Gateway.

The types are the generated ones of databricks-sql-connector: `load_types` finds them in its environment.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import uuid
from pathlib import Path
from typing import Any

from tests.gateway.faces.http import Handler, HttpFace, HttpSession
from tests.gateway.faces.refusals import describe_refusal, refuse
from tests.gateway.gateway import Session

_thrift: dict[str, Any] = {}


def load_types(environment: Path) -> None:
    """Load Thrift, and the types of the protocol, from an environment with databricks-sql-connector."""
    (packages,) = environment.glob("lib/python3*/site-packages")
    # The package of the types alone: the connector needs pandas and more.
    paths = [str(packages), str(packages / "databricks/sql/thrift_api")]
    sys.path += paths
    try:
        _thrift["service"] = importlib.import_module("TCLIService.TCLIService")
        _thrift["types"] = importlib.import_module("TCLIService.ttypes")
        _thrift["protocol"] = importlib.import_module("thrift.protocol.TBinaryProtocol")
        _thrift["transport"] = importlib.import_module("thrift.transport.TTransport")
    finally:
        for path in paths:
            sys.path.remove(path)


class _Service:
    """One request of a consumer, by the name of its method."""

    def __init__(self, handler: _Handler) -> None:
        self._handler = handler
        self._types = _thrift["types"]

    def __getattr__(self, name: str) -> Any:
        """Answer what the face does not know: nothing went wrong."""

        def answer(request: Any) -> Any:
            self._handler.note("EXECUTOR", name)
            return getattr(self._types, f"T{name}Resp")(status=self._status())

        return answer

    def OpenSession(self, request: Any) -> Any:  # noqa: N802
        types, session = self._types, self._handler.sign_in()
        if session is None:
            return types.TOpenSessionResp(
                status=self._refuse("AUTH_ERROR", describe_refusal("AUTH_ERROR", None)),
                serverProtocolVersion=request.client_protocol_i64 or request.client_protocol,
            )
        namespace = request.initialNamespace
        session.session.context = {
            "catalog": namespace and namespace.catalogName,
            "schema": namespace and namespace.schemaName,
            "configuration": request.configuration or {},
            "format": "columns",
        }
        key = uuid.UUID(session.session.columns["sessionId"]).bytes
        return types.TOpenSessionResp(
            status=self._status(),
            serverProtocolVersion=request.client_protocol_i64 or request.client_protocol,
            sessionHandle=types.TSessionHandle(types.THandleIdentifier(key, key)),
            canUseMultipleCatalogs=True,
            initialNamespace=namespace,
        )

    def CloseSession(self, request: Any) -> Any:  # noqa: N802
        session = self._session(request)
        self._handler.note("SPOOFED", "CLOSE_SESSION", session)
        session.close()
        return self._types.TCloseSessionResp(status=self._status())

    def ExecuteStatement(self, request: Any) -> Any:  # noqa: N802
        types = self._types
        session, sent = self._session(request), request.statement
        named = {
            parameter.name: parameter.value.stringValue
            for parameter in request.parameters or ()
            if parameter.name
        }
        ordered = [
            int(parameter.value.stringValue)
            if parameter.type in {"INT", "BIGINT"}
            else parameter.value.stringValue
            for parameter in request.parameters or ()
            if not parameter.name
        ]
        text = sent
        if named or ordered:
            text = re.sub(r":(\w+)", r"%(\1)s", sent.replace("%", "%%")).replace("?", "%s")
        answer = session.run(text, sent, named or ordered)
        if answer.result is None:
            # An error status in the answer: with 403 or 503, the connector waits and tries again.
            return types.TExecuteStatementResp(status=self._refuse(answer.cache_status, str(answer.error)))
        result = json.loads(answer.result)
        rows, columns = result["rows"], result["columns"]
        return types.TExecuteStatementResp(
            status=self._status(),
            operationHandle=types.TOperationHandle(
                types.THandleIdentifier(uuid.uuid4().bytes, uuid.uuid4().bytes),
                types.TOperationType.EXECUTE_STATEMENT,
                hasResultSet=True,
            ),
            directResults=types.TSparkDirectResults(
                operationStatus=types.TGetOperationStatusResp(
                    status=self._status(), operationState=types.TOperationState.FINISHED_STATE
                ),
                resultSetMetadata=types.TGetResultSetMetadataResp(
                    status=self._status(),
                    schema=types.TTableSchema(
                        [self._column(column, index) for index, column in enumerate(columns)]
                    ),
                    resultFormat=types.TSparkRowSetType.COLUMN_BASED_SET,
                    lz4Compressed=False,
                ),
                resultSet=types.TFetchResultsResp(
                    status=self._status(),
                    hasMoreRows=False,
                    results=types.TRowSet(
                        startRowOffset=0,
                        rows=[],
                        columns=[
                            self._values([row[index] for row in rows], is_number=is_number)
                            for index, (_, is_number) in enumerate(columns)
                        ],
                    ),
                ),
                closeOperation=types.TCloseOperationResp(status=self._status()),
            ),
        )

    def _session(self, request: Any) -> HttpSession:
        return self._handler.server.sessions[uuid.UUID(bytes=request.sessionHandle.sessionId.guid).hex]

    def _status(self) -> Any:
        return self._types.TStatus(self._types.TStatusCode.SUCCESS_STATUS)

    def _refuse(self, cache_status: str, message: str) -> Any:
        return self._types.TStatus(**refuse("databricks", cache_status, message))

    def _column(self, column: tuple[str, bool], index: int) -> Any:
        types, (name, is_number) = self._types, column
        kind = types.TTypeId.BIGINT_TYPE if is_number else types.TTypeId.STRING_TYPE
        entry = types.TTypeEntry(primitiveEntry=types.TPrimitiveTypeEntry(kind))
        return types.TColumnDesc(name, types.TTypeDesc([entry]), index + 1)

    def _values(self, values: list[str | None], *, is_number: bool) -> Any:
        types = self._types
        nulls = bytearray(len(values) // 8 + 1)
        for index, value in enumerate(values):
            nulls[index // 8] |= (value is None) << index % 8
        if is_number:
            numbers = [int(value or 0) for value in values]
            return types.TColumn(i64Val=types.TI64Column(numbers, bytes(nulls)))
        return types.TColumn(stringVal=types.TStringColumn([value or "" for value in values], bytes(nulls)))


class _Handler(Handler):
    server: DatabricksFace

    def do_GET(self) -> None:  # noqa: N802
        # Feature flags. Without an answer, some drivers wait for them.
        self.answer(404)

    def do_POST(self) -> None:  # noqa: N802
        body = self.read_body()
        if self.path.startswith("/oidc/"):
            # A driver offers to exchange a token of another issuer. Without an exchange, it sends the token.
            self.answer(404)
            return
        if not self.path.startswith("/sql/"):
            self.note("TELEMETRY", "TELEMETRY")
            self.answer(200, b"{}")
            return
        if self.is_refused(body):
            return
        protocol, transport = _thrift["protocol"].TBinaryProtocol, _thrift["transport"].TMemoryBuffer
        sent = transport()
        _thrift["service"].Processor(_Service(self)).process(protocol(transport(body)), protocol(sent))
        self.answer(200, sent.getvalue(), "application/x-thrift")

    def sign_in(self) -> HttpSession | None:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        return self.server.sign_in(token, self.headers, self.client_address[0])

    def note(self, status: str, operation: str, session: HttpSession | None = None) -> None:
        """Log a request beside the statements. Telemetry names no session, and may come after its end."""
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        found = session or next(
            (one for one in reversed(self.server.sessions.values()) if one.token == token), None
        )
        face = self.server
        columns = {"adapterType": face.adapter, "userAgent": self.headers.get("User-Agent")}
        beside = found.session if found else Session(None, columns)  # type: ignore[arg-type]  # runs nothing
        face.gateway.note(face.tenant_id, beside, status, operation, user=found.user if found else None)


class DatabricksFace(HttpFace):
    adapter = "databricks"
    handler = _Handler
