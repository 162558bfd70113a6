#!/bin/sh
# Make sure that there is a PostgreSQL server for the tests, and do nothing where there is one.
# Where there is none and none can be installed, say so and go on: its tests are skipped aloud.
set -eu

found() {
    if command -v initdb >/dev/null 2>&1; then return 0; fi
    for program in /usr/lib/postgresql/*/bin/initdb /usr/pgsql-*/bin/initdb; do
        if [ -x "$program" ]; then return 0; fi
    done
    return 1
}

if found; then exit 0; fi
echo "No PostgreSQL is installed; installing one for the tests." >&2

as_root=""
if [ "$(id -u)" != 0 ]; then as_root="sudo -n"; fi
if [ "$(uname -s)" = Linux ] && $as_root true 2>/dev/null; then
    if command -v apt-get >/dev/null 2>&1; then
        export DEBIAN_FRONTEND=noninteractive
        $as_root apt-get update -qq || true
        $as_root apt-get install -y -qq --no-install-recommends postgresql >/dev/null 2>&1 || true
    elif command -v dnf >/dev/null 2>&1; then
        $as_root dnf install -y -q postgresql-server >/dev/null 2>&1 || true
    elif command -v apk >/dev/null 2>&1; then
        $as_root apk add -q postgresql >/dev/null 2>&1 || true
    fi
fi
if found; then exit 0; fi

echo "Could not install PostgreSQL: the tests of a store in it are skipped. Install it (Debian:" >&2
echo "apt-get install postgresql) to run them." >&2
