"""One task of a server, again and again, as a Gymnasium environment."""

import io
import re
from collections.abc import Mapping
from typing import Any, ClassVar, cast

import gymnasium
import numpy as np
import orjson
from gymnasium import spaces

from hud_mcp.agents.agent import Reply
from hud_mcp.base import libraries
from hud_mcp.errors import ActionFailed, EnvironmentFailed, InvalidTask, WorldDied, did_you_mean
from hud_mcp.plugins.gymnasium.spaces import PRINTABLE, space_from_json, value_from_json
from hud_mcp.plugins.gymnasium.task_env.connection import Connection, Pipe, remote_server
from hud_mcp.plugins.gymnasium.words import plain
from hud_mcp.values.action import is_answer
from hud_mcp.values.call import (
    CANCEL_TASK,
    LIST_TASKS,
    OWN_SESSION,
    RESPONSE,
    SCREENSHOT,
    START_TASK,
    STEP,
)

_MOST_CHARS = 10_000
"""The most characters of a text that is seen or sent."""

_TRY = re.compile(r"^This was try \d+ of the task\.\n", re.MULTILINE)
"""A line in the text of a grade that would make two episodes of one seed differ."""

_OPTIONS = ("arguments", "context", "task", "template")


class TaskEnv(gymnasium.Env[Any, Any]):
    """Drives tasks of a local or a remote server; each episode is one session.

    If the world is a Gymnasium environment, actions and observations are those of its spaces, and
    rewards are its own. In any other world both are texts. An action is the JSON of one of the
    server's actions, or of a list of them, or `{"tool": …, "arguments": {…}}` with one of the tools
    in a reset's info. Any other text is the final answer, whose grade is the only reward.

    An episode that ends is answered and graded; its last `info` has the `grade`. An episode that
    you leave after a step, as `max_episode_steps` of `gymnasium.make` does, is graded too. The next
    reset's `info["left"]` has its `grade` and `trajectory`. An episode without a step is cancelled.

    A copy by `pickle` starts its own server, or opens a new connection, and begins with `reset`.

    Args:
        source: The source of an environment, as `hud-mcp serve` takes it; a new server serves it.
            By default `gym:ID` draws pictures only for `render`.
        url: Or the address of a running server, with its `/mcp`.
        token: The token that the server requires.
        environment: The environment's name, if the server has several.
        task: The id of a task that the server lists.
        template: Or a template; the environment's first by default.
        arguments: The template's.
        context: The context of each episode; by default the server chooses.
        store: The store of a new server; by default it keeps no record.
        render_mode: `rgb_array`, or None.

    `reset` takes `options` of the same names, for one episode: `task`, `template`, `arguments`,
    `context`.

    Raises:
        EnvironmentFailed: There is no server.
        InvalidTask: The server has no such environment, or the options contradict each other.
    """

    metadata: ClassVar[dict[str, Any]] = {  # pyright: ignore[reportIncompatibleVariableOverride]  # Gymnasium's is no ClassVar
        "render_modes": ["rgb_array"],
        "render_fps": 30,
    }

    def __init__(
        self,
        source: str | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        environment: str | None = None,
        task: str | None = None,
        template: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        store: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        if (source is None) == (url is None):
            raise InvalidTask("Give `source`, what a server of its own serves, or `url`.")
        self.render_mode = render_mode
        self._start: dict[str, Any] = {
            "task": task, "template": template, "arguments": arguments, "context": context
        }  # fmt: skip
        self._session: str | None = None
        self._taken = 0
        self._left: dict[str, Any] = {}
        self._made_with = {
            "source": source, "url": url, "token": token, "environment": environment,
            **self._start, "store": store, "render_mode": render_mode,
        }  # fmt: skip
        self._connection = (
            Connection(remote_server(url, token))
            if url is not None
            else Pipe(_with_screen(source or "", draws=render_mode is not None), store)
        )
        try:
            self._environment = self._choose(environment)
            self._find_spaces()
        except BaseException:
            self._connection.close()
            raise

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Leave the former episode, if it has not ended, and start a task.

        Without a seed the environment's own generator draws it. `options` are this episode's alone.

        Returns:
            The observation; the info has the `prompt`, the `session` and the `trajectory`.

        Raises:
            InvalidTask: The task, an argument or the context is refused, or an option unknown.
            EnvironmentFailed: The server does not answer.
        """
        super().reset(seed=seed)
        self._leave()
        drawn = int(self.np_random.integers(2**31)) if seed is None else seed
        given = {**self._start, **_checked(options or {})}
        if given["task"] is None and given["template"] is None:
            given["template"] = self._template
        asked = {k: v for k, v in given.items() if v is not None} | {"seed": drawn}
        if not given["task"]:
            asked["environment"] = self._environment
        started = self._connection.call(START_TASK, asked)
        if started.is_error:
            raise InvalidTask(started.text)
        self._session = str(started.structured["session"])
        info = {
            "prompt": started.structured["prompt"],
            "session": self._session,
            "trajectory": started.meta["hud-mcp/start"]["trajectory"],
            **({"left": self._left} if self._left else {}),
            **({"tools": list(self._tools.values())} if self._tools else {}),
        }
        self._trajectory, self._taken, self._left = info["trajectory"], 0, {}
        seen = self._call([])
        text = f"{info['prompt']}\n\n{seen.text}"
        return self._observation(seen, text), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Perform one action; if it ends the episode, the task is graded.

        Returns:
            The values that Gymnasium documents. The info is the world's. At the end it has the
            `grade`, if the server shows one; without rewards of steps, that is the reward, too.

        Raises:
            ActionFailed: The action was refused, and nothing has happened.
            EnvironmentFailed: The world broke, or the server does not answer.
        """
        if self._session is None:
            raise ActionFailed("There is no episode; call reset.")
        if self._reads_values:
            reply = self._checked_reply(self._connection.take(self._session, plain(action)))
        else:
            actions = _actions_of(action)
            answers = [each for each in actions or () if is_answer(each)]
            before = [each for each in actions or () if not is_answer(each)]
            if actions is None or (answers and not before):
                return self._answer(str(answers[0].get("text", "")) if answers else str(action))
            is_tool = len(before) == 1 and "tool" in before[0] and "type" not in before[0]
            reply = self._use(before[0]) if is_tool else self._call(before, refused=True)
            if answers and not reply.is_error:
                return self._answer(str(answers[0].get("text", "")))
        meta: Mapping[str, Any] = reply.meta.get("hud-mcp/step", {})
        told: Mapping[str, Any] = meta.get("info", {}).get("info", {})
        info: dict[str, Any] = dict(told)
        terminated, truncated = bool(meta.get("terminated")), bool(meta.get("truncated"))
        self._taken += 1
        reward = meta.get("reward")
        seen = self._observation(reply, reply.text)
        if terminated or truncated:
            info |= self._graded("")
            reward = info.get("grade", 0.0) if reward is None else reward
        return seen, float(reward or 0.0), terminated, truncated, info

    def render(self) -> Any:
        """Return the picture of the world, as an array of height, width and colours.

        Raises:
            ActionFailed: There is no episode, or the world has no screen.
        """
        if self.render_mode is None:
            return None
        if self._session is None:
            return self._last_picture
        reply = self._connection.call(SCREENSHOT, {"session": self._session, "format": "png"})
        if reply.is_error or reply.image is None:
            raise ActionFailed(reply.text)
        with libraries.Image.open(io.BytesIO(reply.image)) as image:
            return np.asarray(image.convert("RGB"))

    def close(self) -> None:
        """Leave the episode, and release the server. It may be called twice."""
        try:
            self._leave()
        except EnvironmentFailed:
            self._session = None  # the server is gone, and its sessions expire
        self._connection.close()

    # What follows is its own.

    _last_picture: Any = None

    def _choose(self, wanted: str | None) -> str:
        tasks, listed = self._listed()
        names = list(dict.fromkeys(row["environment"] for row in (*tasks, *listed)))
        task = self._start["task"]
        if wanted is None:
            of_task = [row["environment"] for row in tasks if row["id"] == task]
            wanted = next(iter([*of_task, *names]), None)
        if wanted is None or wanted not in names:
            hint = did_you_mean(wanted or "", names)
            raise InvalidTask(
                f"The server has no environment {wanted!r}.{hint} It has: {', '.join(names)}."
            )
        templates = [t["id"] for t in listed if t["environment"] == wanted]
        self._template = next(iter(templates), None)
        return wanted

    def _listed(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        tasks: list[dict[str, Any]] = []
        templates: list[dict[str, Any]] = []
        offset: int | None = 0
        while offset is not None:
            page = self._connection.call(LIST_TASKS, {"offset": offset}).structured
            tasks += page["tasks"]
            templates += page["templates"]
            offset = page.get("next_offset")
        return tasks, templates

    def _find_spaces(self) -> None:
        manifest = self._connection.manifest(self._environment)
        described = manifest.get("spaces")
        self._reads_values = described is not None
        names: list[str] = manifest["tools"]
        entries = self._connection.tools() if names and described is None else []
        self._tools = {e["name"]: _without_session(e) for e in entries if e["name"] in names}
        if described is None:
            self.observation_space = spaces.Text(_MOST_CHARS, min_length=0, charset=PRINTABLE)
            self.action_space = spaces.Text(_MOST_CHARS, min_length=0, charset=PRINTABLE)
            return
        if names:
            told = f"{self._environment}: no action of its spaces calls its tools "
            gymnasium.logger.warn(f"{told}({', '.join(names)}). Clients of MCP can call them.")
        self.observation_space = space_from_json(described["observation"])
        self.action_space = space_from_json(described["action"])

    def _call(self, actions: list[Any], *, refused: bool = False) -> Reply:
        meta = {"hud-mcp/values": True} if self._reads_values else None
        reply = self._connection.call(STEP, {"actions": actions, "session": self._session}, meta)
        return self._checked_reply(reply, refused=refused)

    def _use(self, given: Mapping[str, Any]) -> Reply:
        name, arguments = given["tool"], given.get("arguments", {})
        if str(name) not in self._tools or not isinstance(arguments, dict):
            told = f"Tools: {', '.join(self._tools) or 'none'}. A call has `arguments`, an object"
            return Reply(f"{told}; it was {given!s:.200}.", is_error=True)
        call = {**cast("dict[str, Any]", arguments), OWN_SESSION: self._session}
        return self._checked_reply(self._connection.call(name, call), refused=True)

    def _checked_reply(self, reply: Reply, *, refused: bool = False) -> Reply:
        if not reply.is_error or (refused and "hud-mcp/step" in reply.meta):
            return reply
        if "hud-mcp/step" in reply.meta or reply.meta.get("hud-mcp/error") == WorldDied.__name__:
            raise ActionFailed(reply.text)
        if refused:  # an unreadable action is observed, as an agent sees it
            return reply
        raise EnvironmentFailed(reply.text)

    def _observation(self, reply: Reply, text: str) -> Any:
        if not self._reads_values:
            return _printable(text)
        values = reply.meta["hud-mcp/step"]["values"]
        return value_from_json(values, self.observation_space)

    def _answer(self, answer: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        info = self._graded(answer)
        seen = _printable(_TRY.sub("", str(info.pop("said"))))
        return seen, float(info.get("grade", 0.0)), True, False, info

    def _graded(self, answer: str) -> dict[str, Any]:
        """Submit the answer, and return the last info. The last picture is kept for `render`."""
        if self.render_mode is not None:
            self._last_picture = self.render()
        reply = self._connection.call(RESPONSE, {"answer": answer, "session": self._session})
        if reply.is_error:
            raise EnvironmentFailed(reply.text)
        self._session = None
        receipt = reply.structured
        shown = {"grade": receipt["reward"]} if "reward" in receipt else {}
        return {**shown, **({} if self._reads_values else {"said": reply.text})}

    def _leave(self) -> None:
        """End the episode, and grade it if a step was taken: a limit outside has cut it off."""
        if self._session is None:
            return
        session, self._session = self._session, None
        if not self._taken:
            self._connection.call(CANCEL_TASK, {"session": session})
            return
        reply = self._connection.call(RESPONSE, {"answer": "", "session": session})
        self._left = {"trajectory": self._trajectory}
        if not reply.is_error and "reward" in reply.structured:
            self._left["grade"] = reply.structured["reward"]

    def __getstate__(self) -> dict[str, Any]:
        return {"made_with": self._made_with, "spec": self.spec, "random": self._np_random}

    def __setstate__(self, state: dict[str, Any]) -> None:
        TaskEnv.__init__(self, **state["made_with"])
        self.spec, self._np_random = state["spec"], state["random"]


def _printable(text: str) -> str:
    return "".join(c if c in PRINTABLE else "?" for c in text[:_MOST_CHARS])


def _without_session(entry: dict[str, Any]) -> dict[str, Any]:
    fields = dict(entry["inputSchema"]["properties"])
    del fields[OWN_SESSION if OWN_SESSION in fields else "session"]
    return {**entry, "inputSchema": {**entry["inputSchema"], "properties": fields}}


def _with_screen(source: str, *, draws: bool) -> str:
    """Return a Gymnasium source that draws only pictures that are asked for."""
    if not source.startswith("gym:") or "screen=" in source:
        return source
    return f"{source}{'&' if '?' in source else '?'}screen={'asked' if draws else 0}"


def _checked(options: Mapping[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in _OPTIONS:
            hint = did_you_mean(name, _OPTIONS)
            raise InvalidTask(
                f"options: there is no {name!r}.{hint} There are: {', '.join(_OPTIONS)}."
            )
    return dict(options)


def _actions_of(text: Any) -> list[dict[str, Any]] | None:
    """Return the actions that a text means; None if it is an answer."""
    try:
        read: Any = orjson.loads(text)
    except (ValueError, TypeError):
        return None
    listed = cast("list[Any]", read) if isinstance(read, list) else [read]
    return listed if listed and all(isinstance(each, dict) for each in listed) else None
