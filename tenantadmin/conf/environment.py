"""Read environment variables with environs, and report all errors together."""

from __future__ import annotations

import os
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured
from environs import FileAwareEnv, validate

from tenantadmin.conf.parsers import PARSERS

#: Validates numbers: `Range(low, high)`.
Range = validate.Range
#: Any other variable counts as not set if it is empty.
_MAY_BE_EMPTY: Final = {"DATABASE_URL", "EMAIL_URL", "OBJECT_STORE_URL", "PLATFORM_DOMAINS", "REDIS_URL"}


class ConfigurationError(ImproperlyConfigured):
    """The environment is not valid. ``problems`` has a line for each variable. No secret is in it."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Environment(FileAwareEnv):
    """The environment. ``NAME_FILE`` may name a file with the value of ``NAME``.

    If a value is not valid, its method returns None, and `seal` raises ConfigurationError with all errors. So
    compute nothing from values before `seal`.
    """

    def __init__(self) -> None:
        super().__init__(eager=False)
        for name, parser in PARSERS.items():
            self.add_parser(name, parser)

    def seal(self) -> None:
        if self._errors:
            raise ConfigurationError(
                [f"{name}: {' '.join(messages)}" for name, messages in self._errors.items()]
            )
        super().seal()

    def _get_value(self, env_key: str, default: Any) -> Any:
        file_key = f"{env_key}_FILE"
        if os.environ.get(file_key) and os.environ.get(env_key):
            self._errors[env_key].append(f"{file_key} is set too. Remove one of them.")
        try:
            value = super()._get_value(env_key, default)
        except (OSError, ValueError):
            # The message of a UnicodeDecodeError has bytes of the file.
            self._errors[env_key].append(f"{file_key} does not name a text file that can be read.")
            return default
        text = value.strip() if isinstance(value, str) else value
        return default if text == "" and env_key not in _MAY_BE_EMPTY else text
