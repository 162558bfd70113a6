#!/usr/bin/env bash
# Build the image without a registry, and run in it, in Docker, what its page says.
#
# Usage: image.sh [STEP] [ARGUMENT]...
#   all     build, then test (the default)
#   build   make a slim Debian with mmdebstrap, and build the Dockerfile on it with buildah
#   test    run tests/image in the image that was built; arguments are pytest's
#
# Where no Docker answers, one is installed, and started for the tests alone. The network is the
# host's, and apt and pip find packages where the host's find them.
#
# IMAGE_FOLDER names the folder for the image and the logs; IMAGE_SUITE is the Debian (bookworm).
set -euo pipefail

NAME=hud-mcp
START_S=60

step=${1:-all}
if [ $# -gt 0 ]; then shift; fi
case $step in
all | build | test) ;;
*)
    echo "image.sh: there is no step '$step'; there are all, build and test." >&2
    exit 2
    ;;
esac
if [ "$(uname -s)" != Linux ] || [ "$(id -u)" != 0 ]; then
    echo "image.sh: an image is built by root on Linux; run it there as root." >&2
    exit 2
fi

repository=$(cd "$(dirname "$0")/.." && pwd)
. "$repository/scripts/debian.sh"
suite=${IMAGE_SUITE:-bookworm}
folder=${IMAGE_FOLDER:-$(mktemp -d "${TMPDIR:-/tmp}/hud-mcp-image.XXXXXX")}
mkdir -p "$folder"
archive=$folder/$NAME.tar
storage=(--root "$folder/storage" --runroot "$folder/run")
daemon=

leave() {
    if [ -n "$daemon" ]; then
        kill "$daemon" && wait "$daemon" || true
        umount "$folder"/docker-run/netns/* 2>/dev/null || true
        rm -rf --one-file-system "$folder/docker" "$folder/docker-run"
    fi
    say "The image and the logs are in $folder"
}

fail() { # LOG SENTENCE
    tail -n 5 "$1" >&2
    echo "image.sh: $2; $1 has it all." >&2
    exit 1
}

make_base() { # what the registry's debian:bookworm-slim is: no manuals, no translations
    local sources options=$folder/apt.conf path excluded=()
    say "Making a slim Debian $suite"
    mapfile -t sources < <(host_sources "$suite")
    host_apt_options >"$options"
    for path in doc info lintian locale man; do
        excluded+=("--dpkgopt=path-exclude=/usr/share/$path/*")
    done
    excluded+=("--dpkgopt=path-include=/usr/share/doc/*/copyright")
    mmdebstrap --variant=minbase --aptopt="$options" "${excluded[@]}" \
        "$suite" "$folder/debian.tar" "${sources[@]}" >"$folder/debian.log" 2>&1 ||
        fail "$folder/debian.log" "Debian could not be made"
    local container
    container=$(buildah "${storage[@]}" from scratch)
    buildah "${storage[@]}" add "$container" "$folder/debian.tar" / >"$folder/base.log"
    buildah "${storage[@]}" commit --rm "$container" debian-slim >>"$folder/base.log" 2>&1
    rm "$folder/debian.tar"
}

build() {
    need mmdebstrap mmdebstrap
    need buildah buildah
    make_base
    local place volumes=() certificates=/etc/ssl/certs/ca-certificates.crt
    while IFS= read -r place; do
        # The image's own package of certificates writes that file.
        if [ -e "$place" ] && [ "$place" != "$certificates" ]; then
            volumes+=(--volume "$place:$place:ro")
        fi
    done < <(write_pip_settings "$folder/pip.conf")
    # Whom the host trusts, beside what the image's own package of certificates writes.
    sed -i '/^cert = /d' "$folder/pip.conf"
    if [ -f "$certificates" ]; then
        volumes+=(--volume "$certificates:/run/host-certificates.crt:ro")
        if ! grep -q '^\[global\]' "$folder/pip.conf"; then echo '[global]' >>"$folder/pip.conf"; fi
        sed -i 's#^\[global\]#&\ncert = /run/host-certificates.crt#' "$folder/pip.conf"
    fi
    say "Building the Dockerfile on it"
    # The format of OCI has no health check.
    buildah "${storage[@]}" bud --format docker --isolation chroot --network host \
        --from localhost/debian-slim --volume "$folder/pip.conf:/etc/pip.conf:ro" "${volumes[@]}" \
        --tag $NAME "$repository" >"$folder/build.log" 2>&1 ||
        fail "$folder/build.log" "the image could not be built"
    rm -f "$archive"
    buildah "${storage[@]}" push $NAME "docker-archive:$archive:$NAME:latest" \
        >"$folder/push.log" 2>&1 || fail "$folder/push.log" "the image could not be written"
    buildah "${storage[@]}" rmi --all --force >/dev/null 2>&1 || true
    rm -rf --one-file-system "$folder/storage" "$folder/run"
    say "$archive: $(($(stat -c %s "$archive") / 1000000)) MB"
}

have_docker() { # the one that answers, or one that lives as long as this script
    if command -v docker >/dev/null && docker info >/dev/null 2>&1; then return; fi
    need dockerd docker.io
    export DOCKER_HOST=unix://$folder/docker.sock
    say "Starting a Docker"
    dockerd --host "$DOCKER_HOST" --data-root "$folder/docker" --exec-root "$folder/docker-run" \
        --pidfile "$folder/docker.pid" --bridge=none --iptables=false --ip6tables=false \
        >"$folder/docker.log" 2>&1 &
    daemon=$!
    SECONDS=0
    until docker info >/dev/null 2>&1; do
        if ! kill -0 "$daemon" 2>/dev/null || [ $SECONDS -gt $START_S ]; then
            fail "$folder/docker.log" "no Docker can be started here, so the image is not tested"
        fi
        sleep 0.5
    done
}

run_tests() {
    if [ ! -f "$archive" ]; then
        echo "image.sh: there is no $archive; build it, or name its folder in IMAGE_FOLDER." >&2
        exit 2
    fi
    have_docker
    docker load --quiet --input "$archive" >/dev/null
    say "Running in the image of $(docker image inspect --format '{{.Size}}' $NAME) bytes"
    (cd "$repository" && HUD_MCP_TEST_IMAGE=$NAME .venv/bin/python -m pytest -o timeout=0 -m image tests/image "$@")
}

trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
case $step in
all)
    build
    run_tests "$@"
    ;;
build) build ;;
test) run_tests "$@" ;;
esac
