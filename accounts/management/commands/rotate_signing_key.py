"""``manage.py rotate_signing_key``: say the next step of replacing the key that signs access tokens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cryptography.hazmat.primitives import serialization
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from accounts.access.tokens import current_keys, thumbprint
from tenantadmin.conf.secrets import new_signing_key, read_public_keys, read_signing_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from django.core.management.base import CommandParser

#: How long others may use an older answer of /.well-known/jwks.json.
_PUBLISHED_MINUTES: Final = 5


class Command(BaseCommand):
    """The configuration tells which step is next, so the command may be repeated."""

    help = (
        "Says the next step of replacing the key that signs access tokens. Each step changes variables "
        "of every process. No token is refused meanwhile, also while some processes are a step behind."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--file", default="jwt-next.pem", type=Path, help="Where step 1 writes the new private key."
        )

    def handle(self, *, file: Path, **_: Any) -> None:
        if settings.JWT_NEXT_PUBLIC_KEYS:
            self._sign(file)
        elif settings.JWT_PREVIOUS_PUBLIC_KEYS:
            self._retire()
        else:
            self._publish(file)

    def _publish(self, file: Path) -> None:
        try:
            file.touch(mode=0o600, exist_ok=False)
            file.write_text(new_signing_key(), encoding="utf-8")
        except FileExistsError:
            self.stderr.write(f"{file} exists already and is used.")
        except OSError as error:
            raise CommandError(
                f"{file} cannot be written: {error.strerror}. Name another file with --file."
            ) from error
        public = _read_private(file)
        self.stdout.write(
            f"Step 1 of 3: publish the next key, {thumbprint(public)}. Its private half is in {file}.\n"
            "Set this variable for every process and restart them. Nothing is signed with the key yet.\n"
            f'JWT_NEXT_PUBLIC_KEYS="{_pem(public)}"\n'
            f"Wait until all run with it and {_PUBLISHED_MINUTES} minutes more. Then run this command again."
        )

    def _sign(self, file: Path) -> None:
        signing = current_keys()
        (following, *_) = read_public_keys(settings.JWT_NEXT_PUBLIC_KEYS)
        if thumbprint(following) == signing.signing_kid:
            raise CommandError("JWT_NEXT_PUBLIC_KEYS holds the key that signs already: remove the variable.")
        self.stdout.write(
            f"Step 2 of 3: sign with {thumbprint(following)} instead of {signing.signing_kid}.\n"
            "Set these variables for every process, remove JWT_NEXT_PUBLIC_KEYS, and restart them.\n"
            f"JWT_PRIVATE_KEY: the private key that step 1 wrote ({file})\n"
            f'JWT_PREVIOUS_PUBLIC_KEYS="{_pem(signing.public_keys[signing.signing_kid])}"\n'
            "When all run with them, run this command again."
        )

    def _retire(self) -> None:
        minutes = settings.ACCESS_TOKEN_LIFETIME.total_seconds() / 60
        self.stdout.write(
            f"Step 3 of 3: {current_keys().signing_kid} signs. {minutes:g} minutes after the last process "
            "was restarted, no token of the previous key is valid any more.\n"
            "Then remove JWT_PREVIOUS_PUBLIC_KEYS and destroy the previous private key."
        )


def _read_private(file: Path) -> EllipticCurvePublicKey:
    try:
        return read_signing_key(file.read_text(encoding="utf-8")).public_key()
    except (OSError, ValueError) as error:
        raise CommandError(f"{file} is {error}; name another file with --file.") from error


def _pem(key: EllipticCurvePublicKey) -> str:
    encoded = key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode()
    # On one line, as environment files want it.
    return encoded.strip().replace("\n", "\\n")
