"""One held session as OpenEnv knows it: an episode with resets, steps and an end."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import anyio

from hud_mcp.agents.agent import answer_text
from hud_mcp.base.reading import Fault, Reader
from hud_mcp.environment.conversation import NOT_CARRIED
from hud_mcp.environment.task import Task
from hud_mcp.plugins.openenv.tools import answer_tool, listed_tools, plain_values, world_actions
from hud_mcp.server.call import PLAIN, VALUES
from hud_mcp.server.local import LocalTools
from hud_mcp.session.caller import LOOK, Caller
from hud_mcp.values.action import action_rows, is_answer, no_type
from hud_mcp.values.call import CANCEL_TASK, OWN_SESSION, RESPONSE, START_TASK, STEP, TASK_STATUS

Row = dict[str, Any]

_STARTS = ("template", "arguments", "environment", "context")
_TAKES = frozenset(
    {*_STARTS, "task", "seed", "split", "index", "observe", "episode_id", "ungraded"}
)
_OBSERVE = ("text", "image", "both", "values")
_UNGRADED = ("none", "error")
_ALL = "all"
_KINDS = {"seed": "integer", "index": "integer", "arguments": "object"}
_READER = Reader({"properties": {name: {"type": kind} for name, kind in _KINDS.items()}})


class Refused(Exception):  # as the project's errors are named
    """A refused call. The text says why and what to do next; `retry_after_s` is None if unknown."""

    def __init__(self, message: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Episode:
    """The episodes of one client of OpenEnv, one after the other.

    Its session is recorded and graded once, and outlives its connection. Connections that share the
    episode take `turn` for each call.
    """

    def __init__(self, tools: LocalTools, caller: Caller) -> None:
        self.turn = anyio.Lock(fast_acquire=True)
        self._tools = tools
        self._caller = caller
        self._begun = 0
        self._forget()

    def _forget(self) -> None:
        self.session: str | None = None
        self._steps = 0
        self._task = ""
        self._done = False
        self._observe = "text"
        self._ungraded = "none"
        self._metadata: Row = {}
        self._id: str | None = None

    async def reset(self, given: Mapping[str, Any]) -> Row:
        """Begin an episode, and give up an unfinished one.

        Args:
            given: `task`, the id of a task or a row with one; or `template` with `arguments`; or
                `split` and `index`; or `seed`, which chooses one of the server's tasks. `observe`
                is `text`, `image`, `both` or `values`. `ungraded` is `none` or `error`: the reply
                to a step whose episode ends without a grade. The reply lists any other name.

        Raises:
            Refused: There is no such task, or an argument is wrong. Nothing was started.
        """
        given = _READER.read(given)
        observe = given.get("observe", "text")
        if observe not in _OBSERVE:
            raise Refused(f"observe: {observe!r} is not one of {', '.join(_OBSERVE)}.")
        ungraded = given.get("ungraded", "none")
        if ungraded not in _UNGRADED:
            raise Refused(f"ungraded: {ungraded!r} is not one of {', '.join(_UNGRADED)}.")
        # Read before the former episode is given up: a wrong reset changes nothing.
        asked = self._start(given)
        await self.close()
        self._forget()
        result = await self._call(START_TASK, asked)
        if result.get("isError"):
            wait_s = result.get("_meta", {}).get("hud-mcp/retry_after_s")
            raise Refused(_text(result), retry_after_s=wait_s)
        self._begun += 1
        self._observe, self._ungraded = observe, ungraded
        self._id = None if given.get("episode_id") is None else str(given["episode_id"])
        told = self._take(result)
        if told.get("waits_for") is not None:
            await self.close()
            raise Refused(NOT_CARRIED)
        ignored = sorted(set(given) - _TAKES)
        extra = {"ignored": ignored} if ignored else {}
        seen = {"prompt": told.get("prompt", "")} | await self._first_look()
        if "answer_schema" in told:
            seen["answer_schema"] = told["answer_schema"]
        return self._reply(seen, None, **extra)

    async def resume(self, session: str) -> None:
        """Continue a session that was started before, here or elsewhere.

        Raises:
            Refused: There is no such session, or it is another caller's.
        """
        result = await self._call(TASK_STATUS, {"session": session})
        if result.get("isError"):
            raise Refused(_text(result))
        self._take(result)
        self._done = result["structuredContent"].get("state") == "ended"

    def _take(self, result: Row) -> Row:
        """Record a started session, and return its public description."""
        told = cast("Row", result["structuredContent"])
        self.session, self._steps = str(told["session"]), int(told.get("steps") or 0)
        self._task = str(told.get("task", ""))
        started = result.get("_meta", {}).get("hud-mcp/start", {})
        self._metadata = {"session": self.session, "task": self._task, **started}
        return told

    async def step(self, given: Mapping[str, Any]) -> Row:
        """Act, call a tool, or answer.

        Args:
            given: `{"actions": […]}`, one action with its `type`, `{"action": …}` of a Gymnasium
                environment, `{"tool": …, "arguments": {…}}` or OpenEnv's `call_tool`, its
                `list_tools`, or `{"answer": …}`, which ends the episode.

        Returns:
            The reply. `reward` is None if none is shown, and without a grade. A refused action is
            no failure: `observation["error"]` names it, and the reason.

        Raises:
            Refused: There is no episode, it is done, or the action is malformed. Nothing was done.
        """
        if given.get("type") == "list_tools":
            return self._reply({"tools": listed_tools(self._tools)}, None)
        if self.session is None:
            raise Refused("There is no episode here. Call reset first.")
        if self._done:
            raise Refused("The episode is done. Call reset for another one.")
        try:
            return await self._perform(given)
        except Refused:
            ended = None if self._done else await self._ended()
            if ended is None:
                raise
            return ended

    async def _perform(self, given: Mapping[str, Any]) -> Row:
        tool = given.get("tool") or (given.get("tool_name") if "tool_name" in given else None)
        if tool is not None:
            arguments = _READER.read(given).get("arguments", {})
            if not isinstance(arguments, Mapping):
                raise Refused(f"{Fault.of('arguments', {'type': 'object'}, arguments)}.")
            reply = await self._use(str(tool), cast("Row", arguments))
            return reply if "tool" in given else _as_openenv(str(tool), reply)
        if "answer" in given:
            return await self._answer(given["answer"])
        return await self._act(_actions(given))

    def state(self) -> Row:
        """Return the state of the episode, without anything of its grading."""
        episode = self._id or self._metadata.get("trajectory")
        state = {"episode_id": episode, "step_count": self._steps, "task": self._task}
        return {**state, "done": self._done}

    async def close(self) -> None:
        """Cancel the session, unless it is done."""
        if self.session is not None and not self._done:
            self._done = True
            await self._call(CANCEL_TASK, {"session": self.session})

    async def _first_look(self) -> Row:
        environments = self._tools.sessions.environments.values()
        if all(e.world.name == "none" for e in environments):
            return {}
        return (await self._stepped([]))[0]

    async def _use(self, tool: str, arguments: Mapping[str, Any]) -> Row:
        if tool == answer_tool(self._tools):
            if "answer" not in arguments:
                raise Refused("answer: give the tool the argument `answer`.")
            return await self._answer(arguments["answer"])
        if tool == STEP:
            return await self._act(_actions(arguments))
        if tool not in self._tools.own and tool in world_actions(self._tools):
            return await self._act([{"type": "custom", "action": tool, "args": dict(arguments)}])
        if self._tools.find(tool) is None:
            known = ", ".join(n for n, own in self._tools.own.items() if own.is_listed) or "none"
            raise Refused(f"There is no tool {tool!r}. The environment's own are: {known}.")
        # A server's tool may have an argument `session` of its own.
        ours = OWN_SESSION if tool in self._tools.own else "session"
        result = await self._call(tool, {**arguments, ours: self.session})
        told = result.get("_meta", {}).get("hud-mcp/step", {})
        if result.get("isError") and not told and (ended := await self._ended()) is not None:
            return ended
        self._steps = int(told.get("steps", self._steps))
        key = "error" if result.get("isError") else "result"
        seen = {"tool_name": tool, key: _text(result), **_picture(result)}
        if result.get("structuredContent"):
            seen["structured"] = result["structuredContent"]
        return await self._after(seen, told)

    async def _act(self, rows: Sequence[Mapping[str, Any]]) -> Row:
        """Perform actions, and submit an answer at their end."""
        answers = [row for row in rows if is_answer(row)]
        acts = [row for row in rows if not is_answer(row)]
        if answers and (len(answers) > 1 or not is_answer(rows[-1])):
            raise Refused("actions: one response may end them, and nothing can follow it.")
        if answers and not acts:
            return await self._answer(answers[0].get("text", ""))
        seen, told = await self._stepped(acts)
        if answers and "error" not in seen:
            return await self._answer(answers[0].get("text", ""))
        return await self._after(seen, told)

    async def _stepped(self, rows: Sequence[Mapping[str, Any]]) -> tuple[Row, Row]:
        parts = {VALUES: True} if self._observe == "values" else {LOOK: self._observe}
        asked = {"actions": list(rows), "session": self.session}
        result = await self._call(STEP, asked, {PLAIN: True, **parts})
        told = cast("Row | None", result.get("_meta", {}).get("hud-mcp/step"))
        if told is None:
            raise Refused(_text(result))
        self._steps = int(told["steps"])
        seen: Row = {"text": _text(result)} if self._observe != "values" else {}
        seen |= {name: told[name] for name in ("error", "notes") if name in told}
        if "values" in told:
            seen["values"] = plain_values(told["values"])
        return seen | _picture(result), told

    async def _after(self, seen: Row, told: Mapping[str, Any]) -> Row:
        """Return the reply to a step. If the step has ended the world, grade the task."""
        reward = told.get("reward")
        if not (told.get("terminated") or told.get("truncated")):
            return self._reply(seen, reward, info=told.get("info"))
        graded = await self._answer("")
        truncated = bool(told.get("truncated")) and not told.get("terminated")
        graded["observation"] = {**seen, **graded["observation"]}
        graded["metadata"] |= {"truncated": truncated}
        if reward is not None:  # the world's own reward; the grade stands beside it
            graded["metadata"] |= {"grade": graded["reward"]}
            graded["reward"] = reward
        return graded

    async def _answer(self, answer: Any) -> Row:
        while True:
            asked = {"answer": answer_text(answer), "session": self.session}
            result = await self._call(RESPONSE, asked)
            told = cast("Row", result.get("structuredContent") or {})
            if told.get("state") != "grading":
                break
        if result.get("isError"):
            ended = await self._ended()
            if ended is None:
                raise Refused(_text(result))
            return ended
        return self._end(told, _text(result))

    async def _ended(self) -> Row | None:
        """Return the last reply of an ended session; None if the session goes on."""
        result = await self._call(TASK_STATUS, {"session": self.session})
        status = cast("Row", result.get("structuredContent") or {})
        receipt = cast("Row | None", status.get("receipt"))
        return None if receipt is None else self._end(receipt, _text(result))

    def _end(self, told: Row, text: str) -> Row:
        """Return the last reply, without a reward if there is no grade.

        Raises:
            Refused: There is no grade, and the reset asked for an error in that case.
        """
        self._done = True
        kept = ("outcome", "cause", "subscores", "trajectory")
        of_end = {name: told[name] for name in kept if name in told}
        graded = told.get("outcome") == "graded"
        if not graded and self._ungraded == "error":
            raise Refused(f"The episode has no grade ({told.get('outcome')}). {text}")
        seen = {"text": told.get("content", "") if graded else text}
        return self._reply(seen, told.get("reward") if graded else None, **of_end)

    async def _call(self, name: str, arguments: Row, meta: Row | None = None) -> Row:
        return await self._tools.call(name, arguments, meta, caller=self._caller)

    def _reply(self, seen: Row, reward: float | None, **metadata: Any) -> Row:
        told = {name: value for name, value in metadata.items() if value is not None}
        return {
            "observation": seen,
            "reward": reward,
            "done": self._done,
            "metadata": {**self._metadata, **told},
        }

    def _start(self, given: Mapping[str, Any]) -> Row:
        """Return the arguments of `start_task` for a reset; Refused for an unknown task."""
        asked: Row = {name: given[name] for name in _STARTS if given.get(name) is not None}
        seed: Any = given.get("seed")
        if seed is not None and not _READER.at("seed").fits(seed):
            raise Refused(f"{Fault.of('seed', {'type': 'integer'}, seed)}.")
        task: Any = given.get("task")
        if isinstance(task, Mapping):
            task = cast("Row", task).get("id")
        tasks = self._tools.sessions.tasks
        if task is None and "template" not in asked:
            rows = [row for row in tasks if split_of(row) == given.get("split", split_of(row))]
            if rows:
                return {**asked, "task": rows[self._index(given, len(rows))].id}
            if given.get("split") is not None:
                raise Refused(f"There are no tasks of the split {given['split']!r}.")
            asked["template"] = self._first_template(asked.get("environment"))
        if task is not None:
            asked["task"] = str(task)
        return asked if seed is None else {**asked, "seed": seed}

    def _index(self, given: Mapping[str, Any], count: int) -> int:
        """Return the place of a task: the named one, one by the seed, or the next."""
        index = given.get("index")
        if index is None:
            seed = given.get("seed")
            return (self._begun if seed is None else seed) % count
        if not isinstance(index, int) or not 0 <= index < count:
            raise Refused(f"index: {index!r} is not from 0 to {count - 1}.")
        return index

    def _first_template(self, environment: str | None) -> str:
        every = self._tools.sessions.environments
        found = every.get(environment) if environment else next(iter(every.values()), None)
        if found is None or not found.templates:
            raise Refused(f"The server has no templates. Its environments are: {', '.join(every)}.")
        return next(iter(found.templates))


def split_of(task: Task) -> str:
    """Return the split of a row, or its difficulty; `all` if it names neither."""
    named = task.metadata.get("split") or task.metadata.get("difficulty")
    return named if isinstance(named, str) else _ALL


def _actions(given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the actions of a step, in any of its forms, or raise Refused."""
    if given.get("actions") is not None:
        rows = action_rows(given["actions"])
        for place, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise Refused(f"actions[{place}]: {no_type(row)}")
        return list(rows)
    if "type" in given:
        return [{name: value for name, value in given.items() if name != "metadata"}]
    if "action" in given:
        return [{"type": "custom", "action": "step", "args": {"action": given["action"]}}]
    if not set(given) - {"metadata"}:
        return []
    raise Refused(
        "A step takes `actions`, one action with its `type`, `tool` with `arguments`, or `answer`; "
        f"not {', '.join(map(repr, sorted(given)))}. GET /schema says all of it."
    )


def _as_openenv(tool: str, reply: Row) -> Row:
    """Return the reply to OpenEnv's own `call_tool`, whose clients read an error as an object."""
    seen = cast("Row", reply["observation"])
    told: Row = {"tool_name": tool, **seen}
    if "error" in seen:
        told["error"] = {"error_type": "execution_error", "message": seen["error"]}
    elif "result" not in seen:
        told["result"] = seen.get("text", "")
    return {**reply, "observation": told}


def _text(result: Mapping[str, Any]) -> str:
    parts = cast("list[Row]", result.get("content") or [])
    return "\n".join(part["text"] for part in parts if part["type"] == "text")


def _picture(result: Mapping[str, Any]) -> Row:
    parts = cast("list[Row]", result.get("content") or [])
    found = [part for part in parts if part["type"] == "image"]
    return {"image": found[-1]["data"], "image_type": found[-1]["mimeType"]} if found else {}
