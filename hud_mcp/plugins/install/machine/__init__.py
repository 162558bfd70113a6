"""The machine: its missing parts, their installation, and the advice for people.

`finding` is one thing that was looked at, `examination` looks at everything. `need` is something
that is missing, `packages` the system's package manager, `installing` asks it, and `chromium`
brings a browser. Nothing here serves or runs a task.
"""
