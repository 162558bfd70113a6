"""An environment declares; what cannot work is refused where it is written."""

import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import pytest
from tables import each_of

from hud_mcp.agents.agent import Agent
from hud_mcp.agents.baselines import OracleAgent
from hud_mcp.environment import REWARD_POLICIES, Environment
from hud_mcp.environment.spec import EmptyWorld
from hud_mcp.errors import InvalidContext, InvalidEnvironment, InvalidTask, InvalidTemplate
from hud_mcp.loading.source import load_environments
from hud_mcp.sandbox import SandboxLimits
from hud_mcp.values.action import Action, ActionEffect
from hud_mcp.values.capability import Capability
from hud_mcp.values.context import Context, ContextFeature, ContextSpace
from hud_mcp.values.observation import Look, Observation
from hud_mcp.world import Opening, World, WorldSpec
from hud_mcp.worlds.browser import Browser

pytestmark = pytest.mark.anyio

Steps = AsyncGenerator[Any, Any]


class Room:
    """A world of another kind, with a feature of its own."""

    async def act(self, action: Action) -> ActionEffect:
        """Do nothing."""
        return ActionEffect()

    async def observe(self, look: Look) -> Observation:
        """See nothing."""
        return Observation()

    async def close(self) -> None:
        """Leave."""


class Rooms(WorldSpec):
    """Its declaration."""

    name = "room"
    world_type = Room
    actions = frozenset({"wait", "custom"})
    has_screen = False
    replayable = True
    context_space = ContextSpace([ContextFeature(name="light", default=1.0, lower=0)])

    async def open(self, opening: Opening) -> Room:
        """Open one."""
        return Room()


async def ask(word: str) -> Steps:
    """Ask for a word."""
    answer = yield word
    yield float(answer == word)


def line_of(function: Callable[..., Any]) -> str:
    """The place of a function, as an error begins."""
    return f"{__file__}:{function.__code__.co_firstlineno}: "


@each_of("name", ["a", "Shop", "shop-2_b", "2shop", "my shop", "org/shop.v1", "läden", "x" * 64])
def test_a_line_of_text_names_an_environment(name: str) -> None:
    """As with HUD: its rows and clients know the environment by that name."""
    assert Environment(name).name == name


@each_of("name", ["", " ", "shop ", "a\nb", "a\0b", "x" * 65])
def test_what_is_no_line_of_text_is_refused_with_its_line(name: str) -> None:
    """The text names this file, and what is allowed."""
    with pytest.raises(InvalidEnvironment, match="cannot name an environment; give a line") as got:
        Environment(name)
    assert str(got.value).startswith(f"{__file__}:")


def test_keywords_of_version_5_are_ignored_with_a_warning() -> None:
    """Where the environment is made; what was never a keyword is an error."""
    with pytest.warns(
        DeprecationWarning, match="ignores conflict_resolution, instructions: HUD's"
    ) as said:
        env = Environment("old", instructions="Be brief.", conflict_resolution="prefix")
    assert env.name == "old"
    assert said[0].filename == __file__
    with pytest.raises(TypeError, match="unexpected keyword argument 'instruction'"):
        Environment("old", instruction="Be brief.")


def test_tasks_are_the_templates_by_their_name_in_hud() -> None:
    """Each mints tasks when it is called."""
    env = Environment("shop")
    env.template()(ask)
    assert env.tasks is env.templates
    assert env.tasks["ask"](word="a").args == {"word": "a"}


def test_a_simulator_is_declared_as_a_world() -> None:
    """`env.gym` says what to write in its place."""
    with pytest.raises(InvalidEnvironment, match=r"world=Gymnasium\('CartPole-v1'\)\)"):
        Environment("cart").gym("CartPole-v1", name="robot")


@each_of("policy", [None, *REWARD_POLICIES])
def test_a_known_reward_policy_is_taken(policy: str | None) -> None:
    """None leaves it to the server."""
    env = Environment(reward=policy)
    assert env.reward == policy
    assert env.template(reward=policy)(ask).reward == policy


def test_an_unknown_reward_policy_is_refused_with_its_line() -> None:
    """For an environment and for a template alike."""
    with pytest.raises(InvalidEnvironment, match=r"reward='never' is not .* hidden, on_submit"):
        Environment(reward="never")
    with pytest.raises(InvalidEnvironment, match="reward='never' is not a reward policy") as got:
        Environment().template(reward="never")(ask)
    assert str(got.value).startswith(line_of(ask))


