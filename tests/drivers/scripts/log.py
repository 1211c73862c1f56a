"""Read the log at PostgreSQL's port by a driver, in an environment that has the driver alone.

Arguments: the driver, and a JSON object with host, port, database, password and authority. The output is
a JSON object: what was found, by name.
"""

# ruff: noqa: T201

import asyncio
import json
import sys

COUNT = 'SELECT "userName", count(*) AS n FROM proxy_logs WHERE "userName" <> {} GROUP BY 1 ORDER BY 1'
SUM = (
    'SELECT sum("responseTimeMs") AS total, avg("responseTimeMs") AS mean, max(time) AS last'
    " FROM proxy_logs_time"
)


def uri(place):
    host = f"anyone:{place['password']}@{place['host']}:{place['port']}/{place['database']}"
    return f"postgresql://{host}?sslmode=verify-full&sslrootcert={place['authority']}"


def texts(rows):
    return [[str(value) for value in row] for row in rows]


def psycopg2(place):
    import psycopg2

    with psycopg2.connect(uri(place)) as connection, connection.cursor() as cursor:
        cursor.execute(COUNT.format("%s"), ["u2"])
        rows = cursor.fetchall()
        cursor.execute(SUM)
        return {"count": texts(rows), "sum": texts(cursor.fetchall())}


def psycopg(place):
    import psycopg

    with psycopg.connect(uri(place)) as connection:
        # From the sixth on, the statement has a name on the server.
        for _ in range(8):
            rows = connection.execute(COUNT.format("%s"), ["u2"]).fetchall()
        sums = connection.cursor(binary=True).execute(SUM).fetchall()
        with connection.cursor("pages", binary=True) as cursor:
            cursor.itersize = 4
            cursor.execute("SELECT day FROM proxy_logs")
            days = len(list(cursor))
        return {"count": texts(rows), "sum": texts(sums), "cursor": days}


def asyncpg(place):
    import asyncpg

    async def read():
        pool = await asyncpg.create_pool(uri(place), min_size=1, max_size=2)
        async with pool.acquire() as connection:
            rows = await connection.fetch(COUNT.format("$1"), "u2")
            sums = await connection.fetch(SUM)
            statusless = await connection.fetchval(
                'SELECT count(*) FROM proxy_logs WHERE "statusCode" = $1', 200
            )
            async with connection.transaction():
                cursor = await connection.cursor("SELECT day FROM proxy_logs ORDER BY day")
                first, second = await cursor.fetch(2), await cursor.fetch(10)
        async with pool.acquire() as connection:
            again = await connection.fetchval("SELECT count(*) FROM proxy_logs")
        await pool.close()
        return {
            "count": texts(rows),
            "sum": texts(sums),
            "status": statusless,
            "pages": [len(first), len(second)],
            "again": again,
        }

    return asyncio.run(read())


def sqlalchemy(place):
    from sqlalchemy import MetaData, Table, create_engine, func, inspect, select

    engine = create_engine(uri(place).replace("postgresql:", "postgresql+psycopg:"))
    found = inspect(engine)
    logs = Table("proxy_logs", MetaData(), autoload_with=engine)
    statement = select(logs.c.userName, func.count()).where(logs.c.userName != "u2").group_by(logs.c.userName)
    with engine.connect() as connection:
        rows = connection.execute(statement.order_by(logs.c.userName)).all()
        pages = connection.execution_options(yield_per=4).execute(select(logs.c.day)).partitions()
        sizes = [len(page) for page in pages]
    return {
        "pages": sizes,
        "count": texts(rows),
        "tables": found.get_table_names(),
        "views": found.get_view_names(),
        "columns": len(found.get_columns("proxy_logs")),
        "comment": found.get_columns("proxy_logs")[0]["comment"],
    }


def adbc(place):
    import adbc_driver_postgresql.dbapi

    with adbc_driver_postgresql.dbapi.connect(uri(place)) as connection, connection.cursor() as cursor:
        cursor.execute(COUNT.format("'u2'"))
        rows = cursor.fetch_arrow_table().to_pylist()
        cursor.execute(SUM)
        sums = cursor.fetch_arrow_table().to_pylist()
        cursor.execute("SELECT * FROM proxy_logs_time ORDER BY timestamp")
        table = cursor.fetch_arrow_table()
    return {
        "count": texts(row.values() for row in rows),
        "sum": texts(row.values() for row in sums),
        "shape": [table.num_rows, table.num_columns],
    }


def connectorx(place):
    import connectorx

    found = {}
    for protocol in ("binary", "csv", "cursor"):
        # Its TLS has no verify-full.
        address = uri(place).replace("verify-full", "require")
        table = connectorx.read_sql(address, COUNT.format("'u2'"), protocol=protocol, return_type="arrow")
        found[protocol] = texts(row.values() for row in table.to_pylist())
    return found


def ibis(place):
    import ibis

    connection = ibis.postgres.connect(
        host=place["host"],
        port=place["port"],
        user="anyone",
        password=place["password"],
        database=place["database"],
        sslmode="verify-full",
        sslrootcert=place["authority"],
    )
    logs = connection.table("proxy_logs_time")
    most = logs.filter(logs.userName != "u2")
    counts = most.group_by("userName").agg(n=most.count()).order_by("userName")
    days = logs.group_by(day=logs.time.truncate("D")).agg(n=logs.count()).order_by("day")
    batches = logs.select("time", "day").to_pyarrow_batches(chunk_size=4)
    return {
        "count": texts(row.values() for row in counts.to_pyarrow().to_pylist()),
        "days": [str(day.date()) for day in days.execute()["day"]],
        "pages": [batch.num_rows for batch in batches],
        "tables": connection.list_tables(),
    }


def harlequin(place):
    from harlequin_postgres.adapter import HarlequinPostgresAdapter

    connection = HarlequinPostgresAdapter(conn_str=(uri(place),)).connect()
    ((name,),) = connection.execute("SELECT current_database()").fetchall()
    (database,) = (database for database in connection.get_catalog().items if database.label == name)
    (schema,) = (schema for schema in database.fetch_children() if schema.label == "public")
    return {
        "count": texts(connection.execute(COUNT.format("'u2'")).fetchall()),
        "columns": {table.label: len(table.fetch_children()) for table in schema.fetch_children()},
    }


def odbc(place):
    """The driver under Excel, Power BI and Tableau on Linux, with and without cursors of the server."""
    import pyodbc

    found = {}
    for name, more in (("plain", {}), ("cursor", {"UseDeclareFetch": 1, "Fetch": 4})):
        options = {
            "Driver": place["driver"],
            "Server": place["host"],
            "Port": place["port"],
            "Database": place["database"],
            "Uid": "anyone",
            "Pwd": place["password"],
            "SSLmode": "verify-full",
            "pqopt": f"{{sslrootcert={place['authority']}}}",
            **more,
        }
        text = ";".join(f"{key}={value}" for key, value in options.items())
        with pyodbc.connect(text) as connection, connection.cursor() as cursor:
            found[name] = {
                "tables": [row.table_name for row in cursor.tables(schema="public")],
                "columns": len(list(cursor.columns(table="proxy_logs_time"))),
                "count": texts(cursor.execute(COUNT.format("?"), "u2").fetchall()),
                "sum": texts(cursor.execute(SUM).fetchall()),
                "pages": [
                    len(cursor.execute("SELECT * FROM proxy_logs").fetchmany(2)),
                    len(cursor.fetchall()),
                ],
            }
    return found


if __name__ == "__main__":
    driver, place = sys.argv[1:]
    print(json.dumps(globals()[driver](json.loads(place))))
