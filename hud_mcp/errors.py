"""One tree of exceptions; each leaf is named for the caller's situation.

Every message says what was given, what was expected, and what to do next.
"""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn, cast

__all__ = [
    "ActionFailed",
    "AlreadyAnswered",
    "BrokenByAgent",
    "CapabilityNotFound",
    "EnvironmentFailed",
    "GraderFailed",
    "GradingFailed",
    "GymMakeException",
    "HudMcpError",
    "IdTaken",
    "InvalidAction",
    "InvalidAgent",
    "InvalidConfiguration",
    "InvalidContext",
    "InvalidEnvironment",
    "InvalidTask",
    "InvalidTemplate",
    "JobStopped",
    "LimitReached",
    "MoveFailed",
    "NoScreen",
    "NotInstalled",
    "ObservationKeyNotFound",
    "OperatorRefused",
    "OutOfStep",
    "OutputExists",
    "Replaced",
    "ReplacedCall",
    "SessionBusy",
    "SessionEnded",
    "SessionNotFound",
    "SessionResuming",
    "SessionTaken",
    "SnapshotFailed",
    "SourceNotFound",
    "StoreFailed",
    "WorldDied",
    "broken_world",
    "clipped",
    "did_you_mean",
    "did_you_mean_file",
    "failed_by",
    "name_known",
    "sole_cause",
]


_CHOICES = 8
"""The most admitted values in an error."""
_FEW = 5
"""The most names in an error if there are more."""


class HudMcpError(Exception):
    """The root of everything this package raises on purpose."""


class InvalidEnvironment(HudMcpError):
    """An environment was declared in a way that cannot work. Nothing runs."""


class InvalidTemplate(InvalidEnvironment):
    """A template was written in a way that cannot work; the text names its file and line."""


class InvalidTask(HudMcpError):
    """A task names something that does not exist, or arguments of the wrong kind. Nothing ran."""


class InvalidContext(HudMcpError, ValueError):
    """A context has an unknown feature or a value out of bounds. Nothing was opened."""


class InvalidAgent(HudMcpError):
    """This agent cannot work on tasks; the text says what to write. Nothing ran."""


class InvalidConfiguration(HudMcpError):
    """A client's configuration cannot be read, or not be changed safely. It is as it was."""


class InvalidAction(HudMcpError):
    """An action is malformed, or the environment does not take it. The world is unchanged."""


class SourceNotFound(HudMcpError):
    """No environment or taskset is at the place that was named."""


class CapabilityNotFound(HudMcpError, KeyError):
    """An environment publishes nothing of that name."""

    def __str__(self) -> str:
        return str(self.args[0])


class ObservationKeyNotFound(HudMcpError, KeyError):
    """An observation has nothing under that key; the text names the keys that it has."""

    def __str__(self) -> str:
        return str(self.args[0])


class ActionFailed(HudMcpError):
    """The world refused an action. The effects of earlier actions stay."""


class BrokenByAgent(ActionFailed):
    """The agent's own doing prevents this. The session stays open, and can be answered.

    A template may catch it and grade what remains. If it does not, the grade is 0.0, with the
    reason, as the agent's doing.
    """


class WorldDied(ActionFailed):
    """The world died, and is back as it was after the last reply. Nothing of this call stands."""


class NoScreen(ActionFailed):
    """A picture was asked of a world that has no screen."""


class EnvironmentFailed(HudMcpError):
    """The world broke, or could not be opened.

    The server resumes its session if the record allows; otherwise the session ends without a grade.
    """


class MoveFailed(EnvironmentFailed):
    """A move of the task's world raised; `described` has its file and line, for the record."""

    described = ""


class GradingFailed(HudMcpError):
    """The template failed to yield a grade. The session has ended and has no reward."""


class GraderFailed(HudMcpError):
    """A grader could not run, so there is no score. The session ends as `grading_failed`."""


