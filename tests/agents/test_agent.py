"""An agent's handle calls tools by name, with its session, and raises what they refuse."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from tables import each_of

from hud_mcp.agents.agent import Agent, answer_text
from hud_mcp.agents.baselines import NopAgent, OracleAgent
from hud_mcp.environment import Environment
from hud_mcp.errors import ActionFailed, HudMcpError, InvalidTask
from hud_mcp.values.action import ClickAction, Point

pytestmark = pytest.mark.anyio


@dataclass
class Reply:
    """What a tool gives back."""

    text: str = ""
    image: bytes | None = None
    is_error: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Server:
    """Gives prepared replies, and remembers what was called."""

    def __init__(self, *replies: Reply) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._replies = list(replies)

    async def __call__(self, name: str, arguments: dict[str, Any]) -> Reply:
        """Call a tool."""
        self.calls.append((name, arguments))
        return self._replies.pop(0) if self._replies else Reply("done")

    def agent(self) -> Agent:
        """An agent that it serves."""
        return Agent(self, session="s1", prompt="Do it.")


TEXT = """\
- heading "Shop"
- button "Add to cart" [ref=e3]
- button "Add to cart" [ref=e7]
- link "Add to list" [ref=e9]
"""


async def test_actions_are_sent_flat_and_without_what_is_absent() -> None:
    """Objects and mappings become the same JSON, in one call, with the session."""
    server = Server(Reply("seen", b"picture"))
    agent = server.agent()
    view = await agent.step(
        ClickAction(point=Point(x=1, y=2)), {"type": "type", "text": "a", "ref": None}
    )
    assert (view.text, view.image) == ("seen", b"picture")
    assert server.calls == [
        (
            "step",
            {
                "actions": [
                    {
                        "type": "click",
                        "button": "left",
                        "point": {"x": 1, "y": 2},
                    },
                    {"type": "type", "text": "a"},
                ],
                "session": "s1",
            },
        )
    ]
    assert (agent.text, agent.steps) == ("seen", 1)


async def test_looking_is_a_step_without_actions() -> None:
    """It returns the text and changes nothing."""
    server = Server(Reply("seen"))
    assert await server.agent().look() == "seen"
    assert server.calls == [("step", {"actions": [], "session": "s1"})]


@each_of(
    ("method", "args", "kwargs", "action"),
    [
        ("click", ("#a",), {}, {"type": "click", "selector": "#a"}),
        ("click", (), {"ref": "e1"}, {"type": "click", "ref": "e1"}),
        ("click", (), {"x": 1, "y": 2}, {"type": "click", "x": 1, "y": 2}),
        ("type", ("hi",), {}, {"type": "type", "text": "hi", "enter_after": False}),
        (
            "type",
            ("hi", "#q"),
            {"enter": True},
            {"type": "type", "text": "hi", "enter_after": True, "selector": "#q"},
        ),
        ("press", ("ctrl", "a"), {}, {"type": "press", "keys": ["ctrl", "a"]}),
        (
            "custom",
            ("goto",),
            {"url": "/x"},
            {"type": "custom", "action": "goto", "args": {"url": "/x"}},
        ),
    ],
)
async def test_a_short_form_is_one_action(
    method: str, args: tuple[Any, ...], kwargs: dict[str, Any], action: dict[str, Any]
) -> None:
    """Each method of the handle sends exactly the action that it names."""
    server = Server()
    await getattr(server.agent(), method)(*args, **kwargs)
    assert server.calls == [("step", {"actions": [action], "session": "s1"})]


async def test_act_screenshot_and_tools_are_calls_of_their_own() -> None:
    """They return text, a picture, and text."""
    server = Server(Reply("after"), Reply(image=b"picture"), Reply("3"))
    agent = server.agent()
    assert await agent.act({"type": "wait", "time": 1}) == "after"
    assert await agent.screenshot() == b"picture"
    assert await agent.tool("add", a=1, b=2) == "3"
    assert server.calls == [
        ("act", {"type": "wait", "time": 1, "session": "s1"}),
        ("screenshot", {"session": "s1"}),
        ("add", {"a": 1, "b": 2, "session": "s1"}),
    ]
    assert agent.steps == 1


@each_of(
    "call",
    [
        lambda a: a.step({"type": "wait", "time": 1}),
        lambda a: a.act({"type": "wait", "time": 1}),
        lambda a: a.screenshot(),
        lambda a: a.tool("add"),
        lambda a: a.respond("x"),
    ],
)
async def test_a_refusal_is_raised_with_its_text(call: Any) -> None:
    """A script does not go on as if it had been done, and the last text stays."""
    agent = Server(Reply("no: try again", is_error=True)).agent()
    with pytest.raises(ActionFailed, match="no: try again"):
        await call(agent)
    assert (agent.text, agent.steps, agent.answered) == ("", 0, False)


async def test_a_ref_is_found_by_its_line() -> None:
    """By part of the line, and by which of several it is."""
    agent = Server(Reply(TEXT)).agent()
    await agent.look()
    assert agent.ref('button "Add to cart"') == "e3"
    assert agent.ref('button "Add to cart"', nth=1) == "e7"
    assert agent.ref("Add to list") == "e9"
    for wanted, nth in (("Shop", 0), ("Buy", 0), ("Add to list", 1)):
        with pytest.raises(ActionFailed, match=f"no element with '{wanted}' and a ref"):
            agent.ref(wanted, nth=nth)


@each_of(
    ("answer", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (5, "5"),
        (1.5, "1.5"),
        (True, "true"),
        (None, "null"),
        ({"a": [1]}, '{"a":[1]}'),
    ],
)
async def test_an_answer_is_text_or_json(answer: Any, text: str) -> None:
    """Text goes as it is, and everything else as JSON."""
    server = Server(Reply("Graded."))
    agent = server.agent()
    assert await agent.respond(answer) == "Graded."
    assert server.calls == [("response", {"answer": text, "session": "s1"})]
    assert agent.answered


def test_an_answer_that_is_neither_is_refused() -> None:
    """The error says what an answer is."""
    with pytest.raises(HudMcpError, match="An answer must be text or JSON"):
        answer_text(object())


ENV = Environment("e")


@ENV.template()
async def spell(word: str, loud: bool = False) -> Any:  # noqa: FBT001, FBT002  # a template's argument
    """Ask for a word."""
    answer = yield word
    yield float(answer == word and not loud)


@ENV.template()
async def unsolved() -> Any:
    """Ask for what nobody knows."""
    yield "?"
    yield 0


@spell.oracle
async def solve_spelling(agent: Agent, word: str) -> str:
    """Spell the word."""
    return word if word != "self" else await agent.respond("by itself")


async def test_the_nop_answers_nothing() -> None:
    """What it gets, a task gives away."""
    server = Server()
    await NopAgent().solve(server.agent(), spell("a"))
    assert server.calls == [("response", {"answer": "", "session": "s1"})]


async def test_the_oracle_submits_what_the_solution_returns() -> None:
    """With the arguments that the solution asks for."""
    server = Server()
    await OracleAgent([ENV]).solve(server.agent(), spell("abc", loud=True))
    assert server.calls == [("response", {"answer": "abc", "session": "s1"})]


async def test_a_solution_that_submitted_is_not_submitted_again() -> None:
    """An answer is given once."""
    server = Server()
    await OracleAgent([ENV]).solve(server.agent(), spell("self"))
    assert server.calls == [("response", {"answer": "by itself", "session": "s1"})]


async def test_a_template_without_an_oracle_is_named_with_its_line() -> None:
    """Its author is told how to declare one."""
    with pytest.raises(InvalidTask, match="has no oracle; declare one with @unsolved") as got:
        await OracleAgent([ENV]).solve(Server().agent(), unsolved())
    assert str(got.value).startswith(f"{unsolved.where}: ")
