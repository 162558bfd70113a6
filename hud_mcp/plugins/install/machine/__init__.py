"""The machine: what it lacks, how that comes onto it, and how people are told.

`finding` is one thing that was looked at, `examination` looks at everything. `need` is something
that is missing, `packages` the system's package manager, `installing` asks it, and `chromium`
brings a browser. Nothing here serves or runs a task.
"""