class SessionNotFound(HudMcpError):
    """No session of this caller has the id that was given. Nothing was done."""


class SessionEnded(HudMcpError):
    """The session is over; the text says how and when it ended. Nothing was done."""


class SessionBusy(HudMcpError):
    """Too many calls already wait on this session. Nothing was done; call again later."""


class SessionResuming(SessionBusy):
    """The session is still being resumed. Nothing was done; call again later."""


class SessionTaken(HudMcpError):
    """Another server process runs this session. Nothing was done, and nothing recorded here."""


class AlreadyAnswered(HudMcpError):
    """Another answer was submitted before. The grade of the first one stands."""


class LimitReached(HudMcpError):
    """A limit was reached; the text names it. What existed before, lives on.

    Attributes:
        retry_after_s: The seconds after which the same call may be let through; None if unknown.
        quota: The used-up quota of its caller; None for another limit.
    """

    def __init__(
        self, message: str = "", *, retry_after_s: float | None = None, quota: str | None = None
    ) -> None:
        super().__init__(message)
        self.quota = quota
        self.retry_after_s = retry_after_s


class OutOfStep(HudMcpError):
    """The session has another number of steps than its caller has seen. Nothing was done."""


class SnapshotFailed(HudMcpError):
    """A world's state could not be kept; the text says why. The world goes on as it was."""


class StoreFailed(HudMcpError):
    """The record could not be written or read; the text says what is true now."""


class IdTaken(StoreFailed):
    """Another session has the id chosen for this one. Nothing was written."""


class DamagedRecord(StoreFailed):
    """A row of the store is damaged; the text names it. Others can be read."""