def test_what_declares_no_world_is_refused_with_its_line() -> None:
    """A class in the place of its instance, above all."""
    with pytest.raises(InvalidEnvironment, match=r"\.py:\d+: world=Browser is a class; write"):
        Environment("shop", world=Browser)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidEnvironment, match=r"\.py:\d+: 'browser' is not a world; give what"):
        Environment("shop", world="browser")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidEnvironment, match=r"\.py:\d+: None cannot name an environment"):
        Environment(None)  # pyright: ignore[reportArgumentType]


def test_an_environment_knows_the_file_that_declares_it() -> None:
    """Relative paths start there."""
    env = Environment("here")
    assert env.file == Path(__file__)
    assert env.folder == Path(__file__).parent


def test_an_environment_s_digest_covers_all_that_it_is_made_of(tmp_path: Path) -> None:
    """Its file, what that imports from beside it, and its site; not what lies there besides."""
    own = "from hud_mcp import Browser, Environment\nfrom kit.words import WORD\n"
    own += "env = Environment('made', world=Browser(site='site'))\n"
    files = {
        "env.py": own,
        "kit/__init__.py": "",
        "kit/words.py": "from . import more\nWORD = more.WORD\n",
        "kit/more.py": "WORD = 'a'\n",
        "site/index.html": "<p>hello</p>",
        "other.py": "",
    }

    def digest(**changes: str) -> str:
        folder = tmp_path / uuid4().hex
        for name, text in {**files, **changes}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        try:
            return load_environments([str(folder / "env.py")])[0].digest
        finally:
            sys.path.remove(str(folder))
            for name in ("kit", "kit.words", "kit.more"):
                sys.modules.pop(name, None)

    first = digest()
    assert digest() == first, "wherever it lies"
    assert digest(**{"other.py": "x = 1\n"}) == first
    for name, text in files.items():
        if name != "other.py":
            assert digest(**{name: text + "\n"}) != first, name


def test_a_digest_is_of_what_was_loaded(tmp_path: Path) -> None:
    """A file that is edited while it is served is not what is run."""
    path = tmp_path / "env.py"
    path.write_text("from hud_mcp import Environment\nenv = Environment('edited')\n")
    (env,) = load_environments([str(path)])
    sys.path.remove(str(tmp_path))
    before = env.digest
    path.write_text("x = 1\n")
    assert env.digest == before


def test_templates_are_found_by_id() -> None:
    """An unknown id gets the closest one, and the list."""
    env = Environment("shop")
    made = env.template()(ask)
    assert env.templates == {"ask": made}
    assert env.find_template("ask") is made
    with pytest.raises(InvalidTask, match=r"'shop' has no template 'aks'. Did you mean 'ask'\? It"):
        env.find_template("aks")


def test_an_id_that_is_taken_is_refused_with_both_lines() -> None:
    """The text says where the other one is."""
    env = Environment()
    env.template(id="a")(ask)

    async def other() -> Steps:
        yield "x"
        yield 1

    with pytest.raises(InvalidTemplate, match="the id 'a' is taken by the template at") as caught:
        env.template(id="a")(other)
    assert str(caught.value).startswith(line_of(other))
    assert line_of(ask)[:-2] in str(caught.value)


def test_a_function_that_hides_another_is_refused() -> None:
    """Two functions of one name in a file are a mistake, whatever ids they were given."""
    env = Environment()
    env.template(id="a")(ask)
    with pytest.raises(InvalidTemplate, match="the second hides the first, so rename one"):
        env.template(id="b")(ask)


def test_functions_named_underscore_hide_nothing() -> None:
    """An author who gives ids need not invent names."""
    env = Environment()

    async def _(word: str) -> Steps:
        yield word
        yield 1

    env.template(id="a")(_)
    env.template(id="b")(_)
    assert list(env.templates) == ["a", "b"]


def test_a_failed_declaration_leaves_nothing_behind() -> None:
    """The environment is as it was before the mistake."""
    env = Environment()

    async def once() -> Steps:
        yield "x"

    with pytest.raises(InvalidTemplate):
        env.template()(once)
    assert env.templates == {}


