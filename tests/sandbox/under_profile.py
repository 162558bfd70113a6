"""A program that puts itself under a profile of Docker's kind, in the kernel, and becomes another.

Usage: under_profile.py shipped|default COMMAND...

`default` is what Docker does where no profile is named: the shipped one without what it adds, and
with the calls of clone that make no namespace.
"""

import json
import os
import sys
from typing import Any

import pyseccomp

from hud_mcp.sandbox.bubblewrap import PROFILE

ADDED = "What this profile adds"
MAKE_NAMESPACES = 0x7E020000
"""The flags of clone(2) that begin with CLONE_NEW, but for that of time."""
ACTIONS = {"SCMP_ACT_ALLOW": lambda _: pyseccomp.ALLOW, "SCMP_ACT_ERRNO": pyseccomp.ERRNO}
COMPARISONS = {
    "SCMP_CMP_EQ": pyseccomp.EQ,
    "SCMP_CMP_LT": pyseccomp.LT,
    "SCMP_CMP_MASKED_EQ": pyseccomp.MASKED_EQ,
}


def rules(which: str) -> list[dict[str, Any]]:
    """The rules of a profile."""
    shipped: list[dict[str, Any]] = json.loads(PROFILE.read_text())["syscalls"]
    if which == "shipped":
        return shipped
    kept = [rule for rule in shipped if not rule.get("comment", "").startswith(ADDED)]
    if len(kept) != len(shipped) - 1:
        raise SystemExit(f"one rule of the profile begins with {ADDED!r}")
    no_namespace = {"index": 0, "op": "SCMP_CMP_MASKED_EQ", "value": MAKE_NAMESPACES, "valueTwo": 0}
    return [*kept, {"action": "SCMP_ACT_ALLOW", "names": ["clone"], "args": [no_namespace]}]


def load(which: str) -> None:
    """Have the kernel apply it to this process, and to all that it starts."""
    program = pyseccomp.SyscallFilter(pyseccomp.ERRNO(1))
    for rule in rules(which):
        action = ACTIONS[rule["action"]](rule.get("errnoRet", 1))
        arguments = [
            pyseccomp.Arg(a["index"], COMPARISONS[a["op"]], a["value"], a.get("valueTwo", 0))
            for a in rule.get("args", ())
        ]
        for name in rule["names"]:
            if pyseccomp.resolve_syscall(pyseccomp.system_arch(), name) >= 0:
                program.add_rule(action, name, *arguments)
    program.load()


if __name__ == "__main__":
    load(sys.argv[1])
    os.execv(sys.argv[2], sys.argv[2:])
