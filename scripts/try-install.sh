#!/bin/sh
# Ask the system's package manager for a package, and say nothing where that does not work:
# whoever asks looks afterwards whether it is there.
# Usage: try-install.sh APT DNF APK BREW, the package's name in each; "-" where it has none.
set -eu

as_root=""
if [ "$(id -u)" != 0 ]; then as_root="sudo -n"; fi

case "$(uname -s)" in
Linux)
    $as_root true 2>/dev/null || exit 0
    if command -v apt-get >/dev/null 2>&1 && [ "$1" != - ]; then
        export DEBIAN_FRONTEND=noninteractive
        $as_root apt-get update -qq || true
        $as_root apt-get install -y -qq --no-install-recommends "$1" >/dev/null 2>&1 || true
    elif command -v dnf >/dev/null 2>&1 && [ "$2" != - ]; then
        $as_root dnf install -y -q "$2" >/dev/null 2>&1 || true
    elif command -v apk >/dev/null 2>&1 && [ "$3" != - ]; then
        $as_root apk add -q "$3" >/dev/null 2>&1 || true
    fi
    ;;
Darwin)
    if command -v brew >/dev/null 2>&1 && [ "$4" != - ]; then
        brew install -q "$4" >/dev/null 2>&1 || true
    fi
    ;;
esac
