#!/bin/sh
# Make the virtual environment with this project in it, or say in a sentence what to install.
# Usage: make-venv.sh FOLDER [PYTHON]
set -eu
folder=$1
python=${2:-}

fail() {
    echo "$*" >&2
    exit 1
}

if [ -z "$python" ]; then
    fail "No Python is found: install Python 3.11 or newer (Debian: apt-get install python3 python3-venv), or name one in PYTHON=, then try again."
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    fail "$python is not Python 3.11 or newer: install one, or name one in PYTHON=, then try again."
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    # Debian keeps these two apart from Python.
    as_root=""
    if [ "$(id -u)" != 0 ]; then as_root="sudo -n"; fi
    if command -v apt-get >/dev/null; then
        echo "Installing Python's venv." >&2
        { $as_root apt-get update -qq && $as_root apt-get install -y -qq python3-venv; } \
            >"$log" 2>&1 </dev/null || true
    fi
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        fail "$python has no venv: run \`apt-get update && apt-get install -y python3-venv\` as root, then try again."
    fi
fi

echo "Installing this project and its Python packages into $folder; that takes a minute." >&2
if ! "$python" -m venv "$folder" >"$log" 2>&1; then
    cat "$log" >&2
    fail "No virtual environment could be made in $folder; the lines above say why."
fi
if ! "$folder/bin/pip" install --disable-pip-version-check -q -e '.[test]' >"$log" 2>&1; then
    grep '^ERROR' "$log" >&2 || tail -n 5 "$log" >&2
    fail "These Python packages cannot be installed: \`$folder/bin/pip install -e '.[test]'\` says all of why."
fi
# Its pages are all that is needed of it; with what it depends on comes a second driver of browsers.
if ! "$folder/bin/pip" install --disable-pip-version-check -q --no-deps 'miniwob>=1.1' >"$log" 2>&1; then
    grep '^ERROR' "$log" >&2 || tail -n 5 "$log" >&2
    fail "MiniWoB++ cannot be installed: \`$folder/bin/pip install --no-deps miniwob\` says all of why."
fi
