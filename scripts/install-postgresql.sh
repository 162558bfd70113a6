#!/bin/sh
# Make sure that there is a PostgreSQL server for the tests, and do nothing where there is one.
# Where there is none and none can be installed, say so and go on: what is tested on it is then
# skipped aloud. The tests start a cluster of their own; one of the system is not touched.
set -eu

found() {
    command -v initdb >/dev/null 2>&1 && return 0
    for folder in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin \
        /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin; do
        if [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ]; then return 0; fi
    done
    return 1
}

if found; then exit 0; fi
echo "No PostgreSQL server is installed; installing one for the tests." >&2

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
elif [ "$(uname -s)" = Darwin ] && command -v brew >/dev/null 2>&1; then
    brew install -q postgresql@17 >/dev/null 2>&1 || true
fi
if found; then exit 0; fi

echo "Could not install a PostgreSQL server: stores are tested on SQLite alone. Install one" >&2
echo "(Debian: apt-get install postgresql; macOS: brew install postgresql@17), then try again." >&2
