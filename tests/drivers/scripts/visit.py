"""Ask a Gateway by a real driver, in an environment that has the driver alone.

Standard input is a JSON object: the driver, where the Gateway is, tokens and users by name, and steps. A
step is a user, a statement with ``?`` for each parameter, and the parameters. The output is a JSON array with
the rows of each step as texts, or the message of its error.
"""

# ruff: noqa: T201

import asyncio
import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
CACHE = HERE.parents[2] / ".cache/drivers"


def number(text, mark):
    """Return a statement with numbered marks: ``$1``."""
    counter = itertools.count(1)
    return re.sub(r"\?", lambda _: mark.format(next(counter)), text)


def inline(text, parameters):
    values = iter(parameters)
    return re.sub(r"\?", lambda _: str(next(values)), text)


class DbApi:
    """A connection by DB-API. ``mark`` is the driver's mark of a parameter."""

    def __init__(self, connection, mark="%s"):
        self._connection, self._mark = connection, mark

    def ask(self, text, parameters):
        cursor = self._connection.cursor()
        try:
            text = number(text, self._mark)
            cursor.execute(text, parameters) if parameters else cursor.execute(text)
            rows = cursor.fetchall() if cursor.description and text.startswith("SELECT") else []
        except Exception:
            self._end("rollback")
            raise
        finally:
            cursor.close()
        self._end("commit")
        return rows

    def close(self):
        self._connection.close()

    def _end(self, how):
        getattr(self._connection, how)()


class Autocommit(DbApi):
    def _end(self, how):
        pass


class Inlining(Autocommit):
    """Sends numbers in the text."""

    def ask(self, text, parameters):
        return super().ask(inline(text, parameters), ())


def psycopg(place, user, token):
    import psycopg

    return DbApi(
        psycopg.connect(
            host=place["host"],
            port=place["port"],
            dbname="sales",
            user=user,
            password=token,
            sslmode="verify-full",
            sslrootcert=place["ca"],
        )
    )


def psycopg2(place, user, token):
    import psycopg2

    return DbApi(
        psycopg2.connect(
            host=place["host"],
            port=place["port"],
            dbname="sales",
            user=user,
            password=token,
            sslmode="verify-full",
            sslrootcert=place["ca"],
        )
    )


class Asyncpg:
    def __init__(self, place, user, token):
        import ssl

        import asyncpg

        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._pool = self._loop.run_until_complete(
            asyncpg.create_pool(
                host=place["host"],
                port=place["port"],
                database="sales",
                user=user,
                password=token,
                ssl=ssl.create_default_context(cafile=place["ca"]),
                min_size=1,
                max_size=1,
            )
        )

    def ask(self, text, parameters):
        async def run():
            async with self._pool.acquire() as connection:
                return await connection.fetch(number(text, "${}"), *parameters)

        return [tuple(row) for row in self._loop.run_until_complete(run())]

    def close(self):
        self._loop.run_until_complete(self._pool.close())
        self._loop.close()


class Alchemy:
    def __init__(self, place, user, token):
        import sqlalchemy

        address = sqlalchemy.URL.create(
            "postgresql+psycopg",
            username=user,
            password=token,
            host=place["host"],
            port=place["port"],
            database="sales",
            query={"sslmode": "verify-full", "sslrootcert": place["ca"]},
        )
        self._engine = sqlalchemy.create_engine(address)
        self._text = sqlalchemy.text

    def ask(self, text, parameters):
        with self._engine.begin() as connection:
            named = {f"p{index}": value for index, value in enumerate(parameters, start=1)}
            result = connection.execute(self._text(number(text, ":p{}")), named)
            return [tuple(row) for row in result] if result.returns_rows else []

    def close(self):
        self._engine.dispose()


def adbc_postgresql(place, user, token):
    from urllib.parse import quote

    from adbc_driver_postgresql import dbapi

    return DbApi(
        dbapi.connect(
            f"postgresql://{quote(user)}:{token}@{place['host']}:{place['port']}/sales"
            f"?sslmode=verify-full&sslrootcert={quote(place['ca'])}"
        ),
        "${}",
    )


