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
        return {"count": texts(rows), "sum": texts(sums)}


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
    return {
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


if __name__ == "__main__":
    driver, place = sys.argv[1:]
    print(json.dumps(globals()[driver](json.loads(place))))
