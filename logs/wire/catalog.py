"""The catalog server: a database with an empty ``proxy_logs``, and a role that may only look at it.

Clients send it any statement that reads. So the role may execute what computes, and what describes the
database; not what tells of the server, of other clients or files, waits, locks or writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import psycopg
from psycopg import sql
from scramp import ScramClient, ScramException

from logs.columns import COLUMNS, DAY_COLUMN, SqlType
from logs.sql.view import LOG_VIEW, TIME_VIEW, TIMES
from logs.wire.messages import (
    LOST,
    SSL_REQUEST,
    Message,
    ProtocolError,
    Stream,
    pack_cancel,
    pack_request,
    pack_startup,
)
from logs.wire.statements import Failure

#: A longer answer is not passed on: one value may have a gigabyte.
MAX_ANSWER: Final = 4 << 20
_CONNECT_SECONDS: Final = 5
_MECHANISM: Final = "SCRAM-SHA-256"
#: SQLSTATEs of a server that does not know the role, its password or the database.
_LOST: Final = ("28P01", "28000", "3D000")
#: The same of a setting that the client has chosen: it is unknown, or has no such value.
_SETTING_REFUSED: Final = ("42704", "22023")
_TYPES: Final = {
    SqlType.VARCHAR: "text",
    SqlType.BIGINT: "bigint",
    SqlType.INTEGER: "integer",
    SqlType.BOOLEAN: "boolean",
}
#: Functions that do more than compute from their arguments, and may be executed all the same.
_DESCRIBING: Final = (
    r"^(pg_.*_is_visible|pg_get_(expr|keywords|userbyid|viewdef|indexdef|ruledef|triggerdef|constraintdef|partkeydef"
    r"|partition_constraintdef|serial_sequence|function.*|statisticsobjdef.*|catalog_foreign_keys|object_address"
    r"|replica_identity_index|acl)|pg_(has_role|typeof|basetype|backend_pid|char_to_encoding|encoding_to_char"
    r"|client_encoding|collation_for|column_is_updatable|column_size|describe_object|identify_object.*"
    r"|index.*_has_property|input_.*|is_other_temp_schema|my_temp_schema|listening_channels|options_to_table"
    r"|postmaster_start_time|relation_is_.*|sequence_parameters|settings_get_flags|show_all_settings"
    r"|timezone_.*|available_extension.*|extension_update_paths|prepared_statement|cursor|partition_tree"
    r"|partition_ancestors|(total_|table_|indexes_|database_)?(relation_)?size|is_in_recovery"
    r"|advisory_unlock_all|stat_get_live_tuples)|clock_timestamp|timeofday"
    r"|random|random_normal|setseed|gen_random_uuid|uuidv[47])$"
)
_REFUSED_STABLE: Final = r"^(pg_|txid_|fmgr_|inet_server_|lo_)|_to_xml"
#: It waits for clients that read the catalog as it was.
_MAKE: Final = f"""
SET LOCAL lock_timeout = '5s';
REVOKE ALL ON DATABASE {{database}} FROM PUBLIC;
GRANT CONNECT ON DATABASE {{database}} TO {{role}};
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO {{role}};
REVOKE ALL ON LANGUAGE plpgsql FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA pg_catalog FROM PUBLIC;
REVOKE SELECT ON pg_db_role_setting FROM PUBLIC;
REVOKE UPDATE ON pg_settings FROM PUBLIC;
DO $do$ DECLARE allowed text; BEGIN
    FOR allowed IN SELECT oid::regprocedure FROM pg_proc
        WHERE pronamespace = 'pg_catalog'::regnamespace
          AND (provolatile = 'i' OR proname ~ '{_DESCRIBING}'
               OR provolatile = 's' AND proname !~ '{_REFUSED_STABLE}')
    LOOP EXECUTE 'GRANT EXECUTE ON ROUTINE ' || allowed || ' TO PUBLIC'; END LOOP;
