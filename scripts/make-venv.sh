#!/bin/sh
# Make the virtual environment with this project in it, or say in a sentence what to install.
# Usage: make-venv.sh FOLDER [PYTHON [test]]. With `test` comes what the tests need beside it.
set -eu
folder=$1
python=${2:-}
extra=${3:-}

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
as_root=""
if [ "$(id -u)" != 0 ]; then as_root="sudo -n"; fi

from_apt() { # PACKAGES: what Debian keeps apart from Python
    if command -v apt-get >/dev/null; then
        echo "Installing $*." >&2
        { $as_root apt-get update -qq && $as_root apt-get install -y -qq --no-install-recommends "$@"; } \
            >"$log" 2>&1 </dev/null || true
    fi
}

if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    from_apt python3-venv
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        fail "$python has no venv: run \`apt-get update && apt-get install -y python3-venv\` as root, then try again."
    fi
fi

can_compile() { # one package of reasoning-gym's is published as source alone
    command -v cc >/dev/null && "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))'
}

if [ "$extra" = test ] && ! can_compile; then
    from_apt gcc libc6-dev python3-dev
    if ! can_compile; then
        fail "The tests need a C compiler and Python's headers: run \`apt-get update && apt-get install -y gcc libc6-dev python3-dev\` as root (Fedora: \`dnf install gcc python3-devel\`), then try again."
    fi
fi

echo "Installing this project and its Python packages into $folder; that takes a minute." >&2
if ! "$python" -m venv "$folder" >"$log" 2>&1; then
    cat "$log" >&2
    fail "No virtual environment could be made in $folder; the lines above say why."
fi
what=.${extra:+[$extra]}
set -- -e "$what"
if [ "$extra" = test ]; then set -- "$@" -e ./client; fi
if ! "$folder/bin/pip" install --disable-pip-version-check -q "$@" >"$log" 2>&1; then
    grep '^ERROR' "$log" >&2 || tail -n 5 "$log" >&2
    fail "These Python packages cannot be installed: \`$folder/bin/pip install $*\` says all of why."
fi
if [ "$extra" != test ]; then exit; fi
# Its pages are all that is needed of it; with what it depends on comes a second driver of browsers.
if ! "$folder/bin/pip" install --disable-pip-version-check -q --no-deps 'miniwob>=1.1' >"$log" 2>&1; then
    grep '^ERROR' "$log" >&2 || tail -n 5 "$log" >&2
    fail "MiniWoB++ cannot be installed: \`$folder/bin/pip install --no-deps miniwob\` says all of why."
fi
