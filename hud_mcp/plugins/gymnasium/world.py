"""The live environment of one session: what may block is done on a thread of its own."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from hud_mcp.base.text import clip_text
from hud_mcp.environment.world import World
from hud_mcp.errors import ActionFailed, EnvironmentFailed
from hud_mcp.plugins.gymnasium import libraries
from hud_mcp.plugins.gymnasium.actions import ActionForm
from hud_mcp.plugins.gymnasium.known import Known, legend_of, most_steps
from hud_mcp.plugins.gymnasium.spaces import value_to_json
from hud_mcp.plugins.gymnasium.thread import Episode, Frames, OwnThread, Pace, close_env, drawing
from hud_mcp.plugins.gymnasium.words import context_in_words, in_words, plain, units_in_words
from hud_mcp.values.action import Action, ActionEffect, CustomAction, ScreenshotFetch
from hud_mcp.values.context import ContextSpace
from hud_mcp.values.observation import Look, Observation, encode_picture

if TYPE_CHECKING:
    import gymnasium

__all__ = ["GymnasiumWorld"]

T = TypeVar("T")

_CLOSE_BOUND_S = 5.0
"""The most seconds for a running step to end before the world is left to itself."""
_NO_STEP = -1
"""The mark that `explain` told the rules, apart from any look."""


@dataclass(frozen=True)
class Probe:
    """The properties of an environment that was made once."""

    form: ActionForm
    known: Known
    context_space: ContextSpace
    draws: bool
    draws_steps: bool
    is_quick: bool
    replayable: bool
    most_steps: int | None
    spaces: dict[str, Any] | None
    screen_fault: str | None


@dataclass
class _Halt:
    asked: bool = False


class GymnasiumWorld(World):
    """One session's environment, which a template gets by annotating a parameter with this class.

    A template reads `episode`, the events since the last reset, and uses the environment by `call`.
    """

    def __init__(
        self,
        env: "gymnasium.Env[Any, Any]",
        thread: OwnThread,
        probe: Probe,
        episode: Episode,
        *,
        draws_asked: bool,
        is_quick: bool,
        keep: Callable[[Any, OwnThread], bool],
    ) -> None:
        self.episode = episode
        self._env = env
        self._thread = thread
        self._probe = probe
        self._form = probe.form
        self._step: Callable[[Any], tuple[Any, Any, bool, bool, dict[str, Any]]] = env.step
        if probe.draws_steps:
            self._step = self._drawn_step
        self._keep: Callable[[Any, OwnThread], bool] | None = keep
        self._draws_asked = draws_asked
        self._frames = Frames(env)
        self._pace = Pace(thread, is_quick=is_quick)
        self._most_steps = most_steps(env)
        self._broken: str | None = None
        self._closed = False
        self._last: list[str] | None = None
        self._explained_at: int | None = None
        self._legend = legend_of(env, probe.known)

    @property
    def action_schema(self) -> dict[str, Any]:
        """The JSON schema of one action."""
        return self._form.schema

    @property
    def most_steps(self) -> int | None:
        """The most steps of this episode, which a reset may choose; None if no limit is known."""
        return self._most_steps

    @property
    def example(self) -> str:
        """One action, as JSON text."""
        return self._form.example

    async def call(self, work: "Callable[[gymnasium.Env[Any, Any]], T]") -> T:
        """Use the environment itself, on its thread, and return the result of `work`.

        Raises:
            EnvironmentFailed: The world is broken or closed. Exceptions of `work` pass unchanged.
        """
        self._check_open()
        self._keep = None  # nobody knows what is done to it
        try:
            return await self._thread.do(partial(work, self._env))
        finally:
            self._most_steps = most_steps(self._env)

    async def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin a new episode, for templates alone; raise `EnvironmentFailed` as `act` does."""
        self._check_open()

        def begin() -> Episode:
            with drawing:
                seen, info = self._env.reset(seed=seed, options=options)
            return Episode(seen, info)

        self.episode = await self._guarded(begin)
        self._most_steps = most_steps(self._env)

    def screen_size(self) -> tuple[int, int] | None:
        """Width and height of the last frame that was drawn, in pixels; None before any."""
        return self._frames.size

    async def measure_screen(self) -> None:
        """Draw a frame that is not shown, unless frames are drawn only on request.

        Raises:
            EnvironmentFailed: The world is closed or broken.
        """
        self._check_open()
        if self._probe.draws and not self._draws_asked:
            await self._thread.do(self._frames.draw)

    async def act(self, action: Action) -> ActionEffect:
        """Perform one action, or a list of the environment's actions in one go.

        A `custom` action `step` holds `action`, or `actions`, and `repeat`; if actions have
        names, a name stands for itself. A list stops at the end of the episode.

        Returns:
            The sum of the rewards, and whether the episode was `terminated` or `truncated`;
            `info` has each reward, and the environment's own last info.

        Raises:
            ActionFailed: The action is out of bounds, or the episode is over. Nothing happened.
            EnvironmentFailed: The environment raised; only `close` may be called from now on.

        If this call is cancelled, the step under way is the last of its list.
        """
        self._check_open()
        if isinstance(action, ScreenshotFetch):
            return ActionEffect()
        plan = self._plan(action)
        if self._pace.allows(len(plan)):
            return self._do(partial(self._steps, plan))
        halt = _Halt()
        return await self._guarded(partial(self._steps, plan, halt), halt)

    async def act_all(
        self, actions: Sequence[Action], keep: Callable[[ActionEffect], None]
    ) -> ActionFailed | None:
        """Perform several actions, in one hop to the thread if they need one; raise as `act` does.

        `keep` gets each effect, on the thread that performed it. The result is the next action's
        refusal, or None. If this call is cancelled, the step under way is the last.
        """
        self._check_open()
        plans: list[Sequence[Any]] = []
        refusal: ActionFailed | None = None
        for action in actions:
            try:
                plans.append(() if isinstance(action, ScreenshotFetch) else self._plan(action))
            except ActionFailed as exc:
                refusal = exc
                break
        halt = None if self._pace.allows(sum(map(len, plans))) else _Halt()

        def run() -> bool:
            for plan in plans:
                keep(self._steps(plan, halt) if plan else ActionEffect())
                if self.episode.over or (halt is not None and halt.asked):
                    return True
            return False

        ended = self._do(run) if halt is None else await self._guarded(run, halt)
        return None if ended else refusal

    async def observe(self, look: Look) -> Observation:
        """Return the words and the picture of this moment; raise `EnvironmentFailed` once closed.

        Where pictures are drawn when they alone are asked for, words come without one.
        """
        self._check_open()
        if self._draws_asked and (look.text or look.values):
            look = look.model_copy(update={"image": None})
        work = partial(self._look, look)
        # Words alone are not worth a hop, unless a call that was cancelled is at its last step.
        if look.image is None and self._thread.is_idle:
            return self._do(work)
        return await self._guarded(work)

    async def close(self) -> None:
        """End the environment and its thread. It may be called twice."""
        if self._closed:
            return
        self._closed = True
        is_sound = self._broken is None and self._thread.is_idle
        if is_sound and self._keep is not None and self._keep(self._env, self._thread):
            return
        ended = self._thread.leave(partial(close_env, self._env))
        with anyio.move_on_after(_CLOSE_BOUND_S):
            while not ended.done():  # noqa: ASYNC110  # another thread ends it, or never does
                await anyio.sleep(0.002)

    def _plan(self, action: Action) -> Sequence[Any]:
        if isinstance(action, CustomAction) and self.episode.over:
            raise ActionFailed(f"{self._ended()} No more steps are possible; send your answer.")
        return self._form.plan(action)

    # On the thread, or at once.

    def _steps(self, plan: Sequence[Any], halt: _Halt | None = None) -> ActionEffect:
        """Take steps until the plan or the episode ends; this loop is what a step costs."""
        step, episode = self._step, self.episode
        if episode.over:  # while this waited for a call that was cancelled
            raise ActionFailed(f"{self._ended()} No more steps are possible; send your answer.")
        first = len(episode.rewards)
        keep = episode.rewards.append
        seen, info = episode.seen, episode.info
        terminated = truncated = False
        began_s = time.perf_counter()
        try:
            for action in plan:
                seen, reward, terminated, truncated, info = step(action)
                keep(float(reward))
                if terminated or truncated or (halt is not None and halt.asked):
                    break
        finally:
            episode.seen, episode.info = seen, info
            episode.terminated, episode.truncated = bool(terminated), bool(truncated)
            episode.over = episode.terminated or episode.truncated
        rewards = episode.rewards[first:]
        self._pace.note(len(rewards), time.perf_counter() - began_s, on_loop=halt is None)
        left = len(plan) - len(rewards)
        return ActionEffect(
            text=f"{left} more actions of the list were not performed." if left else None,
            reward=sum(rewards),
            terminated=episode.terminated,
            truncated=episode.truncated,
            info={"first_step": first + 1, "rewards": rewards, "info": plain(info) if info else {}},
        )

    def _drawn_step(self, action: Any) -> Any:
        with drawing:
            return self._env.step(action)

    def _look(self, look: Look) -> Observation:
        image = None
        if look.image is not None and self._env.render_mode is not None:
            frame = self._frames.draw()
            if frame is not None:
                picture = libraries.Image.fromarray(frame)
                image = encode_picture(picture, look.image, quality=look.quality)
        text = self._words(look) if look.text else None
        if text is not None and len(text) > look.max_text_chars:
            text = clip_text(text, look.max_text_chars)
        values = value_to_json(self.episode.seen) if look.values else None
        return Observation(text=text, image=image, values=values)

    def _do(self, work: Callable[[], T]) -> T:
        """Do work on the event loop; what it raises breaks the world."""
        try:
            return work()
        except ActionFailed:
            raise
        except Exception as exc:
            self._broken = f"The environment raised {type(exc).__name__}: {exc}."
            raise EnvironmentFailed(f"{self._broken} Start a new task.") from exc

    async def _guarded(self, work: Callable[[], T], halt: _Halt | None = None) -> T:
        """Do work on the thread; what it raises breaks the world."""
        try:
            return await self._thread.do(partial(self._do, work))
        except anyio.get_cancelled_exc_class():
            if halt is not None:
                halt.asked = True
            raise

    # In words.

    def _words(self, look: Look) -> str:
        lines = in_words(self.episode.seen, self._env, self._probe.known.numbers)
        shown = lines
        if look.changes and self._last is not None:
            shown = [line for line in lines if line not in self._last] or ["Nothing changed."]
        self._last = lines
        of_most = f" of {self._most_steps}" if self._most_steps else ""
        over, count = self.episode.over, len(self.episode.rewards)
        head = [self._ended() if over else f"Step {count}{of_most}."]
        if not look.changes and self._explained_at in (None, count):
            self._explained_at = count
            head += self._explanation()
            shown = shown if over else [*shown, self._form.how_to_act]
        elif count == 0:
            head += self._context()
        return "\n".join([*head, *shown])

    def explain(self, prompt: str = "") -> str:
        """Return rules, map, rewards, and actions if `prompt` lacks them; later looks do not."""
        self._explained_at = _NO_STEP
        how = [] if self._form.description in prompt else [self._form.how_to_act]
        return "\n".join([*self._explanation(), *how])

    def _explanation(self) -> list[str]:
        fault = self._frames.fault or self._probe.screen_fault
        units = units_in_words(self.episode.seen, self._probe.known.numbers)
        faults = [f"There are no pictures: {fault}"] if fault else []
        return [*self._legend, *units, *self._context(), *faults]

    def _context(self) -> list[str]:
        return context_in_words(self.episode.seen, self._env)

    def _ended(self) -> str:
        how = "" if self.episode.terminated else ", by a limit"
        return f"The episode ended after {self.episode.steps} steps{how}."

    def _check_open(self) -> None:
        if self._closed:
            raise EnvironmentFailed("This environment is closed. Start a new task.")
        if self._broken:
            raise EnvironmentFailed(f"{self._broken} Start a new task.")
