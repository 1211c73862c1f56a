#!/usr/bin/env bash
# snowflake-connector-python 4.8.1 sends telemetry if the answer to its login says CLIENT_TELEMETRY_ENABLED. 5.2.0, with
# the same code of the caller, sends it unless the answer says false, and tells the server at login the absolute path
# of the program that runs. A proxy or a stand-in that never named the parameter gets requests that it does not know.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/program.py" <<'PYTHON'
import gzip
import json
import sys
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import snowflake.connector

warnings.simplefilter("ignore")
asked, told = [], {}
COLUMN = {"name": "A", "type": "FIXED", "precision": 38, "scale": 0, "nullable": True, "length": None, "byteLength": None}
SESSION = {"databaseName": None, "schemaName": None, "warehouseName": None, "roleName": "PUBLIC"}


class Stub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body or b"{}")
        path = self.path.partition("?")[0]
        asked.append(path)
        data = None
        if path.endswith("login-request"):
            told.update(body["data"].get("SESSION_PARAMETERS") or {})
            data = {"token": "t", "masterToken": "m", "sessionId": 1, "validityInSeconds": 3600}
            data |= {"masterValidityInSeconds": 3600, "displayUserName": "A", "serverVersion": "9"}
            data |= {"parameters": [], "sessionInfo": SESSION}
        elif path.endswith("query-request"):
            data = {"parameters": [], "rowtype": [COLUMN], "rowset": [["1"]], "total": 1, "returned": 1, "queryId": "1"}
            data |= {"queryResultFormat": "json", "statementTypeId": 4096, "version": 1, "numberOfBinds": 0}
            data |= dict.fromkeys(["finalDatabaseName", "finalSchemaName", "finalWarehouseName"])
            data |= {"finalRoleName": "PUBLIC", "arrayBindSupported": False}
        answer = json.dumps({"success": True, "code": None, "message": None, "data": data}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
threading.Thread(target=server.serve_forever, daemon=True).start()
connection = snowflake.connector.connect(
    host="127.0.0.1", port=server.server_port, protocol="http", account="a", user="u", password="p",
    login_timeout=10, network_timeout=10,
)
assert connection.cursor().execute("SELECT 1").fetchall() == [(1,)]
connection.close()
sends = "/telemetry/send" in asked
knows = told.get("CLIENT_APPLICATION_PATH") == sys.argv[0]
print(f"seen: {snowflake.connector.__version__} sends telemetry: {sends}; tells the path of the program: {knows}")
assert (sends, knows) == (sys.argv[1] == "new",) * 2, (asked, told)
PYTHON
echo "expected: both ask the same, as the answers of the server and the program are the same"
for release in old:4.8.1 new:5.2.0; do
    python3 -m venv --clear "$dir/venv"
    "$dir/venv/bin/pip" install --quiet --disable-pip-version-check "snowflake-connector-python==${release#*:}"
    HOME=$dir "$dir/venv/bin/python" -W ignore "$dir/program.py" "${release%:*}"
done
