"""Debian's nginx with the file that we ship, in front of a web server: `make test-nginx`."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.ports import reserved_port

ROOT: Final = Path(__file__).parents[2]
#: What must differ: addresses, which need no name server. nginx knows ``resolve`` only since 1.27.3.
_SHIPPED: Final = {
    "listen 8080;": "listen 127.0.0.1:{port};",
    "server web:8000 resolve ": "server 127.0.0.1:{upstream} ",
}
#: As in the container that `compose.yaml` names, but for paths. Without root, nginx ignores the user.
_AROUND: Final = """
daemon off;
user root;
worker_processes auto;
pid nginx.pid;
events { worker_connections 1024; }
http {
    access_log off;
    sendfile on;
    keepalive_timeout 65;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    include shipped.conf;
}
"""


class Nginx:
    """nginx on a free port, in front of the port ``upstream`` of 127.0.0.1."""

    def __init__(self, program: str, *, upstream: int) -> None:
        self._folder = tempfile.TemporaryDirectory(dir=os.environ["TENANTADMIN_TEST_VAR"])
        folder = Path(self._folder.name)
        (folder / "nginx.conf").write_text(_AROUND)
        with reserved_port() as self.port:
            (folder / "shipped.conf").write_text(_adapt(port=self.port, upstream=upstream))
            self.process = subprocess.Popen(
                [program, "-p", folder, "-c", "nginx.conf", "-e", "stderr"], start_new_session=True
            )

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._folder.cleanup()


def _adapt(*, port: int, upstream: int) -> str:
    text = (ROOT / "docker" / "nginx.conf").read_text()
    for shipped, here in _SHIPPED.items():
        assert text.count(shipped) == 1, shipped
        text = text.replace(shipped, here.format(port=port, upstream=upstream))
    return text