END $do$;
DROP TABLE IF EXISTS public.{LOG_VIEW} CASCADE;
CREATE TABLE public.{LOG_VIEW} ({{columns}});
CREATE VIEW public.{TIME_VIEW} AS SELECT *, {", ".join(f"NULL::timestamp AS {name}" for name in TIMES)}
    FROM public.{LOG_VIEW};
{{comments}}
GRANT SELECT ON public.{LOG_VIEW}, public.{TIME_VIEW} TO {{role}};
"""  # noqa: S608  # names of views
#: How the sessions of the role begin. The service ends what takes too long.
_SESSION: Final = {
    "statement_timeout": "10s",
    "lock_timeout": "5s",
    # A statement of a client that is gone would run on.
    "client_connection_check_interval": "2s",
    "standard_conforming_strings": "on",
    "idle_in_transaction_session_timeout": "0",
    "default_transaction_read_only": "on",
    "search_path": "public",
    # Statements of tools write none. docker/compose.yaml has room for so much of each connection.
    "temp_file_limit": "4MB",
    "work_mem": "4MB",
    # A client could fill the disk with the texts of statements that fail.
    "log_min_error_statement": "panic",
    "log_min_messages": "fatal",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
}


@dataclass(frozen=True, slots=True)
class Catalog:
    """Where the catalog is, and what libpq would be told of TLS. The role has the name of the database."""

    host: str
    port: int
    database: str
    password: str
    sslmode: str = "prefer"
    sslrootcert: str = ""


@cache
def _tls_of(catalog: Catalog) -> ssl.SSLContext | None:
    """Return the settings of TLS, as libpq understands them; None for a connection without."""
    if catalog.sslmode not in {"require", "verify-ca", "verify-full"}:
        return None
    authority = None if catalog.sslrootcert == "system" else catalog.sslrootcert or None
    context = ssl.create_default_context(cafile=authority)
    context.check_hostname = catalog.sslmode == "verify-full"
    if catalog.sslmode == "require" and not catalog.sslrootcert:
        context.verify_mode = ssl.CERT_NONE
    return context


def prepare_catalog(server: Mapping[str, Any], *, secret: str, connections: int) -> Catalog:
    """Make or renew the database of the catalog and its role. Any number of processes may do so at once.

    Args:
        server: settings of a database, as Django has them, of a superuser.
        secret: from which the role's password is made.
        connections: how many the role may have.

    Raises:
        psycopg.Error: the server is away, or refuses it.
    """
    name = f"{server['NAME']}_catalog"
    password = hmac.digest(secret.encode(), b"catalog server", "sha256").hex()
    place = server["HOST"] or "/var/run/postgresql", int(server["PORT"] or 5432)
    options = {"connect_timeout": _CONNECT_SECONDS, **server["OPTIONS"]}
    conninfo = psycopg.conninfo.make_conninfo(
        host=place[0], port=place[1], user=server["USER"], password=server["PASSWORD"], **options
    )
    role = sql.Identifier(name)
    limits = sql.SQL("LOGIN NOINHERIT CONNECTION LIMIT {} PASSWORD {}").format(connections + 2, password)
    with psycopg.connect(conninfo, dbname=server["NAME"], autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(hashtext('catalog server'))")
        found = connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [name]).fetchone()
        verb = sql.SQL("CREATE" if found is None else "ALTER")
        connection.execute(sql.SQL("{} ROLE {} {}").format(verb, role, limits))
        connection.execute(sql.SQL("ALTER ROLE {} RESET ALL").format(role))
        if connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchone() is None:
            connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(role))
        with psycopg.connect(conninfo, dbname=name) as inside:
            _fill(inside, role)
            for setting, value in _SESSION.items():
                inside.execute(
                    sql.SQL("ALTER ROLE {} IN DATABASE {} SET {} = {}").format(
                        role, role, sql.Identifier(setting), value
                    )
                )
    tls = {name: options[name] for name in ("sslmode", "sslrootcert") if name in options}
    return Catalog(*place, name, password, **tls)


def _fill(connection: psycopg.Connection[Any], role: sql.Identifier) -> None:
    """Make the tables and rights, unless the database is as this release makes it."""
    made = hashlib.sha256(repr((_MAKE, COLUMNS, connection.info.server_version)).encode()).hexdigest()
    row = connection.execute(
        "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = current_database()"
    ).fetchone()
    if row == (made,):
        return
    columns = [
        sql.SQL("{} {}{}").format(
            sql.Identifier(column.name),
            sql.SQL(_TYPES[column.type]),
            sql.SQL(" NOT NULL" if column.never_null else ""),
        )
        for column in (*COLUMNS, DAY_COLUMN)
    ]
    meanings = {column.name: column.meaning for column in (*COLUMNS, DAY_COLUMN)}
    times = {name: f"{meanings[of].removesuffix(', epoch ms')}, UTC" for name, of in TIMES.items()}
    comments = [
        sql.SQL("COMMENT ON COLUMN public.{}.{} IS {};").format(
            sql.Identifier(table), sql.Identifier(name), meaning
        )
        for table, known in ((LOG_VIEW, meanings), (TIME_VIEW, {**meanings, **times}))
        for name, meaning in known.items()
    ]
    connection.execute(
        sql.SQL(_MAKE).format(
            database=role,
            role=role,
            columns=sql.SQL(", ").join(columns),
            comments=sql.SQL("\n").join(comments),
        )
    )
    connection.execute(sql.SQL("COMMENT ON DATABASE {} IS {}").format(role, made))


class Unavailable(Exception):
    """The catalog server is away, or has no connection left."""


class NotPrepared(Unavailable):
    """The catalog server has lost the catalog's database, its role or the role's settings."""


class Backend:
    """A connection to the catalog server, for one client."""

    def __init__(self, catalog: Catalog, stream: Stream) -> None:
        self._catalog = catalog
        self._stream = stream
        #: ``I`` outside a transaction, ``T`` in one, ``E`` in one that has failed.
        self.status = b"I"
        self.is_synced = True
        self.parameters: dict[str, str] = {}
        self._key = b""

    @classmethod
    async def connect(cls, catalog: Catalog, settings: Mapping[str, str]) -> Backend:
        """Open a session with ``settings``.

        Raises:
            Unavailable: with the reason.
            NotPrepared: `prepare_catalog` may cure it.
            Failure: one of the settings is refused.
        """
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                backend = cls(catalog, await _connect(catalog))
                with contextlib.ExitStack() as failed:
                    failed.callback(backend.close)
                    await backend._start(settings)
                    failed.pop_all()
        except (*LOST, ScramException) as error:
            raise Unavailable(str(error)) from error
        return backend

    async def _start(self, settings: Mapping[str, str]) -> None:
        name = self._catalog.database
        await self._stream.send_bytes(pack_startup({**settings, "user": name, "database": name}))
        scram = ScramClient([_MECHANISM], name, self._catalog.password)
        while (message := await self.read()).kind != b"Z":
            match message.kind:
                case b"R":
                    if step := _prove(scram, message.body):
                        await self._stream.send(Message(b"p", step))
                case b"S":
                    name, _, value = message.body.decode().rstrip("\0").partition("\0")
                    self.parameters[name] = value
                case b"K":
                    self._key = message.body
                case b"E":
                    fields = {field[:1]: field[1:] for field in message.body.split(b"\0")}
                    code, text = (fields.get(kind, b"").decode(errors="replace") for kind in (b"C", b"M"))
                    if code in _SETTING_REFUSED:
                        raise Failure(code, text, is_fatal=True)
                    raise NotPrepared(text) if code in _LOST else Unavailable(text)
        if self.parameters.get("default_transaction_read_only") != "on":
            raise NotPrepared("The role has not its settings.")

    async def read(self) -> Message:
        """Read a message, and note what it says of the session.

        Raises:
            asyncio.IncompleteReadError, ProtocolError: as `Stream.read`.
        """
        message = await self._stream.read(longest=MAX_ANSWER)
        if message.kind == b"Z":
            self.status, self.is_synced = message.body, True
        return message

    async def send(self, *messages: Message) -> None:
        self.is_synced = False
        await self._stream.send(*messages)

    async def cancel(self) -> None:
        """Ask the server to end the statement that runs."""
        with contextlib.suppress(*LOST):
            async with asyncio.timeout(_CONNECT_SECONDS):
                stream = await _connect(self._catalog)
                with contextlib.closing(stream):
                    await stream.send_bytes(pack_cancel(self._key))
                    await stream.finish()

    def close(self) -> None:
        self._stream.close()


async def _connect(catalog: Catalog) -> Stream:
    if catalog.host.startswith("/"):
        return Stream(*await asyncio.open_unix_connection(f"{catalog.host}/.s.PGSQL.{catalog.port}"))
    reader, writer = await asyncio.open_connection(catalog.host, catalog.port)
    stream = Stream(reader, writer)
    if (tls := _tls_of(catalog)) is not None:
        with contextlib.ExitStack() as failed:
            failed.callback(stream.close)
            writer.write(pack_request(SSL_REQUEST))
            # More would be plain text that someone between has added.
            if await reader.read(2) != b"S":
                raise ProtocolError("The catalog server has no TLS.")
            await writer.start_tls(tls, server_hostname=catalog.host)
            failed.pop_all()
    return stream


def _prove(scram: ScramClient, body: bytes) -> bytes:
    """Return the answer to a message of authentication; empty if it needs none."""
    text = body[4:].decode(errors="replace")
    match int.from_bytes(body[:4], "big"):
        case 0:
            return b""
        case 10 if _MECHANISM in text.split("\0"):
            first: bytes = scram.get_client_first().encode()
            return f"{_MECHANISM}\0".encode() + len(first).to_bytes(4, "big") + first
        case 11:
            scram.set_server_first(text)
            final: bytes = scram.get_client_final().encode()
            return final
        case 12:
            scram.set_server_final(text)
            return b""
        case _:
            raise ProtocolError(f"The catalog server asks for a password in another way than {_MECHANISM}.")
