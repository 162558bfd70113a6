"""A family tree as JSON: half-siblings, adopted children, and names that occur twice."""

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from questions_case import LIST, NAME, NUMBER, Case, differing, drawing

from hud_mcp import Agent

__all__ = ["Ask", "draw", "solve"]

Ask = Literal["cousins", "oldest", "ancestors"]

_GIVEN = (
    "Anna", "Bela", "Clara", "David", "Edda", "Franz", "Gesa", "Henrik", "Ida", "Jonas", "Katja",
    "Lars", "Marta", "Nils", "Olga", "Paul", "Rosa", "Sven", "Tilda", "Viktor", "Wanda", "Yrsa",
)  # fmt: skip
_NOTE = (
    "parents are ids. A child that was adopted has its adoptive parents in parents, and they count "
    "as its parents. died is missing where a person lives."
)


@dataclass(frozen=True)
class _Tree:
    people: dict[str, dict[str, Any]]

    def parents(self, one: str) -> set[str]:
        return set(self.people[one]["parents"])

    def children(self, one: str) -> set[str]:
        return {other for other in self.people if one in self.people[other]["parents"]}

    def siblings(self, one: str, *, full: bool = False) -> set[str]:
        found = {c for parent in self.parents(one) for c in self.children(parent)} - {one}
        return {c for c in found if not full or self.parents(c) == self.parents(one)}

    def cousins(self, one: str, *, full: bool = False) -> set[str]:
        found: set[str] = set()
        for parent in self.parents(one):
            for aunt in self.siblings(parent, full=full):
                found |= self.children(aunt)
        return found - self.siblings(one) - {one}

    def grandchildren(self, one: str) -> set[str]:
        return {grand for child in self.children(one) for grand in self.children(child)}

    def ancestors(self, one: str) -> set[str]:
        found = self.parents(one)
        return found.union(*(self.ancestors(each) for each in found)) if found else found

    def name(self, one: str) -> str:
        return self.people[one]["name"]

    def said(self, one: str) -> str:
        person = self.people[one]
        return f"{person['name']} (id {one}, born {person['born'][:4]})"


def _tree(rng: random.Random) -> _Tree:
    people: dict[str, dict[str, Any]] = {}
    names = iter(rng.sample([f"{g} {f}" for g in _GIVEN for f in ("Holm", "Reyes", "Tauber")], 60))

    def add(year: int, parents: Iterable[str] = (), **more: Any) -> str:
        one = f"p{rng.randint(1000, 9999)}"
        while one in people:
            one = f"p{rng.randint(1000, 9999)}"
        born = f"{year + rng.randint(0, 3)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
        people[one] = {"name": next(names), "born": born, "parents": sorted(parents), **more}
        if year < 1945 or rng.random() < 1 / 7:  # noqa: PLR2004  # the eldest, and some others
            people[one]["died"] = f"{rng.randint(1999, 2024)}-{rng.randint(1, 12):02d}-01"
        return one

    first, husband, second = add(1926), add(1924), add(1931)
    middle = [add(1948 + 3 * n, (first, husband)) for n in range(3)]
    half = add(1961, (second, husband))
    adopted = add(1959, (first, husband), adopted=True)
    for n, parent in enumerate([*middle, half, adopted]):
        partner = add(1950 + 2 * n)
        for m in range(rng.randint(1, 3)):
            child = add(1975 + 4 * m + n, (parent, partner))
            if rng.random() < 2 / 3:
                other = add(1976 + 4 * m)
                for k in range(rng.randint(1, 2)):
                    add(2001 + 3 * k + m, (child, other))
    return _Tree(people)


def _questions(tree: _Tree, ask: Ask) -> Iterable[tuple[str, str, list[str]]]:
    """Everything that can be asked of one kind, with the answer and hasty answers."""
    for one in sorted(tree.people):
        if ask == "cousins" and (every := tree.cousins(one)):
            full = tree.cousins(one, full=True)
            own = {c for c in every if not tree.people[c].get("adopted")}
            wrong = [str(len(each)) for each in (full, tree.siblings(one), every | {one}, own)]
            yield f"How many first cousins has {tree.said(one)}", str(len(every)), wrong
        grand = sorted(tree.grandchildren(one), key=lambda c: (tree.people[c]["born"], c))
        living = [c for c in grand if "died" not in tree.people[c]]
        births = [tree.people[c]["born"] for c in living[:2]]
        if ask == "oldest" and len(set(births)) > 1 and grand[0] != living[0]:
            asked = f"Who is the oldest living grandchild of {tree.said(one)}"
            wrong = [tree.name(each) for each in (grand[0], living[-1], living[1])]
            yield asked, tree.name(living[0]), wrong
        if ask != "ancestors":
            continue
        for other in sorted(tree.people):
            both = tree.ancestors(one) & tree.ancestors(other)
            if one < other and 1 < len(both) <= 3 and not tree.parents(one) & tree.parents(other):  # noqa: PLR2004  # a short list
                asked = f"Which ancestors do {tree.said(one)} and {tree.said(other)} have in common"
                each = sorted(tree.parents(one))
                yield asked, _names(tree, both), [_names(tree, each), *map(tree.name, sorted(both))]


def _names(tree: _Tree, people: Iterable[str]) -> str:
    return ", ".join(sorted(map(tree.name, people)))


def draw(seed: int, ask: Ask) -> Case:
    """Draw a question on a family."""
    rng = drawing(f"family-{ask}", seed)
    found: list[tuple[str, str, list[str]]] = []
    while not found:
        tree = _tree(rng)
        found = [
            each
            for each in _questions(tree, ask)
            if each[1] not in each[2][:1] and len(differing(each[1], each[2])) > 1
        ]
    asked, truth, wrong = rng.choice(found)
    half = "Half-siblings count as siblings. " if ask == "cousins" else ""
    form = {"cousins": NUMBER, "oldest": NAME, "ancestors": LIST}[ask]
    order = sorted(tree.people)
    rng.shuffle(order)
    rows = [{"id": one, **tree.people[one]} for one in order]
    data = json.dumps({"note": _NOTE, "people": rows}, indent=1)
    question = f"family.json describes a family. {half}{asked}? {form}"
    return Case(question, truth, differing(truth, wrong), lambda: {"family.json": data.encode()})


async def solve(agent: Agent, ask: Ask) -> str:
    """Read the file, and follow parents and children."""
    await agent.tool("run_command", command="ls -l")
    load = "import json; d = json.load(open('family.json'));"
    await agent.tool("run_command", command=f"python3 -c \"{load} print(d['note'])\"")
    listed = f"python3 -c \"{load} [print(json.dumps(p)) for p in d['people']]\""
    rows = [
        json.loads(line)
        for part in ("1,30", "31,60", "61,90")
        for line in (
            await agent.tool("run_command", command=f"{listed} | sed -n {part}p")
        ).splitlines()
        if line.startswith("{")
    ]
    tree = _Tree({row["id"]: row for row in rows})
    asked = [one for one in tree.people if f"(id {one}," in agent.prompt]
    if ask == "cousins":
        return str(len(tree.cousins(asked[0])))
    if ask == "oldest":
        living = [c for c in tree.grandchildren(asked[0]) if "died" not in tree.people[c]]
        return tree.name(min(living, key=lambda c: tree.people[c]["born"]))
    return _names(tree, tree.ancestors(asked[0]) & tree.ancestors(asked[1]))
