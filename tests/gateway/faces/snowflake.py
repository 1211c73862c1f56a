"""Snowflake's REST in front of the reference Gateway, as its connectors use it."""

from __future__ import annotations

import gzip
import json
import uuid
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from rules.dialects.control import find_control
from rules.dialects.words import Dialect
from tests.gateway.faces.http import Handler, HttpFace, HttpSession
from tests.gateway.faces.refusals import describe_refusal, refuse

#: Snowflake's code for a session that has ended.
_NO_SESSION: Final = "390111"
_TYPE_IDS: Final = {"SELECT": 0x1000, "INSERT": 0x3100, "UPDATE": 0x3200, "DELETE": 0x3300}


class _Handler(Handler):
    server: SnowflakeFace

    def do_POST(self) -> None:  # noqa: N802
        url = urlsplit(self.path)
        raw = self.read_body()
        if self.headers.get("Content-Encoding") == "gzip" or raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        body = json.loads(raw or b"{}")
        if url.path == "/session/v1/login-request":
            return self._log_in(body["data"])
        if url.path.startswith("/telemetry"):
            self._note("TELEMETRY", "TELEMETRY")
            return self._send({"success": True, "code": None, "message": None, "data": "Log Received"})
        session = self._find_session()
        if session is None:
            return self._send({"success": False, "code": _NO_SESSION, "message": "Sign in again."})
        if url.path == "/queries/v1/query-request":
            if self.is_refused(raw):
                return None
            return self._query(session, body)
        if url.path == "/session":
            self._note("SPOOFED", "CLOSE_SESSION" if "delete" in parse_qs(url.query) else "HEARTBEAT")
            session.close()
        else:
            self._note("EXECUTOR", url.path.rpartition("/")[2])
        return self._send({"success": True, "code": None, "message": None, "data": None})

    def _log_in(self, data: dict[str, Any]) -> None:
        session = self.server.sign_in(data.get("TOKEN", ""), self.headers, self.client_address[0])
        if session is None:
            # The connector shows the message, and does not try again.
            return self._send(refuse("snowflake", "AUTH_ERROR", describe_refusal("AUTH_ERROR", None)))
        query = parse_qs(urlsplit(self.path).query)
        session.session.context = {
            name: query.get(name, [None])[0] for name in ("databaseName", "schemaName", "roleName")
        } | {"format": "json"}
        key = session.session.columns["sessionId"]
        return self._send(
            {
                "success": True,
                "code": None,
                "message": None,
                "data": {
                    "token": key,
                    "masterToken": key,
                    "sessionId": 1,
                    "validityInSeconds": 3600,
                    "masterValidityInSeconds": 14_400,
                    "displayUserName": session.user,
                    "serverVersion": "9.0.0",
                    "parameters": [{"name": "CLIENT_TELEMETRY_ENABLED", "value": True}],
                    "sessionInfo": {
                        "databaseName": query.get("databaseName", [None])[0],
                        "schemaName": query.get("schemaName", [None])[0],
                        "warehouseName": None,
                        "roleName": "PUBLIC",
                    },
                },
            }
        )

    def _find_session(self) -> HttpSession | None:
        for key, session in self.server.sessions.items():
            if key in self.headers.get("Authorization", ""):
                return session
        return None

    def _note(self, status: str, operation: str) -> None:
        session = self._find_session()
        if session is not None:
            face = self.server
            face.gateway.note(face.tenant_id, session.session, status, operation, user=session.user)

    def _query(self, session: HttpSession, body: dict[str, Any]) -> None:
        sent = body["sqlText"]
        if body.get("describeOnly"):
            # It runs nothing, so that it invalidates nothing.
            self._note("SPOOFED", "DESCRIBE")
            return self._send(_success(sent, [("result", False)], []))
        bindings = body.get("bindings") or {}
        values = [
            int(bound["value"]) if bound["type"] == "FIXED" and bound["value"] else bound["value"]
            for _, bound in sorted(bindings.items(), key=lambda pair: int(pair[0]))
        ]
        text = sent.replace("%", "%%").replace("?", "%s") if values else sent
        answer = session.run(text, sent, values)
        if answer.result is None:
            return self._send(refuse("snowflake", answer.cache_status, str(answer.error)))
        result = json.loads(answer.result)
        return self._send(_success(sent, result["columns"], result["rows"]))

    def _send(self, document: dict[str, Any]) -> None:
        # Always 200. Other statuses make connectors try again, some of them for ever.
        self.answer(200, json.dumps(document).encode())


def _success(text: str, columns: list[tuple[str, bool]], rows: list[list[Any]]) -> dict[str, Any]:
    control = find_control(text, Dialect.SNOWFLAKE)
    first = text.split(None, 1)[0].upper()
    types = [
        {
            "name": name if first == "SHOW" else name.upper(),
            "type": "FIXED" if is_number else "TEXT",
            "precision": 38 if is_number else None,
            "scale": 0 if is_number else None,
            "length": None if is_number else 16_777_216,
            "byteLength": None if is_number else 16_777_216,
            "nullable": True,
        }
        for name, is_number in columns
    ]
    return {
        "success": True,
        "code": None,
        "message": None,
        "data": {
            "parameters": [],
            "rowtype": types,
            "rowset": rows,
            "total": len(rows),
            "returned": len(rows),
            "queryId": str(uuid.uuid4()),
            "queryResultFormat": "json",
            "statementTypeId": 0x4000 if control is not None else _TYPE_IDS.get(first, 0x1000),
            "finalDatabaseName": None,
            "finalSchemaName": None,
            "finalWarehouseName": None,
            "finalRoleName": "PUBLIC",
            "numberOfBinds": 0,
            "arrayBindSupported": False,
            "version": 1,
        },
    }


class SnowflakeFace(HttpFace):
    adapter = "snowflake"
    handler = _Handler
