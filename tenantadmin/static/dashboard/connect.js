// How programs reach the Gateway of a tenant: it speaks the protocol of the tenant's warehouse. See
// docs/connect.md.

export const TOOLS = ["Python", "dbt", "JDBC", "DBeaver", "Tableau", "Power BI"];

/** @type {Record<string, {name: string, port: number, database: string, schema: string}>} */
const KINDS = {
  postgresql: { name: "PostgreSQL", port: 5432, database: "postgres", schema: "public" },
  databricks: { name: "Databricks", port: 443, database: "main", schema: "default" },
  snowflake: { name: "Snowflake", port: 443, database: "DATABASE", schema: "PUBLIC" },
};

/**
 * @param {Contract.TenantConfig} config
 * @param {string} email
 * @returns {Target | null} null: the address or the warehouse is missing
 */
export function targetOf({ fqdns: [host], warehouse: house }, email) {
  if (!host || !house) return null;
  const kind = KINDS[house.adapterType];
  return {
    kind: house.adapterType,
    host,
    port: house.port ?? kind.port,
    user: house.adapterType === "databricks" ? "token" : email,
    database: house.database ?? kind.database,
    schema: house.schema ?? kind.schema,
    path: house.httpPath ?? "/sql/1.0/warehouses/ID",
    house: house.warehouseName ?? "WAREHOUSE",
  };
}

/** @type {(it: Target) => [string, string][]} what a program asks for */
export const factsOf = (it) => [
  ["Host", it.host],
  ["Port", String(it.port)],
  it.kind === "databricks" ? ["HTTP path", it.path] : ["Database", it.database],
  ...(it.kind === "snowflake" ? /** @type {[string, string][]} */ ([["Warehouse", it.house]]) : []),
  ["User", it.user],
  ["Password", "a token"],
];

/** @type {Record<string, Record<string, (it: Target) => string>>} */
const CODE = {
  Python: {
    postgresql: (it) => `import os
import psycopg

with psycopg.connect(host="${it.host}", port=${it.port}, dbname="${it.database}", user="${it.user}", password=os.environ["GATEWAY_TOKEN"],
                     sslmode="verify-full", sslrootcert="system") as connection:
    print(connection.execute("SELECT 1").fetchone())`,
    databricks: (it) => `import os
from databricks import sql

with sql.connect(server_hostname="${it.host}", _port=${it.port}, http_path="${it.path}", access_token=os.environ["GATEWAY_TOKEN"]${it.port === 443 ? "" : ", enable_telemetry=False"}) as connection, connection.cursor() as cursor:
    print(cursor.execute("SELECT 1").fetchall())`,
    snowflake: (it) => `import os
import snowflake.connector

with snowflake.connector.connect(host="${it.host}", port=${it.port}, account="${it.host.split(".")[0]}", user="${it.user}", authenticator="oauth", token=os.environ["GATEWAY_TOKEN"],
                                 database="${it.database}", schema="${it.schema}", warehouse="${it.house}") as connection:
    print(connection.cursor().execute("SELECT 1").fetchone())`,
  },
  dbt: {
    postgresql: (it) =>
      profile(it, "postgres", [
        `port: ${it.port}`,
        `user: ${it.user}`,
        `password: ${SECRET}`,
        `dbname: ${it.database}`,
        "sslmode: verify-full",
        "sslrootcert: system",
      ]),
    databricks: (it) =>
      profile(it, "databricks", [
        `http_path: ${it.path}`,
        `token: ${SECRET}`,
        `catalog: ${it.database}`,
        `connection_parameters: {_port: ${it.port}${it.port === 443 ? "" : ", enable_telemetry: false"}}`,
        ...(it.port === 443
          ? []
          : ["# dbt also asks the host at port 443, and waits if nothing answers there"]),
      ]),
    snowflake: (it) =>
      profile(it, "snowflake", [
        `port: ${it.port}`,
        `account: ${it.host.split(".")[0]}`,
        `user: ${it.user}`,
        "authenticator: oauth",
        `token: ${SECRET}`,
        `database: ${it.database}`,
        `warehouse: ${it.house}`,
      ]),
  },
  JDBC: {
    postgresql: (it) =>
      `jdbc:postgresql://${it.host}:${it.port}/${it.database}?user=${encodeURIComponent(it.user)}&sslmode=verify-full&sslfactory=org.postgresql.ssl.DefaultJavaSSLFactory`,
    databricks: (it) =>
      `jdbc:databricks://${it.host}:${it.port};httpPath=${it.path};AuthMech=3;UID=token`,
    snowflake: (it) =>
      `jdbc:snowflake://${it.host}:${it.port}/?db=${it.database}&schema=${it.schema}&warehouse=${it.house}&authenticator=oauth`,
  },
};
const SECRET = "\"{{ env_var('GATEWAY_TOKEN') }}\"";

/** @param {Target} it @param {string} type @param {string[]} more */
const profile = (it, type, more) =>
  [
    "gateway:",
    "  target: gateway",
    "  outputs:",
    "    gateway:",
    ...[`type: ${type}`, `host: ${it.host}`, ...more, `schema: ${it.schema}`].map(
      (line) => `      ${line}`,
    ),
  ].join("\n");

/** @type {Record<string, (name: string) => string>} */
const MENU = {
  DBeaver: (name) => `Database, New Database Connection, ${name}`,
  Tableau: (name) => `Connect, To a Server, ${name}`,
  "Power BI": (name) => `Get Data, ${name}`,
};

/** @type {(tool: string, it: Target) => string} what to write or to enter in a program */
export function howTo(tool, it) {
  const menu = MENU[tool];
  if (!menu) return CODE[tool][it.kind](it);
  return [
    menu(KINDS[it.kind].name),
    ...factsOf(it).map(([name, value]) => `${name}: ${value}`),
  ].join("\n");
}
