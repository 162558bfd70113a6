"""Tasks on a memory: a graph of entities, their relations and what was observed of them."""

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Literal

from servers_outcome import WORDS, Seed, draws, graded, read_left

from hud_mcp import Agent, BrokenByAgent, Environment, Grade, ToolServer, ToolServerWorld

__all__ = ["declare"]

SERVER = "@modelcontextprotocol/server-memory@2026.8.31"
FILE = "memory.jsonl"
PEOPLE = ("Ada", "Bruno", "Chloe", "Dmitri", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas")


@dataclass
class Graph:
    """A graph: the type and the observations of each entity, and relations as triples."""

    types: dict[str, str] = field(default_factory=dict)
    seen: dict[str, set[str]] = field(default_factory=dict)
    relations: set[tuple[str, str, str]] = field(default_factory=set)

    def add(self, name: str, kind: str, *seen: str) -> None:
        """Add an entity."""
        self.types[name] = kind
        self.seen[name] = set(seen)

    @property
    def text(self) -> str:
        """The graph as the server keeps it."""
        rows: list[dict[str, object]] = [
            {"type": "entity", "name": n, "entityType": kind, "observations": sorted(self.seen[n])}
            for n, kind in self.types.items()
        ]
        rows += [
            {"type": "relation", "from": a, "to": b, "relationType": kind}
            for a, kind, b in sorted(self.relations)
        ]
        return "\n".join(map(json.dumps, rows))

    @classmethod
    def read(cls, text: str) -> "Graph":
        """Read what an agent left.

        Raises:
            BrokenByAgent: It is no graph, or an entity is there twice.
        """
        made, twice = cls(), False
        try:
            for line in filter(None, text.splitlines()):
                row = json.loads(line)
                if row["type"] == "relation":
                    made.relations.add((row["from"], row["relationType"], row["to"]))
                else:
                    twice = twice or row["name"] in made.types
                    made.add(row["name"], row["entityType"], *row["observations"])
        except (ValueError, KeyError, TypeError) as exc:
            raise BrokenByAgent(f"The memory is no graph: {exc}") from exc
        if twice:
            raise BrokenByAgent("The memory has an entity twice.")
        return made

    def compared(self, wanted: "Graph") -> Grade:
        """Full marks where both are the same."""
        return graded(
            {
                "entities": self.types == wanted.types,
                "observations": self.seen == wanted.seen,
                "relations": self.relations == wanted.relations,
            }
        )


async def ended(server: ToolServerWorld, wanted: Graph) -> Grade:
    """Grade what the agent left."""
    return Graph.read(await read_left(server, FILE)).compared(wanted)


def company(seed: int, level: str) -> tuple[str, Graph, Graph]:
    """A text about a company, the graph before it, and the graph with it."""
    draw = draws(f"company/{level}", seed)
    firm, other = (each.title() for each in draw.sample(WORDS, 2))
    boss, second, third = draw.sample(PEOPLE, 3)
    town = draw.choice(("Porto", "Gdansk", "Turin", "Malmo"))
    year = draw.randint(1990, 2015)
    before, after = Graph(), Graph()
    if level == "known":
        for graph in (before, after):
            graph.add(second, "person", f"joined in {year + 3}")
            graph.add(firm, "company")
            graph.relations.add((second, "works_at", firm))
    after.add(firm, "company", f"founded in {year}")
    after.add(other, "company")
    after.add(boss, "person", f"born in {town}")
    after.add(third, "person")
    after.add(second, "person", f"joined in {year + 3}")
    after.relations |= {
        (boss, "leads", firm), (second, "works_at", firm), (third, "works_at", other),
        (firm, "owns", other), (second, "reports_to", boss),
    }  # fmt: skip
    text = (
        f"{firm} was founded in {year}. {boss}, who was born in {town}, leads it. {second} joined "
        f"{firm} in {year + 3} and reports to {boss}. {firm} owns {other}. {third} turned down an "
        f"offer of {firm}, and works at {other}."
    )
    return text, before, after


async def note_company(
    server: ToolServerWorld, seed: Seed = 0, level: Literal["new", "known"] = "new"
) -> AsyncGenerator[str | Grade]:
    """Ask for a graph of what a text says."""
    text, before, after = company(seed, level)
    await server.shell.write(FILE, before.text)
    yield (
        f"Put what this text says into the memory, which may know a part of it:\n\n{text}\n\n"
        "Entities are of type company or person, by the names in the text. Relations: leads, "
        "works_at, reports_to, owns. Observations: 'founded in YEAR' of a company; 'born in TOWN' "
        "and 'joined in YEAR' of a person. Note nothing else, nothing twice, and no relation that "
        "the text does not state: who leads a company is not said to work at it too."
    )
    yield await ended(server, after)


async def solve_company(agent: Agent, seed: int = 0, level: str = "new") -> str:
    """Read the memory, and add what it lacks."""
    await agent.call("read_graph")
    _, before, after = company(seed, level)
    new = [name for name in after.types if name not in before.types]
    await agent.call(
        "create_entities",
        entities=[
            {"name": n, "entityType": after.types[n], "observations": sorted(after.seen[n])}
            for n in new
        ],
    )
    more = [
        {"entityName": n, "contents": sorted(after.seen[n] - before.seen[n])}
        for n in before.types
        if after.seen[n] - before.seen[n]
    ]
    if more:
        await agent.call("add_observations", observations=more)
    await relate(agent, after.relations - before.relations)
    return "done"


async def relate(agent: Agent, relations: set[tuple[str, str, str]]) -> None:
    """Add relations."""
    rows = [{"from": a, "relationType": kind, "to": b} for a, kind, b in sorted(relations)]
    await agent.call("create_relations", relations=rows)


def doubles(seed: int) -> tuple[Graph, Graph, str, str]:
    """A graph with one person under two names, the graph without that, and the names."""
    draw = draws("doubles", seed)
    first, boss, namesake = draw.sample(PEOPLE, 3)
    firm, project = (each.title() for each in draw.sample(WORDS, 2))
    old, kept = f"{first[0]}. Moreau", f"{first} Moreau"
    mail = f"{first.lower()}@example.com"
    before, after = Graph(), Graph()
    for graph, name in ((before, old), (after, kept)):
        graph.add(kept, "person", f"mail: {mail}")
        graph.add(name, "person", f"mail: {mail}", "speaks Czech")
        graph.add(boss, "person")
        # Alike, and another person.
        graph.add(f"{namesake} Moreau", "person", f"mail: {namesake.lower()}@example.com")
        graph.add(firm, "company")
        graph.add(project, "project")
        graph.relations |= {
            (kept, "works_at", firm), (name, "works_at", firm), (name, "works_on", project),
            (boss, "manages", name), (f"{namesake} Moreau", "works_on", project),
        }  # fmt: skip
    return before, after, old, kept


async def join_doubles(server: ToolServerWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for one entity in place of two."""
    before, after, old, kept = doubles(seed)
    await server.shell.write(FILE, before.text)
    yield (
        f"The memory has one person twice, as {old!r} and as {kept!r}: both have the same mail "
        f"address. Join them under {kept!r}: that entity gets every observation and every relation "
        f"of both, each once, and {old!r} is gone. Change nothing of anybody else."
    )
    yield await ended(server, after)


async def solve_doubles(agent: Agent, seed: int = 0) -> str:
    """Look at both, move what one has, and delete it."""
    before, after, old, kept = doubles(seed)
    await agent.call("search_nodes", query="Moreau")
    await agent.call("open_nodes", names=[old, kept])
    more = sorted(after.seen[kept] - before.seen[kept])
    await agent.call("add_observations", observations=[{"entityName": kept, "contents": more}])
    await relate(agent, after.relations - before.relations)
    await agent.call("delete_entities", entityNames=[old])
    return "done"


def moves(seed: int) -> tuple[Graph, Graph, str]:
    """A graph with old news, the graph after a message, and the message."""
    draw = draws("moves", seed)
    a, b, c, d = draw.sample(PEOPLE, 4)
    firm, other = (each.title() for each in draw.sample(WORDS, 2))
    before, after = Graph(), Graph()
    for graph in (before, after):
        for person in (a, b, c, d):
            graph.add(person, "person", f"phone {draw.randint(100, 999)}", "likes tea")
        graph.add(firm, "company", "office in Oslo")
        graph.add(other, "company", "office in Oslo")
    after.seen = {name: set(seen) for name, seen in before.seen.items()}
    before.relations = {
        (a, "works_at", firm), (b, "works_at", firm), (c, "works_at", firm), (d, "works_at", other),
        (b, "reports_to", a), (c, "reports_to", a),
    }  # fmt: skip
    after.relations = {
        (a, "works_at", other), (b, "works_at", firm), (c, "works_at", firm),
        (d, "works_at", other), (c, "reports_to", b),
    }  # fmt: skip
    after.seen[firm] = {"office in Lyon"}
    text = (
        f"{a} has left {firm} for {other}. {b} has taken over, so {c} now reports to {b}, and {b} "
        f"to nobody. {firm} has moved its office to Lyon; {other} stays."
    )
    return before, after, text


async def take_news(server: ToolServerWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for a memory that is true again."""
    before, after, text = moves(seed)
    await server.shell.write(FILE, before.text)
    yield (
        f"There is news:\n\n{text}\n\nMake the memory true again, in the words that it uses: "
        "remove what no longer holds, and add what holds now. Nothing is kept as history, and "
        "everything else stays."
    )
    yield await ended(server, after)


async def solve_news(agent: Agent, seed: int = 0) -> str:
    """Read, delete and add."""
    before, after, _ = moves(seed)
    await agent.call("read_graph")
    gone = [
        {"from": a, "relationType": kind, "to": b}
        for a, kind, b in sorted(before.relations - after.relations)
    ]
    await agent.call("delete_relations", relations=gone)
    await relate(agent, after.relations - before.relations)
    changed = [name for name in before.seen if before.seen[name] != after.seen[name]]
    old = [
        {"entityName": n, "observations": sorted(before.seen[n] - after.seen[n])} for n in changed
    ]
    await agent.call("delete_observations", deletions=old)
    new = [{"entityName": n, "contents": sorted(after.seen[n] - before.seen[n])} for n in changed]
    await agent.call("add_observations", observations=new)
    return "done"


def kin(seed: int) -> tuple[Graph, Graph]:
    """A graph of parents, and the same with grandparents."""
    draw = draws("kin", seed)
    names = draw.sample(PEOPLE, 8)
    old, mid, twin, lone = names[0], names[1], names[2], names[3]
    a, b, c, d = names[4:]
    before = Graph()
    for name in names:
        before.add(name, "person", f"born in {draw.randint(1930, 2020)}")
    parents = {(old, mid), (old, twin), (mid, a), (mid, b), (twin, c), (lone, a), (lone, d), (c, d)}
    before.relations = {(p, "parent_of", child) for p, child in parents}
    after = Graph(dict(before.types), dict(before.seen), set(before.relations))
    for p, child in parents:
        for q, grandchild in parents:
            if q == child:
                after.relations.add((p, "grandparent_of", grandchild))
    return before, after


async def note_kin(server: ToolServerWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for relations that follow from others."""
    before, after = kin(seed)
    await server.shell.write(FILE, before.text)
    yield (
        "The memory has the relation parent_of between persons. Add the relation grandparent_of, "
        "from each grandparent to each grandchild, wherever it follows; and nothing else."
    )
    yield await ended(server, after)


async def solve_kin(agent: Agent, seed: int = 0) -> str:
    """Read, add what follows, and look at it."""
    before, after = kin(seed)
    await agent.call("read_graph")
    await relate(agent, after.relations - before.relations)
    await agent.call("search_nodes", query="person")
    return "done"


def declare() -> Environment:
    """Declare the environment and its templates."""
    world = ToolServer([SERVER], env={"MEMORY_FILE_PATH": f"/workspace/{FILE}"})
    env = Environment("servers-memory", version="0.1.0", world=world)
    for template, oracle in (
        (note_company, solve_company),
        (join_doubles, solve_doubles),
        (take_news, solve_news),
        (note_kin, solve_kin),
    ):
        env.template()(template).oracle(oracle)
    return env
