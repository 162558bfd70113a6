#!/usr/bin/env bash
# Prove the README's two commands on a machine that has nothing: a new minimal Debian with Python
# and make, no compiler, no library beside theirs, and a clone of what is committed here.
#
# Usage: fresh.sh [STEP] [ARGUMENT]...
#   all     make demo, then make test (the default)
#   demo    make demo
#   test    make test; arguments are make's, such as TESTS=tests/sandbox
#   shell   a shell in the new machine; arguments are a command to run instead
#
# The machine is a folder. Its commands run with a mount and a process namespace of their own and
# that folder as the root: after a mere chroot the kernel refuses the namespaces of sandboxes. The
# network is the host's, and apt and pip find packages where the host's find them.
#
# FRESH_FOLDER names the folder for logs; FRESH_SUITE is the Debian (bookworm);
# FRESH_KEEP=1 keeps the machine.
set -euo pipefail

PACKAGES=python3,python3-pip,python3-venv,ca-certificates,make
USUAL_OPEN_FILES=1024

step=${1:-all}
if [ $# -gt 0 ]; then shift; fi
case $step in
all | demo | test | shell) ;;
*)
    echo "fresh.sh: there is no step '$step'; there are all, demo, test and shell." >&2
    exit 2
    ;;
esac
if [ "$(uname -s)" != Linux ] || [ "$(id -u)" != 0 ]; then
    echo "fresh.sh: a machine is made by root on Linux; run it there as root." >&2
    exit 2
fi

repository=$(cd "$(dirname "$0")/.." && pwd)
. "$repository/scripts/debian.sh"
suite=${FRESH_SUITE:-bookworm}
folder=${FRESH_FOLDER:-$(mktemp -d "${TMPDIR:-/tmp}/hud-mcp-fresh.XXXXXX")}
machine=$folder/machine
if [ -e "$machine" ]; then
    echo "fresh.sh: there is a machine in $machine; remove it, or name another FRESH_FOLDER." >&2
    exit 2
fi
mkdir -p "$folder"
chmod 755 "$folder" # what runs in the machine as somebody else passes through here
local_places=()
running=

leave() {
    if [ -n "$running" ]; then kill -KILL "$running"; fi
    # Every mount and process of the machine went with its namespaces.
    if [ "${FRESH_KEEP:-}" = 1 ]; then
        say "The machine is kept in $machine"
    else
        rm -rf --one-file-system "$machine"
    fi
    say "The logs are in $folder"
}

make_machine() {
    need mmdebstrap mmdebstrap
    say "Making a minimal Debian $suite in $machine"
    local sources options=$folder/apt.conf
    mapfile -t sources < <(host_sources "$suite")
    host_apt_options >"$options"
    mmdebstrap --variant=minbase --include=$PACKAGES --aptopt="$options" \
        "$suite" "$machine" "${sources[@]}" >"$folder/debian.log" 2>&1 || {
        tail -n 5 "$folder/debian.log" >&2
        echo "fresh.sh: Debian could not be installed; $folder/debian.log has it all." >&2
        exit 1
    }
    copy_network
    copy_pip
    say "Cloning $(git -C "$repository" rev-parse --short HEAD)"
    if [ -n "$(git -C "$repository" status --porcelain)" ]; then
        echo "What is not committed is not in the clone." >&2
    fi
    git clone --quiet --no-hardlinks "$repository" "$machine/root/hud-mcp"
}

copy_network() { # names, and whom the host trusts
    cp -L /etc/resolv.conf "$machine/etc/resolv.conf"
    cp -L /etc/hosts /etc/hostname "$machine/etc/"
    cp -a /etc/apt/auth.conf /etc/apt/auth.conf.d "$machine/etc/apt/" 2>/dev/null || true
    cp -rnL /etc/apt/keyrings "$machine/etc/apt/" 2>/dev/null || true
    if [ -d /usr/local/share/ca-certificates ]; then
        cp -rL /usr/local/share/ca-certificates "$machine/usr/local/share/"
        chroot "$machine" update-ca-certificates >"$folder/certificates.log" 2>&1
    fi
}

copy_pip() { # one file with every setting; what lies on the host's disk is shown where it lies
    local place
    while IFS= read -r place; do
        if [ -e "$place" ] && [ ! -e "$machine$place" ]; then local_places+=("$place"); fi
    done < <(write_pip_settings "$machine/etc/pip.conf")
}

# What the first process of the machine does: $1 is the folder; then places, --, and a command.
read -r -d '' ENTER <<'BASH' || true
machine=$1
shift
mount --bind "$machine" "$machine"
mount -t proc -o nosuid,nodev,noexec proc "$machine/proc"
mount --rbind /sys "$machine/sys"
mount --rbind /dev "$machine/dev"
mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs "$machine/dev/shm"
while [ "$1" != -- ]; do
    if [ -d "$1" ]; then
        mkdir -p "$machine$1"
    else
        mkdir -p "$machine$(dirname "$1")"
        touch "$machine$1"
    fi
    mount --rbind "$1" "$machine$1"
    mount -o remount,bind,ro "$machine$1"
    shift
done
shift
mkdir -p "$machine/.host"
cd "$machine"
pivot_root . .host
cd /
hash -r
umount -l /.host
rmdir /.host
cd /root/hud-mcp
# This shell stays: it is who waits for the orphans of what runs here.
status=0
"$@" || status=$?
exit $status
BASH

enter() { # COMMAND...: become it, in the machine, with no variable of the host's but its proxies
    local name keep=()
    while IFS= read -r name; do keep+=("$name=${!name}"); done < <(compgen -e | grep -i '_proxy$')
    ulimit -S -n "$USUAL_OPEN_FILES"
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        HOME=/root TERM="${TERM:-dumb}" "${keep[@]}" \
        unshare --mount --pid --ipc --uts --fork --kill-child --propagation private \
        /bin/bash -euc "$ENTER" fresh "$machine" "${local_places[@]}" -- "$@"
}

prove() { # NAME ARGUMENT...: make a target, and keep what it says
    local name=$1 log=$folder/$1.log status=0
    shift
    say "make $name $*"
    SECONDS=0
    # Not in the foreground, where a signal to this script would wait for it.
    enter make "$name" "$@" </dev/null > >(tee "$log") 2>&1 &
    running=$!
    wait "$running" || status=$?
    running=
    wait # for the rest of the log
    say "make $name: status $status after $SECONDS s; $log"
    return $status
}

prove_demo() {
    prove demo
    # The table says so for people; the record says so for sure.
    (enter .venv/bin/hud-mcp jobs --store demo-report/store.sqlite3 --json) >"$folder/jobs.json"
    python3 - "$folder/jobs.json" <<'PYTHON'
import json, sys

job = json.loads(open(sys.argv[1]).readline())
graded = job["outcomes"]["graded"]
print(f"{graded} of {job['wanted']} tasks graded, mean reward {job['mean']}", file=sys.stderr)
sys.exit(graded != job["wanted"] or job["mean"] != 1.0)
PYTHON
}

prove_test() {
    prove test "$@"
    if grep '^SKIPPED' "$folder/test.log" >"$folder/skipped"; then
        cat "$folder/skipped" >&2
        echo "fresh.sh: these were skipped, on a machine where each can run." >&2
        return 1
    fi
}

trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
make_machine
case $step in
all)
    prove_demo
    prove_test "$@"
    ;;
demo) prove_demo ;;
test) prove_test "$@" ;;
shell)
    if [ $# -eq 0 ]; then set -- /bin/bash; fi
    (enter "$@")
    ;;
esac