def snowflake(place, user, token):
    import snowflake.connector

    snowflake.connector.paramstyle = "qmark"
    return Autocommit(
        snowflake.connector.connect(
            host=place["host"],
            port=place["port"],
            account="gateway",
            user=user,
            authenticator="oauth",
            token=token,
            database="SALES",
            schema="PUBLIC",
            login_timeout=20,
            network_timeout=20,
        ),
        "?",
    )


def adbc_snowflake(place, user, token):
    from adbc_driver_snowflake import dbapi

    options = {
        "adbc.snowflake.sql.uri.host": place["host"],
        "adbc.snowflake.sql.uri.port": str(place["port"]),
        "adbc.snowflake.sql.uri.protocol": "https",
        "adbc.snowflake.sql.account": "gateway",
        "adbc.snowflake.sql.auth_type": "auth_oauth",
        "adbc.snowflake.sql.client_option.auth_token": token,
        "adbc.snowflake.sql.db": "SALES",
        "adbc.snowflake.sql.schema": "PUBLIC",
        "username": user,
    }
    return Inlining(dbapi.connect(db_kwargs=options, autocommit=True), "{}")


def databricks(place, user, token):
    from databricks import sql

    return Autocommit(
        sql.connect(
            server_hostname=place["host"],
            _port=place["port"],
            http_path="/sql/1.0/warehouses/1",
            access_token=token,
            enable_telemetry=place["port"] == 443,
            # By default it waits a minute before it tries again.
            _retry_delay_min=0.1,
            _retry_delay_max=5,
        ),
        "?",
    )


class Child:
    """A connection in a program of another language: it reads and writes lines with tabs."""

    def __init__(self, *command):
        self._program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, text, parameters):
        print(text, *parameters, sep="\t", file=self._program.stdin, flush=True)
        kind, *values = self._program.stdout.readline().rstrip("\n").split("\t")
        if kind != "rows":
            raise RuntimeError(*values)
        return [(value,) for value in values]

    def close(self):
        self._program.communicate()


