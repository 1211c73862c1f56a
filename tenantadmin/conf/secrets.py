"""Secrets of a deployment, and the secrets that a development checkout creates for itself."""

from __future__ import annotations

import os
import re
import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

#: Shorter keys can be guessed. Django warns below the same length (security.W009).
MIN_SECRET_LENGTH = 50
#: A text with fewer different characters is not random. Django warns below the same number.
_MIN_DIFFERENT: Final = 5
_KNOWN_DEFAULTS = ("django-insecure-", "change-me", "changeme", "secret")
_PEM: Final = re.compile(r"-----BEGIN PUBLIC KEY-----.+?-----END PUBLIC KEY-----", re.DOTALL)


def new_secret_key() -> str:
    """Return a random key for ``DJANGO_SECRET_KEY``."""
    return secrets.token_urlsafe(64)


def new_signing_key() -> str:
    """Return a new P-256 private key as PKCS #8 PEM, for ``JWT_PRIVATE_KEY``."""
    return (
        ec.generate_private_key(ec.SECP256R1())
        .private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        .decode("ascii")
    )


def read_signing_key(pem: str) -> ec.EllipticCurvePrivateKey:
    """Return the private key of ``JWT_PRIVATE_KEY``. Raises ValueError unless it is a P-256 key in PEM."""
    try:
        key = serialization.load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError("not a private key in PEM") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError("not on the curve P-256, which ES256 needs")  # noqa: TRY004
    return key


def read_public_keys(pems: str) -> list[ec.EllipticCurvePublicKey]:
    """Return the keys of ``JWT_PREVIOUS_PUBLIC_KEYS``. Raises ValueError unless all are P-256 keys in PEM."""
    keys = []
    for pem in _PEM.findall(pems):
        try:
            key = serialization.load_pem_public_key(pem.encode())
        except (ValueError, UnsupportedAlgorithm) as error:
            raise ValueError("not a public key in PEM") from error
        if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
            raise ValueError("not on the curve P-256, which ES256 needs")  # noqa: TRY004
        keys.append(key)
    return keys


def is_monotonous(value: str) -> bool:
    """Return True if ``value`` only repeats a few characters, so it cannot be random."""
    return len(set(value)) < _MIN_DIFFERENT


def is_weak_secret(value: str) -> bool:
    """Return True if ``value`` is too short, repetitive, or starts like a published default."""
    return len(value) < MIN_SECRET_LENGTH or is_monotonous(value) or value.lower().startswith(_KNOWN_DEFAULTS)


def ensure_secret(path: Path, make: Callable[[], str]) -> str:
    """Return the secret in the file ``path``. If there is no file, write what ``make`` returns.

    Several processes may call this at once: they all return the secret of the first that writes the file.

    Raises:
        OSError: the folder cannot be written.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        pass
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent)  # mode 0600
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        handle.write(make())
    try:
        os.link(name, path)
    except FileExistsError:
        pass
    finally:
        Path(name).unlink()
    return path.read_text(encoding="utf-8")
