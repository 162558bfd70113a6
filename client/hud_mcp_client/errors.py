"""What may go wrong, by the caller's situation. A server names the class of each refusal."""

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
    """The server does not take the token, or wants one."""


class CallRefused(ClientError):
    """The server refused a call. The text says why and what to do next."""


class InvalidTask(CallRefused):
    """There is no such task, or its arguments are wrong. Nothing was started."""


class InvalidAction(CallRefused):
    """An action is malformed. None was performed."""


class ActionFailed(CallRefused):
    """The world could not do it. The session lives on."""


class SessionNotFound(CallRefused):
    """There is no such session, or it is another caller's."""


class SessionEnded(CallRefused):
    """The session is over. The text says how and when it ended."""


class SessionBusy(CallRefused):
    """The session is at work on another call, or cannot be had at the moment."""


class SessionResuming(SessionBusy):
    """A server is bringing the session back. The client waits and calls again."""


class AlreadyAnswered(CallRefused):
    """Another answer was submitted before. The first one counts."""


class OutOfStep(CallRefused):
    """Somebody else has stepped the session meanwhile. Nothing was done."""


class LimitReached(CallRefused):
    """A limit of the server stands in the way. The text names it."""


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
    """The error for a refusal, by the class that the server names; `CallRefused` for others."""
    return _KINDS.get(str(kind), CallRefused)(text)
