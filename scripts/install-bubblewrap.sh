#!/bin/sh
# Make sure that there is a bubblewrap, and do nothing where there is one. Where there is none
# and none can be installed, say so and go on: sandboxes then fail closed, and their tests are
# skipped aloud.
set -eu

if command -v bwrap >/dev/null 2>&1; then exit 0; fi
echo "No bubblewrap is installed; installing one." >&2

as_root=""
if [ "$(id -u)" != 0 ]; then as_root="sudo -n"; fi
if [ "$(uname -s)" = Linux ] && $as_root true 2>/dev/null; then
    if command -v apt-get >/dev/null 2>&1; then
        export DEBIAN_FRONTEND=noninteractive
        $as_root apt-get update -qq || true
        $as_root apt-get install -y -qq --no-install-recommends bubblewrap >/dev/null 2>&1 || true
    elif command -v dnf >/dev/null 2>&1; then
        $as_root dnf install -y -q bubblewrap >/dev/null 2>&1 || true
    elif command -v apk >/dev/null 2>&1; then
        $as_root apk add -q bubblewrap >/dev/null 2>&1 || true
    fi
fi
if command -v bwrap >/dev/null 2>&1; then exit 0; fi

echo "Could not install bubblewrap: shells in a sandbox will not start on this machine. Install it" >&2
echo "(Debian: apt-get install bubblewrap) to use and to test them." >&2
