// Ask a Gateway by a driver of Node: a line of standard input is a statement and its parameters, as in visit.py.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [modules, driver, host, port, user, token, ca] = process.argv.slice(2);
const require = createRequire(`${modules}/`);

const CONNECT = {
  async pg() {
    const { Client } = require("pg");
    const ssl = { ca: readFileSync(ca, "utf8") };
    const client = new Client({ host, port: Number(port), database: "sales", user, password: token, ssl });
    await client.connect();
    return {
      ask: async (text, values) => (await client.query({ text: numbered(text), values, rowMode: "array" })).rows,
      close: () => client.end(),
    };
  },
  async snowflake() {
    const snowflake = require("snowflake-sdk");
    snowflake.configure({ logLevel: "OFF", additionalLogToConsole: false, ocspFailOpen: true });
    const connection = snowflake.createConnection({
      accessUrl: `https://${host}:${port}`,
      account: "gateway",
      username: user,
      authenticator: "OAUTH",
      token,
      database: "SALES",
      schema: "PUBLIC",
    });
    await new Promise((done, failed) => connection.connect((error) => (error ? failed(error) : done())));
    const ask = (sqlText, binds) =>
      new Promise((done, failed) =>
        connection.execute({
          sqlText,
          binds,
          complete: (error, _, rows) => (error ? failed(error) : done(rows.map(Object.values))),
        }),
      );
    return { ask, close: () => new Promise((done) => connection.destroy(done)) };
  },
  async databricks() {
    const { DBSQLClient } = require("@databricks/sql");
    // By default it logs to standard output.
    const client = new DBSQLClient({ logger: { log() {} } });
    await client.connect({ host, port: Number(port), path: "/sql/1.0/warehouses/1", token, telemetryEnabled: false });
    const session = await client.openSession();
    const ask = async (text, ordinalParameters) => {
      const operation = await session.executeStatement(text, { ordinalParameters });
      const rows = await operation.fetchAll();
      await operation.close();
      return rows.map(Object.values);
    };
    return {
      ask,
      close: async () => {
        await session.close();
        await client.close();
      },
    };
  },
};

function numbered(text) {
  let number = 0;
  return text.replace(/\?/g, () => `$${++number}`);
}

const connection = await CONNECT[driver]();
for await (const line of createInterface({ input: process.stdin })) {
  const [text, ...values] = line.split("\t");
  try {
    const rows = await connection.ask(text, values.map(Number));
    console.log(["rows", ...(text.startsWith("SELECT") ? rows.map(([value]) => value) : [])].join("\t"));
  } catch (error) {
    console.log(`error\t${String(error.message).replace(/\s+/g, " ")}`);
  }
}
await connection.close();
