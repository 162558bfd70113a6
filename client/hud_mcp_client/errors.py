"""Errors by the caller's situation. A server names the class of each refusal."""

__all__ = [
    "ActionFailed",
    "AlreadyAnswered",
    "CallRefused",
    "ClientError",
    "ConnectionFailed",
    "EnvironmentFailed",
    "GradingFailed",
    "InvalidAction",
    "InvalidTask",
    "LimitReached",
    "OutOfStep",
    "SessionBusy",
    "SessionEnded",
    "SessionNotFound",
    "SessionResuming",
    "Unauthorized",
    "refusal",
]


class ClientError(Exception):
    """Any of these errors."""


class ConnectionFailed(ClientError):
    """The server gave no reply. The session lives on there: `resume` continues it."""


class Unauthorized(ClientError):
    """The server refuses the token, or requires one."""


class CallRefused(ClientError):
    """The server refused a call. The text says why and what to do next."""


class InvalidTask(CallRefused):
    """There is no such task, or its arguments are wrong. Nothing was started."""


class InvalidAction(CallRefused):
    """An action is malformed. None was performed."""


class ActionFailed(CallRefused):
    """The world could not perform the action. The session stays open."""


class SessionNotFound(CallRefused):
    """There is no such session, or it is another caller's."""


class SessionEnded(CallRefused):
    """The session is over. The text says how and when it ended."""


class SessionBusy(CallRefused):
    """The session is busy with another call, or is not available now."""


class SessionResuming(SessionBusy):
    """A server is resuming the session. The client waits and calls again."""


class AlreadyAnswered(CallRefused):
    """Another answer was submitted before. The first one counts."""


class OutOfStep(CallRefused):
    """Somebody else has stepped the session meanwhile. Nothing was done."""


class LimitReached(CallRefused):
    """The call reaches a limit of the server. The text names it."""


class EnvironmentFailed(CallRefused):
    """The world broke. The session has no reward."""


class GradingFailed(CallRefused):
    """The task cannot be graded. The session has ended, and has no reward."""


_OWN = {
    kind.__name__: kind
    for kind in (
        ActionFailed,
        AlreadyAnswered,
        EnvironmentFailed,
        GradingFailed,
        InvalidAction,
        InvalidTask,
        LimitReached,
        OutOfStep,
        SessionBusy,
        SessionEnded,
        SessionNotFound,
        SessionResuming,
    )
}
_OTHERS = {"InvalidContext": InvalidTask, "SessionTaken": SessionBusy, "WorldDied": ActionFailed}
_KINDS: dict[str, type[CallRefused]] = {**_OWN, **_OTHERS}


def refusal(kind: object, text: str) -> CallRefused:
    """Return the error of the class that a server names; `CallRefused` for an unknown one."""
    return _KINDS.get(str(kind), CallRefused)(text)