class Psql:
    """Debian's psql, which reads statements from a pipe."""

    def __init__(self, place, user, token):
        given = {"host": place["host"], "port": place["port"], "user": user, "dbname": "sales"}
        given |= {"sslmode": "verify-full", "sslrootcert": place["ca"]}
        self._program = subprocess.Popen(
            ("stdbuf", "-oL", "psql", "-XqAt", " ".join(f"{name}={value}" for name, value in given.items())),
            env=os.environ | {"PGPASSWORD": token},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def ask(self, text, parameters):
        print(inline(text, parameters), ";\n\\echo ready", file=self._program.stdin, flush=True)
        lines = [*iter(lambda: self._program.stdout.readline().rstrip("\n"), "ready")]
        if lines and lines[0].startswith("ERROR"):
            raise RuntimeError(*lines)
        return [line.split("|") for line in lines]

    def close(self):
        self._program.communicate()


#: A model with tests, and an operation that asks what it is told.
PROJECT = {
    "dbt_project.yml": {
        "name": "marts",
        "version": "1.0",
        "profile": "gateway",
        "flags": {"send_anonymous_usage_stats": False},
    },
    "models/schema.yml": {
        "models": [{"name": "totals", "columns": [{"name": "id", "data_tests": ["unique", "not_null"]}]}]
    },
    "models/totals.sql": """
        {{ config(materialized=env_var("MATERIALIZED")) }} SELECT id, amount FROM sales.orders
    """,
    "macros/ask.sql": """
        {% macro ask(text) %}
            {% set table = run_query(text) %}
            {% if text.startswith("SELECT") %}
                {% set rows = [] %}
                {% for row in table.rows %}
                    {% do rows.append(row.values() | map("string") | list) %}
                {% endfor %}
                {{ log("ROWS" ~ tojson(rows), info=True) }}
            {% elif target.type == "postgres" %}
                {% do run_query("COMMIT") %}
            {% endif %}
        {% endmacro %}
    """,
}


class Dbt:
    """dbt. Each statement is an operation, and a connection of its own. ``dbt run`` is a command."""

    def __init__(self, place, user, token):
        from dbt.cli.main import dbtRunner

        self._folder = Path(tempfile.mkdtemp())
        adapter = place["driver"].removeprefix("dbt-")
        outputs = {
            "gateway": {
                "type": adapter,
                "threads": 1,
                "schema": "sales",
                **PROFILES[adapter](place, user, token),
            }
        }
        for name, content in {
            **PROJECT,
            "profiles.yml": {"gateway": {"target": "gateway", "outputs": outputs}},
        }.items():
            file = self._folder / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(content if isinstance(content, str) else json.dumps(content))
        self._runner = dbtRunner(callbacks=[self._hear])
        self._heard, self._failed = [], []

    def _hear(self, event):
        self._heard.append(event.info.msg)
        if event.info.level == "error":
            self._failed.append(event.info.msg)

    def ask(self, text, parameters):
        self._heard, self._failed = [], []
        command = ["run-operation", "ask", "--args", json.dumps({"text": inline(text, parameters)})]
        if text.startswith("dbt "):
            command = text.split()[1:]
        places = ["--project-dir", str(self._folder), "--profiles-dir", str(self._folder)]
        with contextlib.redirect_stdout(sys.stderr):
            result = self._runner.invoke([*command, *places, "--no-use-colors"])
        if not result.success:
            raise RuntimeError(result.exception, *self._failed)
        rows = [json.loads(line[4:]) for line in self._heard if line.startswith("ROWS")]
        return rows[0] if rows else []

    def close(self):
        shutil.rmtree(self._folder)


PROFILES = {
    "postgres": lambda place, user, token: {
        "host": place["host"],
        "port": place["port"],
        "user": user,
        "password": token,
        "dbname": place["database"],
        "sslmode": "verify-full",
        "sslrootcert": place["ca"],
    },
    "snowflake": lambda place, user, token: {
        "host": place["host"],
        "port": place["port"],
        "account": "gateway",
        "user": user,
        "authenticator": "oauth",
        "token": token,
        "database": place["database"],
    },
    "databricks": lambda place, _, token: {
        "host": place["host"],
        "http_path": "/sql/1.0/warehouses/1",
        "token": token,
        "catalog": place["database"],
        "connection_parameters": {"_port": place["port"], "enable_telemetry": False},
    },
}


def pgjdbc(place, user, token):
    trust, options = f"sslrootcert={place['ca']}", []
    if place["driver"] == "pgjdbc-store":
        # The authorities that Java itself trusts.
        trust, store = "sslfactory=org.postgresql.ssl.DefaultJavaSSLFactory", f"{place['ca']}.p12"
        if not Path(store).exists():
            given = ("-file", place["ca"], "-keystore", store, "-storepass", "changeit")
            subprocess.run(("keytool", "-importcert", "-noprompt", *given), check=True, capture_output=True)
        options = [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStorePassword=changeit"]
    script, jar = HERE / "Visit.java", CACHE / "pgjdbc/postgresql.jar"
    return Child("java", *options, "-cp", jar, script, place["host"], str(place["port"]), user, token, trust)


def node(place, user, token):
    driver = place["driver"].removeprefix("node-")
    where = (place["host"], str(place["port"]))
    return Child("node", HERE / "visit.mjs", CACHE / "node", driver, *where, user, token, place["ca"])


DRIVERS = {
    "psycopg": psycopg,
    "psycopg2": psycopg2,
    "asyncpg": Asyncpg,
    "sqlalchemy": Alchemy,
    "adbc-postgresql": adbc_postgresql,
    "snowflake": snowflake,
    "databricks": databricks,
    "adbc-snowflake": adbc_snowflake,
    "psql": Psql,
    "dbt-postgres": Dbt,
    "dbt-snowflake": Dbt,
    "dbt-databricks": Dbt,
    "pgjdbc": pgjdbc,
    "pgjdbc-store": pgjdbc,
    "node-pg": node,
    "node-snowflake": node,
    "node-databricks": node,
}


def main():
    place = json.load(sys.stdin)
    connections, answers = {}, []
    for name, text, parameters in place["steps"]:
        if name not in connections:
            connect = DRIVERS[place["driver"]]
            connections[name] = connect(place, place["users"][name], place["tokens"][name])
        try:
            rows = connections[name].ask(text, parameters)
            answers.append([[str(value) for value in row] for row in rows])
        except Exception as error:  # noqa: BLE001  # each driver has its own
            answers.append(str(error))
    for connection in connections.values():
        connection.close()
    print(json.dumps(answers))


main()