class GymMakeException(HudMcpError):
    """`gym.make` failed, and nothing of the environment runs. The name is the HUD SDK's.

    `data` has facts about the failure; its `exception` is the cause.
    """

    def __init__(self, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.data: dict[str, Any] = dict(data or {})


class JobStopped(HudMcpError):
    """A job could not be run to its end; the text says why. What it recorded stands.

    `job` is the job, which can be resumed.
    """

    def __init__(self, message: str, job: Any = None) -> None:
        super().__init__(message)
        self.job = job


class OperatorRefused(HudMcpError):
    """A server takes no operator's calls, or not with this token. Nothing was done."""


class OutputExists(HudMcpError):
    """The place to write to is taken. Nothing was written."""


class Replaced(HudMcpError):
    """HUD's SDK had this call; the text says what to use instead. Nothing was done."""


class ReplacedCall:
    """A method of HUD's SDK that a class of this package lacks; `instead` is a sentence."""

    def __init__(self, instead: str) -> None:
        self._instead = instead
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"{owner.__name__}.{name}"

    def __call__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Raise `Replaced`."""
        raise Replaced(f"{self._name} was of HUD's cloud or of its older SDK. {self._instead}")


class NotInstalled(HudMcpError):
    """An optional part of the package is needed; the text names it. Nothing was done."""


def sole_cause(error: BaseException) -> BaseException:
    """Return the one exception inside nested groups; the innermost group where it holds several."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    inner, *others = group.exceptions
    return group if others else sole_cause(inner)


def broken_world(error: BaseException) -> "BrokenByAgent | EnvironmentFailed | None":
    """Return the world's error behind a grader's failure; None if the grader failed by itself."""
    found = failed_by(error)
    return found if isinstance(found, BrokenByAgent | EnvironmentFailed) else None


def failed_by(error: BaseException) -> BaseException | None:
    """Return the cause of a grader's failure, inside groups and beneath the grader's own error."""
    found: BaseException | None = sole_cause(error)
    while isinstance(found, GraderFailed | GradingFailed):
        found = found.__cause__
    return found


def clipped(value: object, limit: int = 60) -> str:
    """Return a value for an error: its `repr`, cut to a length."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}…"


_LONGEST_NAME = 1000
"""The most characters of a compared name: each comparison costs as much as both are long."""


_ELSEWHERE: Mapping[str, str] = {
    "click": "left_click double_click triple_click right_click middle_click mouse_click tap",
    "move": "hover mouse_move move_mouse move_to",
    "press": "key key_press send_keys hotkey press_key",
    "type": "fill input write enter_text type_text input_text set_value",
    "wait": "sleep pause",
    "drag": "left_click_drag drag_and_drop drag_to swipe",
    "scroll": "wheel mouse_wheel",
    "response": "answer finish done submit terminate complete stop final_answer",
    "position": "cursor_position",
    "goto": "navigate go_to_url open_url visit open",
    "back": "go_back navigate_back",
    "custom": "goto navigate back forward reload switch_tab close_tab select_option run bash",
    "scroll_x": "dx delta_x wheel_x scroll_dx",
    "scroll_y": "dy delta_y wheel_y scroll_dy amount scroll_amount distance pixels direction",
    "offset_x": "dx delta_x",
    "offset_y": "dy delta_y",
    "x": "coordinate coordinates coords position pos location",
    "path": "points from start start_coordinate",
    "keys": "key hotkey combo shortcut key_combination",
    "hold_keys": "modifiers modifier_keys",
    "text": "content value string input input_text message answer response",
    "answer": "text response result final_answer value message content",
    "time": "duration ms milliseconds seconds timeout delay time_ms",
    "ref": "element element_id element_ref id uid node node_id index target",
    "selector": "css xpath locator",
    "enter_after": "submit press_enter enter",
    "button": "mouse_button btn",
    "pattern": "click_count count clicks num_clicks double_click",
    "action": "command name tool function method",
    "args": "arguments params parameters kwargs input",
    "arguments": "args params parameters kwargs input",
    "task": "id task_id",
    "template": "template_id name",
    "session": "session_id id",
    "environment": "env env_id",
}
"""The names that other frameworks have for ours, which may resemble others of ours more."""


def _bare(name: str) -> str:
    """Return a name without what differs between `scrollY`, `scroll-y` and `scroll_y`."""
    return re.sub(r"[\W_]", "", name).lower()


_OURS: dict[str, list[str]] = {}
for _ours, _theirs in _ELSEWHERE.items():
    for _other in _theirs.split():
        _OURS.setdefault(_bare(_other), []).append(_ours)


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the name that was meant, or an empty string.

    It is the same name written in another way, our name for what another framework calls so, or the
    closest one. A text that is none, or a long one, resembles no name.
    """
    if not isinstance(given, str) or len(given) > _LONGEST_NAME:
        return ""
    names, bare = list(known), _bare(given)
    meant = [name for name in names if bare and _bare(name) == bare]
    meant += [name for name in _OURS.get(bare, ()) if name in names]
    meant = meant or get_close_matches(given, names, n=1, cutoff=0.6)
    return f" Did you mean {meant[0]!r}?" if meant else ""


def name_known(given: object, known: Iterable[str], *, what: str, listing: str = "") -> str:
    """Return what there is in place of a name that was not found: the closest, else a few.

    `what` comes before the few, such as `"There are"`. `listing` says what lists all of many.
    """
    names = list(known)
    hint = did_you_mean(given, names)
    if len(names) <= _CHOICES:
        return f"{hint} {what}: {', '.join(names) or 'none'}."
    few = f" {what}: {', '.join(names[:_FEW])} and {len(names) - _FEW} more."
    return f"{hint or few} {listing}".rstrip()


def did_you_mean_file(given: Path) -> str:
    """Return ``" Did you mean 'x'?"`` for a file of a like name in the same folder, or nothing."""
    try:
        beside = [each.name for each in given.parent.iterdir() if each.is_file()]
    except OSError:
        return ""
    close = get_close_matches(given.name, beside, n=1, cutoff=0.6)
    return f" Did you mean {str(given.with_name(close[0]))!r}?" if close else ""
