"""Run an OpenID provider, and let the service use it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.browser.provider import CLIENT_ID, CLIENT_SECRET, EMAIL

_ROOT: Final = Path(__file__).parents[2]
#: Installed by ``make test-providers``.
_OIDC_PROVIDER: Final = _ROOT / ".cache" / "providers" / "node_modules" / "oidc-provider"


@contextmanager
def running_provider(
    name: str, service: str, settings: Any, folder: Path, *, seconds_ahead: int = 0
) -> Iterator[str]:
    """Run a provider whose clock may be ahead, and let the service use it. Yields its address.

    Args:
        name: ``allauth`` (`tests.browser.provider`) or ``oidc-provider``, the package of npm.
    """
    callback = f"{service}/auth/callback/corp"
    commands = {
        "allauth": [sys.executable, "-m", "tests.browser.provider", folder, callback, seconds_ahead],
        "oidc-provider": [
            *("node", Path(__file__).with_name("provider.mjs"), _OIDC_PROVIDER, callback),
            *(CLIENT_ID, CLIENT_SECRET, EMAIL, seconds_ahead),
        ],
    }
    command = list(map(str, commands[name]))
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:")
            settings.SIGNIN_PROVIDERS = ["corp"]
            settings.SOCIALACCOUNT_PROVIDERS = {
                "openid_connect": {
                    "OAUTH_PKCE_ENABLED": True,
                    "APPS": [
                        {
                            "provider_id": "corp",
                            "name": "corp",
                            "client_id": CLIENT_ID,
                            "secret": CLIENT_SECRET,
                            "settings": {"server_url": address, "oauth_pkce_enabled": True},
                        }
                    ],
                }
            }
            yield address
        finally:
            process.terminate()
