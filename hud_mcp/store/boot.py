"""The start of this machine: what a server wrote before it may have been lost with the power.

Linux and macOS name each start by an identifier; Windows tells its time, corrected for what the
clock was set by since. A container has its host's, as it has its host's cache of the disk.
"""

import ctypes
import ctypes.util
import sys
from functools import cache
from pathlib import Path

__all__ = ["boot_name"]

_TIME_OF_DAY = 3
"""Windows' `SystemTimeOfDayInformation`: `BootTime` first, `BootTimeBias` as the fifth of eight."""


@cache
def boot_name() -> str | None:
    """Return what this machine's last start is known by; None where the system does not say."""
    try:
        if sys.platform == "darwin":
            return _of_macos()
        if sys.platform == "win32":
            return _of_windows()
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii") or None
    except (OSError, AttributeError, ValueError):
        return None


def _of_macos() -> str | None:
    library = ctypes.CDLL(ctypes.util.find_library("c"))
    size = ctypes.c_size_t(64)
    name = ctypes.create_string_buffer(size.value)
    failed = library.sysctlbyname(b"kern.bootsessionuuid", name, ctypes.byref(size), None, 0)
    return None if failed else name.value.decode() or None


def _of_windows() -> str | None:
    class TimeOfDay(ctypes.Structure):
        _fields_ = (
            ("boot_time", ctypes.c_int64),
            ("current_time", ctypes.c_int64),
            ("zone_bias", ctypes.c_int64),
            ("zone_id", ctypes.c_uint32),
            ("reserved", ctypes.c_uint32),
            ("boot_time_bias", ctypes.c_uint64),
            ("sleep_time_bias", ctypes.c_uint64),
        )

    found = TimeOfDay()
    ask = ctypes.CDLL("ntdll").NtQuerySystemInformation
    failed = ask(_TIME_OF_DAY, ctypes.byref(found), ctypes.sizeof(found), None)
    return None if failed else str(found.boot_time - found.boot_time_bias)