def test_asking_for_a_world_of_another_kind_is_refused_with_the_line() -> None:
    """For templates and tools; any world does where `World` is asked for."""
    env = Environment("rooms", world=Rooms())

    async def wrong(world: EmptyWorld) -> Steps:
        yield world
        yield 1

    async def peek(world: EmptyWorld) -> None: ...

    async def right(world: Room, same: World) -> Steps:
        yield (world, same)
        yield 1

    said = "asks for EmptyWorld in 'world', but environment 'rooms' opens a world of another"
    with pytest.raises(InvalidTemplate, match=said) as caught:
        env.template()(wrong)
    assert str(caught.value).startswith(line_of(wrong))
    with pytest.raises(InvalidTemplate, match=said) as caught:
        env.tool(peek)
    assert str(caught.value).startswith(line_of(peek))
    assert env.tools == {}
    assert env.template()(right).id == "right"


def test_a_tool_is_registered_with_and_without_options() -> None:
    """Both forms of the decorator return the function, so that it can be called and tested."""
    env = Environment()

    @env.tool
    async def one() -> None: ...

    @env.tool(name="second", read_only=True)
    async def two() -> None: ...

    assert list(env.tools) == ["one", "second"]
    assert env.tools["second"].read_only
    assert env.tools["second"].function is two


def test_a_tool_s_name_is_taken_once() -> None:
    """The text says where the other one is."""
    env = Environment()

    async def one() -> None: ...

    env.tool(one)
    with pytest.raises(InvalidEnvironment, match="tool 'one' is declared already, at") as caught:
        env.tool(one)
    assert str(caught.value).startswith(line_of(one))


async def test_hooks_run_once_in_order_and_end_in_reverse() -> None:
    """Starting twice starts once, and stopping twice stops once."""
    env, ran = Environment(), list[str]()

    def hook(name: str) -> Callable[[], Any]:
        async def run() -> None:
            ran.append(name)

        return run

    for name in ("a", "b"):
        env.initialize(hook(f"+{name}"))
        env.shutdown(hook(f"-{name}"))
    await env.stop()
    await env.start()
    await env.start()
    await env.stop()
    await env.stop()
    assert ran == ["+a", "+b", "-b", "-a"]


async def test_a_start_that_failed_begins_again_with_the_first_hook() -> None:
    """A service that came up late is waited for by the next session."""
    env, ran = Environment(), list[str]()

    @env.initialize
    async def first() -> None:
        ran.append("first")

    @env.initialize
    async def second() -> None:
        ran.append("second")
        if len(ran) < 3:
            raise OSError("not up yet")

    with pytest.raises(OSError, match="not up yet"):
        await env.start()
    await env.start()
    assert ran == ["first", "second", "first", "second"]


def test_a_capability_is_published_under_its_name_and_replaced_by_it() -> None:
    """A hook may publish what a declaration only announced."""
    old = Capability(name="shell", protocol="ssh/2", url="ssh://a:1")
    new = Capability(name="shell", protocol="ssh/2", url="ssh://b:2")
    env = Environment(capabilities=[old])
    env.add_capability(new)
    assert env.capabilities == [new]
    assert env.capability("shell") is new
    with pytest.raises(InvalidEnvironment, match="cannot publish 'ssh://a:1'; give a Capability"):
        env.add_capability("ssh://a:1")  # pyright: ignore[reportArgumentType]


def test_published_capabilities_are_a_list_that_may_be_changed() -> None:
    """As HUD's is; what is not there is named with what is."""
    tools = Capability.mcp(name="tools", url="http://127.0.0.1:8040/mcp")
    env = Environment("calc")
    env.capabilities.append(tools)
    assert env.capability("tools") is tools
    with pytest.raises(KeyError, match=r"publishes no 'tool'. Did you mean 'tools'") as missing:
        env.capability("tool")
    assert str(missing.value) == (
        "Environment 'calc' publishes no 'tool'. Did you mean 'tools'? It publishes: tools."
    )
    env.capabilities = []
    assert env.manifest()["capabilities"] == []


def test_a_context_is_completed_and_reaches_the_world_without_the_environment_s_own() -> None:
    """Features of the environment are the template's business, those of the world the world's."""
    own = ContextSpace([ContextFeature(name="season", default="winter")])
    env = Environment(world=Rooms(), contexts=own)
    assert env.context_space.default == {"light": 1.0, "season": "winter"}
    assert env.split_context({"season": "summer"}) == {"light": 1.0}
    with pytest.raises(InvalidContext, match=r"no feature 'lihgt'. Did you mean 'light'"):
        env.split_context({"lihgt": 2})


