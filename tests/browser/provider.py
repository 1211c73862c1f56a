"""A real OpenID provider in a process of its own: `allauth.idp.oidc` on SQLite.

``python -m tests.browser.provider FOLDER CALLBACK SECONDS`` prints its address and serves until it is ended.
The clock of its tokens is SECONDS ahead.
"""

from __future__ import annotations

import secrets
import sys
import time
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import django
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from django.conf import settings
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application

CLIENT_ID, CLIENT_SECRET = "tenantadmin", "the-secret-of-the-client"
EMAIL, PASSWORD = "ada@example.org", "correct horse battery staple"


def new_key() -> str:
    return (
        rsa.generate_private_key(public_exponent=65537, key_size=2048)
        .private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        .decode()
    )


def configure(folder: Path) -> None:
    """Set Django up as nothing but a provider."""
    settings.configure(
        SECRET_KEY=secrets.token_urlsafe(50),
        DEBUG=False,
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF="tests.browser.provider_urls",
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(folder / "provider.db")}},
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "django.contrib.messages",
            "allauth",
            "allauth.account",
            "allauth.idp.oidc",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
            "allauth.account.middleware.AccountMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {
                    "context_processors": [
                        "django.template.context_processors.request",
                        "django.contrib.auth.context_processors.auth",
                        "django.contrib.messages.context_processors.messages",
                    ]
                },
            }
        ],
        AUTHENTICATION_BACKENDS=["allauth.account.auth_backends.AuthenticationBackend"],
        ACCOUNT_LOGIN_METHODS={"email"},
        ACCOUNT_SIGNUP_FIELDS=["email*", "password1*"],
        ACCOUNT_EMAIL_VERIFICATION="none",
        ACCOUNT_RATE_LIMITS=False,
        IDP_OIDC_PRIVATE_KEY=new_key(),
        SESSION_COOKIE_NAME="provider_session",
        CSRF_COOKIE_NAME="provider_csrf",
    )
    django.setup()


def fill(callback: str) -> None:
    """Make the database with one user and one client."""
    from allauth.account.models import EmailAddress
    from allauth.idp.oidc.models import Client
    from django.contrib.auth.models import User

    call_command("migrate", verbosity=0)
    user = User.objects.create_user("ada", EMAIL, PASSWORD, first_name="Ada", last_name="Lovelace")
    EmailAddress.objects.create(user=user, email=EMAIL, verified=True, primary=True)
    client = Client(
        id=CLIENT_ID,
        name="Tenant administration",
        scopes="openid\nprofile\nemail",
        redirect_uris=callback,
        skip_consent=False,
    )
    client.set_secret(CLIENT_SECRET)
    client.save()


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


def main(folder: str, callback: str, seconds: str) -> None:
    real_time = time.time
    time.time = lambda: real_time() + int(seconds)
    configure(Path(folder))
    fill(callback)
    with make_server("127.0.0.1", 0, get_wsgi_application(), Server, Quiet) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)  # noqa: T201
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
