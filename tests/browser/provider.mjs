// A real OpenID provider from npm: `node provider.mjs PACKAGE CALLBACK CLIENT_ID CLIENT_SECRET EMAIL SECONDS`. PACKAGE is
// the folder of oidc-provider. Its clock is SECONDS ahead. It prints its address and serves until it is ended.

import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const [folder, callback, clientId, clientSecret, email, seconds] = process.argv.slice(2);

const RealDate = Date;
const now = () => RealDate.now() + 1000 * Number(seconds);
globalThis.Date = class extends RealDate {
  constructor(...parts) {
    super(...(parts.length ? parts : [now()]));
  }
  static now = now;
};
// It says on the console that it is not meant for production.
console.info = console.warn = () => {};

const { default: Provider } = await import(pathToFileURL(`${folder}/lib/index.js`));
const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id: clientId, client_secret: clientSecret, redirect_uris: [callback] }],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    conformIdTokenClaims: false,
    findAccount: async (_context, id) => ({
      accountId: id,
      claims: async () => ({ sub: id, email, email_verified: true, name: "Ada Lovelace" }),
    }),
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
