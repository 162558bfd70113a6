"""Why an agent's work on a task was ended for it, and whose doing that was."""

from hud_mcp.errors import HudMcpError

__all__ = ["BoundReached", "JobHalted", "MachineFailed", "OperatorFailed"]


class BoundReached(HudMcpError):
    """The agent has used up what it may use, which the text says: ``at $0.50 (--max-cost)``.

    That is its result. What it had answered, counts.
    """


class OperatorFailed(HudMcpError):
    """What the agent works with was refused to it, which its operator has to mend.

    The run says nothing of the agent, and `--resume` runs it again.
    """


class JobHalted(OperatorFailed):
    """The same would meet every other run of the job, so that none is begun any more."""


class MachineFailed(HudMcpError):
    """This program failed while it let a model work. It is no result of the model's.

    The run says nothing of the agent, and `--resume` runs it again.
    """
