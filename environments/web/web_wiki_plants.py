"""What is odd in the wiki, so that somebody has to look into it or put it right."""

from dataclasses import dataclass
from typing import Literal

import web_wiki_names as names
from web_wiki_prose import Article
from web_wiki_region import Person, Region
from web_wiki_story import Story

__all__ = ["COLUMNS", "Plants", "plant"]

COLUMNS = ("Opened", "Length (m)", "Height (m)")
"""The columns of the list of bridges that are partly empty."""


@dataclass(frozen=True)
class Change:
    """That somebody gave something another height."""

    editor: str
    before: int


@dataclass(frozen=True)
class Merge:
    """Two articles on one building: what `drop` alone has goes to `keep`."""

    keep: str
    drop: str
    other: str
    section: str
    redirect: str


@dataclass(frozen=True)
class Plants:
    """What there is to look into or to put right.

    Attributes:
        heights: Who changed the height of the first building first, and who last.
        mended: How vandalised articles should read, by title: first the plain case.
        moved: The old and the new title of an article, and a redirect to the old one.
        merge: The two articles that should be one.
        broken: A redirect that leads nowhere, and the article that was meant.
        loop: Two redirects that lead to each other, and the article that was meant.
        bridges: The list of bridges as it should be.
        born: The category of people of a town, and who belongs there.
        surveys: Of a river and a hill: the title, and the figure of the newest survey.
        asked: The talk page with a question, who asks, and the year that is the answer.
        watched: What is on the watchlist.
    """

    heights: dict[Literal["first", "last"], Change]
    mended: dict[str, str]
    moved: tuple[str, str, str]
    merge: Merge
    broken: tuple[str, str]
    loop: tuple[str, str, str]
    bridges: tuple[str, str]
    born: tuple[str, tuple[Person, ...]]
    surveys: dict[Literal["river", "hill"], tuple[str, str]]
    asked: tuple[str, str, int]
    watched: tuple[str, ...]


def plant(region: Region, articles: dict[str, Article], story: Story) -> Plants:
    """Tell of all that is odd; articles that this changes say so from then on."""
    _name_twice(region, story)
    born = _categorise(region, articles, story)
    buildings = region.buildings
    first, second = buildings[1].name, buildings[2].name
    return Plants(
        heights=_change_heights(articles[buildings[0].name], story),
        mended={
            first: _vandalise(articles[first], story),
            second: _vandalise_twice(articles[second], story),
        },
        moved=_await_move(region, story),
        merge=_write_twice(region, articles, story),
        broken=_break_redirect(region, story),
        loop=_loop(region, story),
        bridges=_list_bridges(region, story),
        born=born,
        surveys={
            "river": _survey(articles[region.rivers[4].name], "length", "km", story),
            "hill": _survey(articles[region.hills[4].name], "height", "m", story),
        },
        asked=_ask(region, story),
        watched=(
            buildings[6].name,
            f"The {region.name}",
            region.bridges_over(region.rivers[0])[0].name,
            region.bridges_over(region.rivers[1])[0].name,
        ),
    )


def _name_twice(region: Region, story: Story) -> None:
    """Tell namesakes apart: two towns, and two people."""
    one, other = region.towns[:2]
    twins = [person for person in region.people if person.title != person.name]
    tail = "[[Category:Disambiguation pages]]"
    lines = [f"* [[{t.title}]], on the [[{t.river.name}]]" for t in (one, other)]
    text = "\n".join([f"'''{one.name}''' is the name of two towns:", *lines, "", tail])
    story.add(one.name, text, "Tell the two towns apart")
    lines = [f"* [[{p.title}]], born in {p.born}" for p in reversed(twins)]
    name = twins[0].name
    text = "\n".join([f"'''{name}''' is the name of two people:", *lines, "", tail])
    story.add(name, text, "Tell the two apart")


