#!/bin/sh
# Install what the locked files name, and nothing else: scripts/install.sh PYTHON FILE…
# uv does it where the index has uv, otherwise pip, more slowly. uv stays installed, although the service does not
# require it. The Makefile sets UV_CACHE_DIR.
set -eu
python=$1
shift
environment=$(dirname "$(dirname "$python")")
uv=.venv/bin/uv
began=$(date +%s)

tell() {
    size=$(du -sm "$environment" 2>/dev/null | cut -f1)
    echo "$1 $(($(date +%s) - began)) s${size:+, $size MB in $environment}"
}

awk '/^uv==/ {found = 1} found {print} found && !/\\$/ {exit}' requirements-dev.txt > "$environment/uv.txt"
echo "Installing $* (a minute or two, by the network)"
while sleep 5 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do tell "  "; done &
ticking=$!
trap 'kill $ticking 2>/dev/null; rm -rf "$UV_CACHE_DIR"' EXIT
trap 'exit 130' INT TERM

# Packages of an installation that was cut short look installed and may lack files.
again=
test ! -e "$environment/installing" || again=yes
: > "$environment/installing"

test -x $uv || .venv/bin/python -m pip install --quiet --require-hashes --no-deps -r "$environment/uv.txt" ||
    echo "uv cannot be installed. Going on with pip."
if ! { test -x $uv && $uv pip sync --quiet --require-hashes ${again:+--reinstall} --python "$python" "$@" "$environment/uv.txt"; }; then
    echo "Trying with pip."
    files=$(printf -- '-r %s ' "$@")
    # shellcheck disable=SC2086
    "$python" -m pip install --quiet --require-hashes --no-deps ${again:+--force-reinstall} $files || {
        echo "The installation failed. The reason is above. When it is mended, the same command goes on." >&2
        exit 1
    }
fi
rm "$environment/installing"
tell "Installed:"
