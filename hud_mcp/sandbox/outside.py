"""The program that makes a sandbox's folder in a mount namespace, and then becomes bubblewrap.

Its first argument is JSON, and the rest is bubblewrap's command. A process that enters its
namespaces later sees the machine like the server, with the folder at the given places.
"""

import ctypes
import json
import os
import sys

FOLDER = "@folder@"
"""The placeholder for the folder in bubblewrap's command."""

_NEWNS, _NEWUSER = 0x20000, 0x10000000
_NOSUID, _NODEV, _BIND, _REC, _SLAVE = 0x2, 0x4, 0x1000, 0x4000, 0x80000


def _check(failed: int, what: str) -> None:
    if failed:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), what)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123  # pathlib takes twice the time to load
        file.write(text)


def main() -> None:
    """Make the folder, and become bubblewrap."""
    wanted = json.loads(sys.argv[1])
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    owner = wanted["user"]
    _check(libc.unshare(_NEWNS | (_NEWUSER if user else 0)), "unshare")
    if user:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    # What the machine mounts later shows inside, and nothing that is mounted here shows outside.
    _check(libc.mount(b"none", b"/", None, _REC | _SLAVE, None), "/")
    first = os.fsencode(wanted["places"][0])  # the others lead to it
    options = f"size={wanted['size']},mode=0755"
    if owner is not None:
        options += f",uid={owner},gid={owner}"
    made = libc.mount(b"tmpfs", first, b"tmpfs", _NOSUID | _NODEV, options.encode())
    _check(made, os.fsdecode(first))
    folder = wanted["places"][0]
    if wanted["through"] is not None:  # the later user may be unable to enter the parents
        folder = wanted["through"]
        _check(libc.mount(first, os.fsencode(folder), None, _BIND, None), folder)
    if owner is not None:
        os.setgroups([])
        os.setgid(owner)
        os.setuid(owner)
    for part in wanted["parts"]:
        os.makedirs(f"{folder}/{part}", exist_ok=True)  # noqa: PTH103  # the same
    command = [word.replace(FOLDER, folder) for word in sys.argv[2:]]
    os.execv(command[0], command)  # noqa: S606  # what the server made


if __name__ == "__main__":
    try:
        main()
    except OSError as exc:
        sys.stderr.write(f"{exc.filename}: {exc.strerror}\n")
        sys.exit(1)
