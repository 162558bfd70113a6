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
sh "$(dirname "$0")/try-install.sh" postgresql postgresql-server - postgresql@17
if found; then exit 0; fi

echo "Could not install a PostgreSQL server: stores are tested on SQLite alone. Install one" >&2
echo "(Debian: apt-get install postgresql; macOS: brew install postgresql@17), then try again." >&2
