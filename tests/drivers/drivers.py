"""The drivers that `make test-drivers` runs, and what each of them does."""

from __future__ import annotations

import shutil
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.gateway.faces.databricks import DatabricksFace, load_types
from tests.gateway.faces.postgresql import PostgreSQLFace
from tests.gateway.faces.snowflake import SnowflakeFace

if TYPE_CHECKING:
    from tests.gateway.faces.scene import Scene

CACHE: Final = Path(__file__).parents[2] / ".cache/drivers"


@dataclass(frozen=True)
class Driver:
    """A driver in a version.

    Attributes:
        name: what `scripts/visit.py` calls it.
        face: the protocol that it speaks.
        place: the environment in the cache that has it.
        program: what the log names it, in every entry.
        others: what it leaves in the log beside the statements of the scene, by status.
        tries: how often it asks, if the first try is refused with a status of HTTP, or an SQLSTATE.
        sessions: how many it opens for the scene.
        trust: the environment variables that name the authority.
        port: where it asks for what no setting moves; 0: any.
    """

    name: str
    face: type[Any]
    place: str
    program: str | None = None
    others: dict[str, int] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)
    sessions: int = 2
    trust: tuple[str, ...] = ()
    port: int = 0

    @property
    def is_missing(self) -> bool:
        """True for one that needs npm, Java or Debian where they are not."""
        if self.place == "psql":
            return shutil.which("psql") is None
        return self.place in {"node", "pgjdbc"} and not (CACHE / self.place / "stamp").is_file()

    @property
    def python(self) -> Path:
        environment = CACHE / self.place / "bin/python"
        return environment if environment.is_file() else Path(sys.executable)

    @property
    def is_barred(self) -> bool:
        """True if its port is taken, or needs rights."""
        with socket.socket() as tried:
            # As the server that comes: connections of an earlier one may still be ending.
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", self.port))
            except OSError:
                return True
        return False

    def serve(self, scene: Scene) -> Any:
        """Return its face, which does not serve yet."""
        if self.face is DatabricksFace:
            load_types(CACHE / "databricks")
        more = {"port": self.port} if self.port else {}
        return self.face(scene.gateway, scene.tenant_id, warehouse=scene.warehouse, tls=scene.tls, **more)


def _postgresql(name: str, others: dict[str, int], *, place: str = "postgresql", **more: Any) -> Driver:
    # 53300 too many connections, 57P03 cannot connect now, 40001 serialization failure.
    once = {"53300": 1, "57P03": 1, "40001": 1}
    return Driver(name, PostgreSQLFace, place, others=others, tries=once, **more)


def _snowflake(
    name: str, place: str, program: str, trust: str, *, final: tuple[str, ...] = (), **more: Any
) -> Driver:
    others = {"SPOOFED": 4, "TELEMETRY": 2, **more.pop("others", {})}
    tries = {status: 1 if status in final else 2 for status in _STATUSES}
    return Driver(name, SnowflakeFace, place, program, others=others, tries=tries, trust=(trust,), **more)


def _databricks(
    name: str, place: str, program: str, *trust: str, again: tuple[str, ...], **more: Any
) -> Driver:
    others = {"SPOOFED": 4, **more.pop("others", {})}
    tries = {status: 2 if status in again else 1 for status in _STATUSES}
    return Driver(name, DatabricksFace, place, program, others=others, tries=tries, trust=trust, **more)


_STATUSES: Final = ("400", "403", "429", "500", "503")
DRIVERS: Final = [
    _postgresql("psycopg", {"SPOOFED": 28}),
    _postgresql("psycopg2", {"SPOOFED": 28}),
    _postgresql("asyncpg", {"SPOOFED": 15}),
    _postgresql("sqlalchemy", {"SPOOFED": 40, "PASSTHROUGH": 6}),
    _postgresql("adbc-postgresql", {"SPOOFED": 30, "PASSTHROUGH": 10}),
    _postgresql("node-pg", {"SPOOFED": 2}, place="node"),
    _postgresql("pgjdbc", {"SPOOFED": 6}, place="pgjdbc", program="PostgreSQL JDBC driver"),
    _postgresql("pgjdbc-store", {"SPOOFED": 6}, place="pgjdbc", program="PostgreSQL JDBC driver"),
    _postgresql("psql", {"SPOOFED": 2}, place="psql", program="psql"),
    # Each statement of dbt is a run of its own here.
    _postgresql("dbt-postgres", {"SPOOFED": 40}, place="dbt-postgres", program="dbt", sessions=13),
    _snowflake("snowflake", "snowflake4", "Snowflake Connector for Python 4.8.1", "REQUESTS_CA_BUNDLE"),
    _snowflake(
        "snowflake",
        "snowflake5",
        "Snowflake Connector for Python 5.2.0",
        "SSL_CERT_FILE",
        final=("400", "403"),
    ),
    _snowflake("node-snowflake", "node", "Snowflake driver for Node.js 3.3.0", "NODE_EXTRA_CA_CERTS"),
    _snowflake(
        "adbc-snowflake",
        "adbc-snowflake",
        "Snowflake driver for Go 1.19.0",
        "SSL_CERT_FILE",
        final=("400", "403"),
        others={"TELEMETRY": 3},
    ),
    # It is named in the login alone.
    _snowflake(
        "dbt-snowflake",
        "dbt-snowflake",
        "Snowflake Connector for Python 4.8.1",
        "REQUESTS_CA_BUNDLE",
        others={"SPOOFED": 26, "TELEMETRY": 13},
        sessions=13,
    ),
    _databricks(
        "databricks",
        "databricks",
        "Databricks SQL Connector for Python 4.9.0",
        "SSL_CERT_FILE",
        again=("429", "503"),
    ),
    _databricks(
        "node-databricks", "node", "Databricks SQL driver for Node.js 2.1.0", "NODE_EXTRA_CA_CERTS", again=()
    ),
    # It asks the host at port 443 before it connects, whatever the port.
    _databricks(
        "dbt-databricks",
        "dbt-databricks",
        "dbt 1.12.7",
        "REQUESTS_CA_BUNDLE",
        "SSL_CERT_FILE",
        again=("429", "503"),
        others={"SPOOFED": 26},
        sessions=13,
        port=443,
    ),
]