def _change_heights(article: Article, story: Story) -> dict[Literal["first", "last"], Change]:
    """Five edits, of which two change the height; no summary says which."""
    final = int(article.facts["height"].removesuffix(" m"))
    middle, early = final + story.draw.randint(2, 6), final - story.draw.randint(3, 8)
    editors = story.editors(5)
    year = article.facts["completed"]
    article.facts |= {"height": f"{early} m", "completed": str(int(year) - 2)}
    story.add(article.title, article.text(sections=0), "Begin the article", editors[0])
    story.add(article.title, article.text(), "Write on architecture and use", editors[4])
    article.facts["height"] = f"{middle} m"
    story.add(article.title, article.text(), "Update the infobox", editors[1])
    article.facts["completed"] = year
    story.add(article.title, article.text(), "Update the infobox", editors[2])
    article.facts["height"] = f"{final} m"
    story.add(article.title, article.text(), "Update the infobox", editors[3])
    article.sections["Architecture"].append("A stair of oak leads to the height of the roof.")
    story.add(article.title, article.text(), "Add the stair and its height", editors[0])
    return {"first": Change(editors[1], early), "last": Change(editors[3], middle)}


def _vandalise(article: Article, story: Story) -> str:
    """Nonsense in two places, and a good edit elsewhere after it."""
    vandal = story.draw.choice(names.VANDALS)
    good = article.text()
    story.add(article.title, article.text(sections=1), "Begin the article")
    story.add(article.title, good, "Write on use")
    year = article.facts["completed"]
    wrong = str(int(year) - story.draw.randint(60, 90))
    bad = good.replace(f"| completed = {year}", f"| completed = {wrong}")
    bad = bad.replace("The building is by", "The building smells of cheese and is by")
    story.add(article.title, bad, "fixed some stuff", vandal, late=True)
    use = article.sections["Use"][0]
    better = f"{use} Concerts are held in it on the first Sunday of a month."
    story.add(article.title, bad.replace(use, better), "Mention the concerts", late=True)
    return good.replace(use, better)


def _vandalise_twice(article: Article, story: Story) -> str:
    """Nonsense, a good edit of the same paragraph after it, and then a wrong figure."""
    vandal = story.draw.choice(names.VANDALS)
    good = article.text()
    story.add(article.title, article.text(sections=1), "Begin the article")
    story.add(article.title, good, "Write on use")
    architecture = article.sections["Architecture"][0]
    silly = architecture.replace("The building is by", "The building was drawn on a napkin by")
    silly = silly.replace("Its walls are of", "Its walls are of biscuits and")
    added = "The doors were cast at a foundry nearby."
    bad = good.replace(architecture, silly)
    story.add(article.title, bad, "lol", vandal, late=True)
    bad = bad.replace(silly, f"{silly} {added}")
    story.add(article.title, bad, "Add the doors", late=True)
    height = article.facts["height"]
    tall = f"{int(height.removesuffix(' m')) + story.draw.randint(11, 29)} m"
    bad = bad.replace(f"| height = {height}", f"| height = {tall}")
    story.add(article.title, bad, "Update", vandal, late=True)
    use = article.sections["Use"][0]
    better = f"{use} Its cellar keeps the papers of the town."
    story.add(article.title, bad.replace(use, better), "Mention the cellar", late=True)
    return good.replace(architecture, f"{architecture} {added}").replace(use, better)


def _await_move(region: Region, story: Story) -> tuple[str, str, str]:
    mill = region.buildings[3]
    short = f"Mill of {mill.town.name}"
    story.add(short, f"#REDIRECT [[{mill.name}]]", "Another name")
    return mill.name, f"{mill.town.name} Mill Museum", short


def _write_twice(region: Region, articles: dict[str, Article], story: Story) -> Merge:
    """Write a second article on a library; the other town of that name has its own."""
    library, other = region.buildings[4:6]
    name = library.town.name
    drop = f"Public Library of {name}"
    books = story.draw.randint(31, 97) * 100
    paragraph = f"The reading room opened with {books:,} books, all of them given by one sailor."
    copy = Article(
        drop,
        "building",
        {**articles[library.name].facts, "name": drop},
        f"The '''Public Library of {name}''' is a library in {library.town.link}, on the "
        f"[[{library.town.river.name}]].",
        {"Reading room": [paragraph]},
        ["Buildings"],
    )
    story.add(drop, copy.text(sections=0), "Begin the article")
    story.add(drop, copy.text(), "Write on the reading room")
    redirect = f"{name} Lending Library"
    story.add(redirect, f"#REDIRECT [[{drop}]]", "Another name")
    return Merge(library.name, drop, other.name, f"== Reading room ==\n{paragraph}", redirect)


