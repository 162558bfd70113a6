"""The system calls that a sandbox refuses, as a program that the kernel runs at each of them.

Namespaces do not hold everything: kernel keyrings, virtual machine sockets and memory files have
none, and io_uring does work that no filter sees. Source: seccomp(2), and linux/filter.h.
"""

import platform
import struct

from hud_mcp.errors import EnvironmentFailed

__all__ = ["seccomp_program"]

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_X32 = 0x40000000
_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK

# Name to number, on x86-64 and on ARM64.
_NOT_THERE = {  # programs do without these, or without what they would be used for
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194),
    "msgget": (68, 186), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "userfaultfd": (323, 282), "bpf": (321, 280),
    "perf_event_open": (298, 241),
}  # fmt: skip
_NOT_ALLOWED = {
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "swapon": (167, 224),
    "swapoff": (168, 225), "reboot": (169, 142), "acct": (163, 89), "quotactl": (179, 60),
    "syslog": (103, 116), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
}  # fmt: skip
_SOCKET = (41, 198)
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}


def seccomp_program() -> bytes:
    """Return the program for this machine, in the format that `bwrap --seccomp` reads.

    A kind of processor without such a program is an `EnvironmentFailed`.
    """
    machine = platform.machine()
    if machine not in _MACHINES:
        known = " and ".join(_MACHINES)
        raise EnvironmentFailed(
            f"There is no sandbox for a {machine} processor, only for {known}. Run this on one of "
            "those, or declare isolation='none' where the agent is trusted."
        )
    audit, column = _MACHINES[machine]
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, audit),
        _refuse(_ENOSYS),  # another architecture's numbers would mean other calls
        (_LOAD, 0, 0, _NUMBER),
    ]
    # The numbers of x32 would pass by the same architecture.
    if column == 0:
        program += [(_JUMP_AT_LEAST, 0, 1, _X32), _refuse(_ENOSYS)]
    for calls, code in ((_NOT_THERE, _ENOSYS), (_NOT_ALLOWED, _EPERM)):
        for numbers in calls.values():
            program += [(_JUMP_EQUAL, 0, 1, numbers[column]), _refuse(code)]
    program += [(_JUMP_EQUAL, 0, 2 + len(_FAMILIES), _SOCKET[column])]
    program += [(_LOAD, 0, 0, _FIRST_ARGUMENT)]
    program += [(_JUMP_EQUAL, len(_FAMILIES) - i, 0, family) for i, family in enumerate(_FAMILIES)]
    program += [_refuse(_EAFNOSUPPORT), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _refuse(code: int) -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, _REFUSE | code)
