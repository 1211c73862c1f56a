#!/usr/bin/env bash
# libpq's sslrootcert=system means "the certificate authorities of the system". In the wheels of psycopg and psycopg2
# it means those of a folder that only the machine had on which the wheel was built: the OpenSSL inside has that path
# compiled in. So verification fails with a certificate that every other program accepts, unless SSL_CERT_FILE names
# the authorities. No message says which file was looked for.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check 'psycopg[binary]==3.3.9' psycopg2-binary==2.9.13
"$dir/venv/bin/python" - <<'PYTHON'
import ctypes
import os
import ssl
import sys
from pathlib import Path

packages = next(Path(sys.prefix).glob("lib/python3*/site-packages"))


def default_file(wheel):
    (library,) = packages.glob(f"{wheel}.libs/libcrypto*")
    crypto = ctypes.CDLL(str(library))
    crypto.X509_get_default_cert_file.restype = ctypes.c_char_p
    return crypto.X509_get_default_cert_file().decode()


system = ssl.get_default_verify_paths()
seen = {
    "psycopg 3.3.9": default_file("psycopg_binary"),
    "psycopg2 2.9.13": default_file("psycopg2_binary"),
}
print(f"expected: Python's own {system.openssl_cafile} or {system.openssl_capath}, or another path of this system")
for driver, path in seen.items():
    print(f"seen: {driver} reads {path}, which is {'there' if os.path.exists(path) else 'not there'}")
assert seen == {
    "psycopg 3.3.9": "/usr/lib/psycopg-openssl/cert.pem",
    "psycopg2 2.9.13": "/host/tmp/libpq.build/cert.pem",
}, seen
assert not any(map(os.path.exists, seen.values()))
PYTHON