def test_the_manifest_says_what_an_agent_may_know_and_no_more() -> None:
    """It has templates, tools and features, and neither oracles nor addresses."""
    env = Environment(
        "shop",
        version="1.2",
        world=Rooms(),
        capabilities=[Capability(name="shell", protocol="ssh/2", url="ssh://secret:pw@h:1")],
    )
    made = env.template(returns=int)(ask)

    @made.oracle
    async def solve(agent: Any, word: str) -> str:
        return word

    @env.tool
    async def peek() -> None: ...

    manifest = env.manifest()
    assert (manifest["name"], manifest["version"], manifest["world"]) == ("shop", "1.2", "room")
    assert manifest["actions"] == ["custom", "wait"]
    assert manifest["tools"] == ["peek"]
    assert manifest["templates"] == [
        {
            "id": "ask",
            "description": "Ask for a word.",
            "args": made.arguments.schema,
            "returns": {"type": "integer"},
        }
    ]
    assert [f["name"] for f in manifest["contexts"]] == ["light"]
    assert manifest["capabilities"] == [{"name": "shell", "protocol": "ssh/2"}]
    assert "secret" not in str(manifest)
    assert solve.__name__ not in str(manifest)


def test_a_workspace_makes_the_world_a_shell_with_its_tools() -> None:
    """Declaring one touches nothing: the folder need not be there yet."""
    env = Environment()

    shell = env.workspace("/not/there", name="box", limits=SandboxLimits(processes=8))

    assert env.world is shell
    assert env.workspace_name == "box"
    assert set(env.tools) == {"run_command", "read_file", "write_file", "edit_file"}
    assert env.manifest()["actions"] == ["custom", "wait"]


def test_a_workspace_beside_another_world_is_refused() -> None:
    """A session has one world."""
    with pytest.raises(InvalidEnvironment, match="has a world already, 'room'"):
        Environment(world=Rooms()).workspace()


CLIMATE = ContextSpace([ContextFeature(name="season", default="winter", choices=("winter", "may"))])


async def weather(room: Room, where: Context, city: str = "Oslo") -> Steps:
    """Ask for the weather."""
    where["seen"] = True
    answer = yield f"{city} in {where['season']}, light {where['light']:g}"
    yield float(answer == where["season"])


async def test_a_template_reads_the_context_by_a_parameter_annotated_with_it() -> None:
    """It has every feature, the world's too, and is no argument; a copy is handed out."""
    env = Environment("sky", world=Rooms(), contexts=CLIMATE)
    made = env.template()(weather)
    assert made.arguments.names == ("city",)
    assert list(made.arguments.schema["properties"]) == ["city"]
    context = env.context_space.fill({"season": "may"})
    generator = made.run({}, Room(), context)
    assert await anext(generator) == "Oslo in may, light 1"
    assert await generator.asend("may") == 1.0
    assert context == {"light": 1.0, "season": "may"}
    with pytest.raises(InvalidTask, match=r"takes its context as 'where', but got none"):
        made.run({}, Room())
    with pytest.raises(InvalidTask, match="there is no argument 'where'"):
        made.run({"where": {}}, Room(), context)


async def test_an_oracle_asks_for_the_context_by_the_template_s_name_for_it() -> None:
    """Its solution may depend on it, as the grade does."""
    env = Environment("sky", world=Rooms(), contexts=CLIMATE)
    made = env.template()(weather)

    @made.oracle
    async def solve(agent: Agent, where: Context, city: str) -> str:
        return f"{city} {where['season']}"

    answers: list[str] = []

    class Reply:
        text, image, is_error, meta = "", None, False, MappingProxyType[str, Any]({})

    async def call(_name: str, arguments: dict[str, Any]) -> Reply:
        answers.append(arguments["answer"])
        return Reply()

    task = made(city="Rome").model_copy(update={"context": {"season": "may"}})
    agent = Agent(call, session="s", prompt="")
    await OracleAgent([env]).solve(agent, task)
    assert answers == ["Rome may"]


def test_a_tool_cannot_ask_for_the_context() -> None:
    """It is refused where it is declared, and not at its first call."""
    env = Environment("sky", contexts=CLIMATE)

    async def tell(where: Context) -> str:
        return str(where)

    with pytest.raises(InvalidEnvironment, match="'tell' takes the context as 'where', but"):
        env.tool(tell)


def test_a_mapping_that_an_author_spells_out_is_an_argument() -> None:
    """Only `hud_mcp.Context` itself is the context."""

    async def price(prices: dict[str, bool | int | float | str]) -> Steps:
        yield prices
        yield 1

    assert Environment("shop").template()(price).arguments.names == ("prices",)
