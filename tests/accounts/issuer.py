"""A scripted identity provider: an OpenID issuer, GitHub's and Microsoft's interfaces, in one HTTP server.

The end-to-end test runs against a real provider; this one can also lie, as the tests tell it to.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa


class Issuer:
    """The provider's state. ``user`` is who signs in; ``claims`` overrides the ID token's claims."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.signing_key: Any = self.key
        self.algorithm = "RS256"
        self.url = ""
        self.user: dict[str, Any] = {
            "sub": "117",
            "email": "ada@example.org",
            "email_verified": True,
            "name": "Ada Lovelace",
        }
        self.claims: dict[str, Any] = {}
        #: What the discovery document says besides.
        self.metadata: dict[str, Any] = {}
        self.userinfo: dict[str, Any] = {}
        self.emails: list[dict[str, Any]] = []
        self.status = 200
        self.codes: dict[str, dict[str, str]] = {}
        self.exchanges = 0

    def authorize(self, address: str) -> dict[str, str]:
        """Do what a browser and its user do at the provider's page; returns code and state."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        return {"code": code, "state": query["state"]}

    def get(self, path: str) -> Any:
        if path == "/.well-known/openid-configuration":
            return {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "userinfo_endpoint": f"{self.url}/userinfo",
                "jwks_uri": f"{self.url}/keys",
                "token_endpoint_auth_methods_supported": ["client_secret_post"],
                **self.metadata,
            }
        if path == "/keys":
            public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
            return {"keys": [{**public, "kid": "one", "alg": "RS256", "use": "sig"}]}
        if path == "/user/emails":
            return self.emails
        if path in {"/userinfo", "/user", "/v1.0/me"}:
            return {**self.user, **self.userinfo}
        return None

    def exchange(self, form: dict[str, str]) -> Any:
        self.exchanges += 1
        begun = self.codes.pop(form.get("code", ""), None)
        if (
            begun is None
            or form["client_secret"] != "secret"
            or form["redirect_uri"] != begun["redirect_uri"]
        ):
            return None
        verifier = hashlib.sha256(form["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(verifier).rstrip(b"=").decode() != begun["code_challenge"]:
            return None
        answer = {"access_token": "opaque", "token_type": "Bearer"}
        if "nonce" in begun:
            answer["id_token"] = self.id_token(begun)
        return answer

    def id_token(self, begun: dict[str, str]) -> str:
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": begun["client_id"],
            "iat": now,
            "exp": now + 300,
            "nonce": begun["nonce"],
            **self.user,
            **self.claims,
        }
        return jwt.encode(claims, self.signing_key, algorithm=self.algorithm, headers={"kid": "one"})


@contextmanager
def running_issuer() -> Iterator[Issuer]:
    """Run a provider on 127.0.0.1 until the block ends."""
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def answer(self, body: Any) -> None:
            status = 400 if body is None else issuer.status
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def do_GET(self) -> None:
            self.answer(issuer.get(urlsplit(self.path).path))

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            form = parse_qs(self.rfile.read(length).decode())
            self.answer(issuer.exchange({name: values[0] for name, values in form.items()}))

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