def _break_redirect(region: Region, story: Story) -> tuple[str, str]:
    bridge = region.bridges[8]
    redirect = f"{bridge.town.river.name.removeprefix('River ')} Crossing"
    gone = f"{bridge.name.removesuffix(' Bridge')} Viaduct"
    story.add(redirect, f"#REDIRECT [[{bridge.name}]]", "Another name of this bridge")
    story.add(redirect, f"#REDIRECT [[{gone}]]", "The article will be renamed soon")
    return redirect, bridge.name


def _loop(region: Region, story: Story) -> tuple[str, str, str]:
    granary = region.buildings[11]
    one, other = f"{granary.town.name} Corn Store", f"Corn Store of {granary.town.name}"
    story.add(one, f"#REDIRECT [[{granary.name}]]", "Another name")
    story.add(other, f"#REDIRECT [[{one}]]", "The same, in another order")
    story.add(one, f"#REDIRECT [[{other}]]", "Use the better order", late=True)
    return one, other, granary.name


def _list_bridges(region: Region, story: Story) -> tuple[str, str]:
    """A table of all bridges; five cells in four rows are not known yet."""
    title = f"Bridges of the {region.name}"
    order = sorted(region.bridges, key=lambda bridge: bridge.name)
    unknown = story.draw.sample(range(len(order)), 4)
    holes = {(row, story.draw.randrange(3)) for row in unknown}
    holes.add((unknown[0], (next(c for r, c in holes if r == unknown[0]) + 1) % 3))
    head = f"! Bridge !! Town !! {' !! '.join(COLUMNS)}"
    full, partial = [head], [head]
    for place, bridge in enumerate(order):
        cells = [str(bridge.opened), str(bridge.length), str(bridge.height)]
        start = f"| [[{bridge.name}]] || {bridge.town.link}"
        shown = ["?" if (place, column) in holes else cell for column, cell in enumerate(cells)]
        full += ["|-", " || ".join([start, *cells])]
        partial += ["|-", " || ".join([start, *shown])]
    lead = f"These are the bridges of the [[The {region.name}|{region.name}]], by name."
    texts = [
        "\n".join([lead, "", "{|", *rows, "|}", "", "[[Category:Lists]]"])
        for rows in (full, partial)
    ]
    story.add(title, texts[1], "Begin a list; what I do not know has a question mark")
    return title, texts[0]


def _categorise(
    region: Region, articles: dict[str, Article], story: Story
) -> tuple[str, tuple[Person, ...]]:
    """A category that lacks three of those who belong there, and has one who does not."""
    town = region.towns[3]
    category = f"People born in {town.name}"
    born = [person for person in region.people if person.home == town]
    strangers = [p for p in region.people if p.grave == town and p.home != town]
    for person in (story.draw.choice(born), story.draw.choice(strangers)):
        articles[person.title].categories.append(category)
    return category, tuple(born)


def _survey(article: Article, field: str, unit: str, story: Story) -> tuple[str, str]:
    """A newer figure with its source, and one without any; the infobox has neither."""
    story.add(article.title, article.text(sections=0), "Begin the article")
    story.add(article.title, article.text(), "Write on the survey, and more")
    old = int(article.facts[field].split()[0].replace(",", ""))
    step = story.draw.choice((-1, 1)) * story.draw.randint(3, 9)
    paragraphs = next(iter(article.sections.values()))
    year = story.draw.randint(2028, 2030)
    paragraphs.append(
        f"The survey of {year} corrected this to {old + step:,} {unit}."
        f"<ref>Land and Water Survey, {year}</ref>"
    )
    story.add(article.title, article.text(), f"Add the survey of {year}")
    claim = old + step + 2 * (step // abs(step)) * story.draw.randint(2, 5)
    paragraphs.append(f"On the radio it was said in 2031 that it is {claim:,} {unit}.")
    story.add(article.title, article.text(), "Add what I heard", late=True)
    return article.title, f"{old + step:,} {unit}"


def _ask(region: Region, story: Story) -> tuple[str, str, int]:
    bridge = region.bridges[5]
    title = f"Talk:{bridge.name}"
    (editor,) = story.editors(1)
    text = (
        "== Who drew it? ==\nThe article names the engineer. In which year did this person die?\n\n"
        f"— {editor}, 2031-05-09"
    )
    story.add(title, text, "Who drew it?", editor, late=True)
    return title, editor, bridge.designer.died
