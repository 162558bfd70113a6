#!/bin/sh
# Make sure that there is a bubblewrap, and do nothing where there is one. Where there is none
# and none can be installed, say so and go on: sandboxes then fail closed, and their tests are
# skipped aloud.
set -eu

if command -v bwrap >/dev/null 2>&1; then exit 0; fi
echo "No bubblewrap is installed; installing one." >&2
sh "$(dirname "$0")/try-install.sh" bubblewrap bubblewrap bubblewrap -
if command -v bwrap >/dev/null 2>&1; then exit 0; fi

echo "Could not install bubblewrap: shells in a sandbox will not start on this machine. Install it" >&2
echo "(Debian: apt-get install bubblewrap) to use and to test them." >&2
