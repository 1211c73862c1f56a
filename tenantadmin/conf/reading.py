"""Read and check the environment in one pass, which reports every problem at once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ImproperlyConfigured

from tenantadmin.conf.kinds import BadEntry
from tenantadmin.conf.providers import read_providers
from tenantadmin.conf.secrets import is_weak_secret
from tenantadmin.conf.variables import VARIABLES, Variable

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Characters of a bad value in a message.
_MAX_SHOWN: Final = 80
_SECRETS: Final = frozenset(variable.name for variable in VARIABLES if variable.secret)
_PROVIDER_SECRET: Final = re.compile(r"SIGNIN_[A-Z0-9_]+_CLIENT_SECRET")


class ConfigurationError(ImproperlyConfigured):
    """The environment is not valid. ``problems`` has a sentence for each: variable, value and cure."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def read_configuration(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the value of every variable by its name, and ``SOCIALACCOUNT_PROVIDERS`` for django-allauth.

    The function only reads ``environ``, and creates nothing.

    Raises:
        ConfigurationError: with all problems.
    """
    environ, file_problems = read_secret_files(environ)
    values, problems = read_variables(environ)
    values["SOCIALACCOUNT_PROVIDERS"], provider_problems = read_providers(values["SIGNIN_PROVIDERS"], environ)
    problems += [*file_problems, *provider_problems, *_find_missing(values, problems)]
    if problems:
        raise ConfigurationError(problems)
    return values


def read_secret_files(environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return ``environ`` with ``NAME`` read from the file that ``NAME_FILE`` names, and the problems.

    That works for every secret: `Variable.secret`, and the client secrets of identity providers.
    """
    values = dict(environ)
    problems: list[str] = []
    for file_name, path in environ.items():
        name = file_name.removesuffix("_FILE")
        if name == file_name or not path.strip() or not _is_secret(name):
            continue
        if values.get(name, "").strip():
            problems.append(f"{name} and {file_name} are both set: remove one of them.")
            continue
        try:
            values[name] = Path(path.strip()).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not a text"
            problems.append(f"{file_name} is {path!r} and cannot be read ({reason}): name a text file.")
    return values, problems


def _is_secret(name: str) -> bool:
    return name in _SECRETS or _PROVIDER_SECRET.fullmatch(name) is not None


def read_variables(environ: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return the value of every variable (the default if the text is not valid), and the problems."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    for variable in VARIABLES:
        text = environ.get(variable.name)
        values[variable.name] = variable.default
        if text is None or not (text.strip() or variable.reads_empty):
            continue
        try:
            values[variable.name] = variable.kind.read(text.strip())
        except ValueError as error:
            problems.append(_describe(variable, str(error) if isinstance(error, BadEntry) else text))
    return values, problems


def _describe(variable: Variable, text: str) -> str:
    if not text.strip():
        return f"{variable.name} is empty: set it to {variable.kind.expected}, or remove it."
    if variable.secret:
        return f"{variable.name} is not valid (not shown): set it to {variable.kind.expected}."
    shown = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
    return f"{variable.name} is {shown!r}: set it to {variable.kind.expected}."


def _find_missing(values: Mapping[str, Any], problems: list[str]) -> list[str]:
    """Return a sentence for each variable that has no safe default and is not set."""
    missing = []
    if not values["DJANGO_DEBUG"] and is_weak_secret(values["DJANGO_SECRET_KEY"] or ""):
        missing.append(
            "DJANGO_SECRET_KEY is missing, short, repetitive or a known default. Set it to 50 random "
            "characters or more; on a development machine set DJANGO_DEBUG=true instead."
        )
    if not values["DJANGO_DEBUG"] and not _is_given("JWT_PRIVATE_KEY", values, problems):
        missing.append(
            "JWT_PRIVATE_KEY is missing. Set it to a P-256 private key in PEM "
            "(openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256)."
        )
    no_mail = values["EMAIL_URL"] is None and not _is_given("EMAIL_URL", values, problems)
    if not values["DJANGO_DEBUG"] and no_mail:
        missing.append(
            "EMAIL_URL is missing. Set it to smtp+tls://user:password@host:587, to nothing to turn sign-in "
            "links off, or to 'files' to write mails to files under VAR_DIR."
        )
    if values["SQL_SERVICE_URL"] and not _is_given("SQL_SERVICE_SECRET", values, problems):
        missing.append(
            "SQL_SERVICE_SECRET is missing. Set the same random text of 32 characters or more for the SQL "
            "service and the web processes (openssl rand -hex 32)."
        )
    return missing


def _is_given(name: str, values: Mapping[str, Any], problems: list[str]) -> bool:
    """Return True if the variable is set, even to a bad value, which `problems` reports already."""
    return bool(values[name]) or any(problem.startswith(f"{name} ") for problem in problems)
