"""An environment whose every call and reward a test can see."""

import io
import os

from PIL import Image

from hud_mcp import (
    Action,
    ActionEffect,
    Answer,
    ClickAction,
    CustomAction,
    DragAction,
    Environment,
    Look,
    MoveAction,
    Observation,
    Opening,
    Point,
    PositionFetch,
    Screenshot,
    WorldSpec,
)
from hud_mcp.errors import ActionFailed
from hud_mcp.values.context import ContextSpace


class Bench:
    """Words that were put on it, and where it was clicked."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.clicks: list[tuple[float, float]] = []
        self.at = Point(x=0, y=0)

    async def act(self, action: Action) -> ActionEffect:
        """Click, move, or a custom action of its own."""
        if isinstance(action, ClickAction):
            if action.selector == "#far":  # an element that is out of view once it was clicked
                self.at = Point(x=70, y=7)
            elif action.point is not None:
                self.at = action.point
            self.clicks.append((self.at.x, self.at.y))
            return ActionEffect()
        if isinstance(action, MoveAction):
            by = action.offset or Point(x=0, y=0)
            self.at = action.point or Point(x=self.at.x + by.x, y=self.at.y + by.y)
            return ActionEffect()
        if isinstance(action, DragAction):
            self.at = action.path[-1]
            return ActionEffect()
        if isinstance(action, PositionFetch):
            return ActionEffect(text="here", info={"point": {"x": self.at.x, "y": self.at.y}})
        if isinstance(action, CustomAction):
            return self._custom(action)
        raise ActionFailed(f"The bench does not take {action.type!r}.")

    def _custom(self, action: CustomAction) -> ActionEffect:
        args = action.args or {}
        if action.action == "put":
            self.words.append(str(args["word"]))
            return ActionEffect()
        if action.action == "pay":
            return ActionEffect(reward=float(args["reward"]), info={"paid": args["reward"]})
        if action.action == "end":
            return ActionEffect(reward=0.25, terminated=True)
        if action.action == "cut":
            return ActionEffect(truncated=True)
        raise ActionFailed(f"There is no {action.action!r} here.")

    async def observe(self, look: Look) -> Observation:
        """Its words, and a picture of 80 by 40 pixels."""
        text = f"words: {' '.join(self.words)}; clicks: {self.clicks}"
        if look.image is None:
            return Observation(text=text)
        out = io.BytesIO()
        Image.new("RGB", (80, 40), (len(self.words), 0, 0)).save(out, "PNG")
        return Observation(text=text, image=Screenshot.from_bytes(out.getvalue()))

    async def close(self) -> None:
        """Nothing is open."""


class BenchSpec(WorldSpec):
    """Declares a bench."""

    name = "bench"
    world_type = Bench
    actions = frozenset({"click", "move", "drag", "position", "custom", "press"})
    has_screen = True
    replayable = True
    context_space = ContextSpace()

    async def open(self, _opening: Opening) -> Bench:
        """Build one."""
        return Bench()


env = Environment("bench", world=BenchSpec())


@env.function(use="setup")
async def put(bench: Bench, *words: str) -> None:
    """Put words on the bench."""
    bench.words.extend(words)


@env.function(use="setup")
async def topple(bench: Bench) -> None:
    """Fail."""
    raise RuntimeError(f"it fell over with {len(bench.words)} words")


@env.function(use="evaluate")
async def holds(bench: Bench, word: str) -> float:
    """1.0 where the word is on the bench."""
    return float(word in bench.words)


@env.function(use="evaluate")
async def count(bench: Bench) -> int:
    """How many words there are."""
    return len(bench.words)


@env.function(use="evaluate")
async def clicked(bench: Bench) -> list[list[float]]:
    """Where it was clicked; no number."""
    return [[x, y] for x, y in bench.clicks]


@env.function(use="evaluate")
async def said(answer: Answer[str]) -> str:
    """The answer; no number."""
    return answer.raw


@env.function(use="evaluate")
async def broken(bench: Bench, by: int = 0) -> float:
    """Cannot run."""
    return len(bench.words) / by


@env.function(use="evaluate")
async def environment_has(name: str) -> float:
    """1.0 where the server's process has an environment variable."""
    return float(name in os.environ)


@env.template()
async def say(bench: Bench, word: str = "lamp"):  # noqa: ANN201
    """Ask for one word."""
    bench.words.append("start")
    answer = yield f"Say {word!r}."
    yield {"score": 1.0 if answer == word else 0.25, "content": f"You said {answer!r}."}


@env.template()
async def quarrel():  # noqa: ANN201
    """Fail to grade."""
    yield "Say anything."
    yield "no number"
