"""The articles about the region, in the wiki's markup."""

from dataclasses import dataclass, field
from random import Random

from web_wiki_region import Bridge, Building, Event, Hill, Person, Region, River, Town, link

__all__ = ["Article", "write_articles"]

_CATEGORY = {
    "engineer": "Engineers",
    "architect": "Architects",
    "painter": "Painters",
    "botanist": "Botanists",
}
_USES = (
    "It has been open to visitors since {year}, and schools come in the spring.",
    "Since {year} it has been looked after by a society of volunteers.",
    "It was closed for repairs in {year}, and was opened again the year after.",
    "A plate of brass beside the door has told of its builders since {year}.",
)
_TRAFFIC = (
    "Carts paid a toll of two pence until {year}.",
    "A tramway ran across it until {year}.",
    "The parapets were raised in {year}, after a gale.",
    "It has been lit by lamps since {year}.",
)
_WORKS = {
    "engineer": "{he} began with canals, and was known for drawing every rivet.",
    "architect": "{he} trained with a mason, and built for towns rather than for lords.",
    "painter": "{he} painted rivers in winter, mostly from a boat.",
    "botanist": "{he} described the mosses of the hills, and kept a garden for the poor.",
}


@dataclass
class Article:
    """An article in its parts.

    Attributes:
        title: What it is called.
        kind: The infobox's kind.
        facts: The infobox's lines.
        lead: The paragraph in front of the sections.
        sections: Each section's paragraphs by its heading.
        categories: The categories, without their prefix.
    """

    title: str
    kind: str
    facts: dict[str, str]
    lead: str
    sections: dict[str, list[str]] = field(default_factory=dict)
    categories: list[str] = field(default_factory=list)

    def text(self, *, sections: int | None = None) -> str:
        """The source, with so many of its sections, or with all."""
        lines: list[str] = []
        if self.facts:
            box = [f"| {name} = {value}" for name, value in self.facts.items()]
            lines += [f"{{{{Infobox {self.kind}", *box, "}}"]
        lines += [self.lead, ""]
        for heading, paragraphs in list(self.sections.items())[:sections]:
            lines += [f"== {heading} =="]
            for paragraph in paragraphs:
                lines += [paragraph, ""]
        return "\n".join([*lines, *(f"[[Category:{name}]]" for name in self.categories)])


def write_articles(region: Region) -> dict[str, Article]:
    """One article on each thing of a region, by title."""
    draw = Random(f"wiki/prose/{region.seed}")  # noqa: S311  # content, and no secret
    written = [
        _write_region(region),
        *(_write_hill(hill, region, draw) for hill in region.hills),
        *(_write_river(river, region, draw) for river in region.rivers),
        *(_write_town(town, region, draw) for town in region.towns),
        *(_write_person(person, region) for person in region.people),
        *(_write_bridge(bridge, region, draw) for bridge in region.bridges),
        *(_write_building(building, draw) for building in region.buildings),
        *(_write_event(event) for event in region.events),
    ]
    return {article.title: article for article in written}


def _write_region(region: Region) -> Article:
    rivers = _list([link(r.name, r.name) for r in region.rivers])
    return Article(
        f"The {region.name}",
        "region",
        {"name": f"The {region.name}", "rivers": f"{len(region.rivers)}", "coast": region.sea},
        f"The '''{region.name}''' is a region of hills and river towns on {region.sea}.",
        {
            "Rivers": [f"Its rivers are {rivers}."],
            "Hills": [f"The hills are {_list([f'[[{h.name}]]' for h in region.hills])}."],
            "Towns": [f"The towns are {_list([t.link for t in region.towns[2:]])}.",
                      f"Two more towns are both called [[{region.towns[0].name}]]."],
        },
        ["Region"],
    )  # fmt: skip


def _write_hill(hill: Hill, region: Region, draw: Random) -> Article:
    river = next(r for r in region.rivers if r.source == hill)
    surveyed = draw.randint(1984, 2009)
    return Article(
        hill.name,
        "hill",
        {"name": hill.name, "height": f"{hill.height:,} m", "first climb": str(hill.climbed)},
        f"'''{hill.name}''' is a hill in the [[The {region.name}|{region.name}]].",
        {
            "Survey": [
                (
                    f"The survey of {surveyed} gave it {hill.height:,} m."
                    f"<ref>Hill Survey, {surveyed}</ref>"
                )
            ],
            "Water": [f"The [[{river.name}]] rises on its slopes, from a spring under a rowan."],
            "Climbs": [f"The first climb on record is of {hill.climbed}, by two shepherds."],
        },
        ["Hills"],
    )


def _write_river(river: River, region: Region, draw: Random) -> Article:
    mouth = river.mouth if river.mouth == region.sea else f"the [[{river.mouth}]]"
    surveyed = draw.randint(1984, 2009)
    towns = _list([town.link for town in region.towns_on(river)])
    return Article(
        river.name,
        "river",
        {
            "name": river.name,
            "length": f"{river.length} km",
            "source": f"[[{river.source.name}]]",
            "mouth": mouth.removeprefix("the "),
        },
        f"The '''{river.name}''' is a river of the [[The {region.name}|{region.name}]]. It rises "
        f"on [[{river.source.name}]] and flows into {mouth}.",
        {
            "Length": [
                (
                    f"The survey of {surveyed} measured {river.length} km."
                    f"<ref>Waters Office, report of {surveyed}</ref>"
                )
            ],
            "Towns": [f"It passes {towns}."],
            "Wildlife": [
                (
                    f"{draw.choice(('Otters', 'Herons', 'Kingfishers'))} came back to it in "
                    f"{draw.randint(1996, 2019)}."
                )
            ],
        },
        ["Rivers"],
    )


def _write_town(town: Town, region: Region, draw: Random) -> Article:
    bridges = [b for b in region.bridges if b.town == town]
    sights = [f"the [[{b.name}]]" for b in region.buildings if b.town == town]
    sights += [f"the [[{b.name}]]" for b in bridges]
    floods = [e for e in region.events if e.bridge.town == town]
    history = [f"The town had its charter in {town.founded}. It lived on {town.trade} for long."]
    if floods:
        history.append(f"The [[{floods[0].name}]] filled its cellars, and took its wooden bridge.")
    return Article(
        town.title,
        "town",
        {
            "name": town.name,
            "river": f"[[{town.river.name}]]",
            "founded": str(town.founded),
            "population": f"{town.population:,} (2028)",
        },
        f"'''{town.name}''' is a town on the [[{town.river.name}]], known for its {town.trade} "
        "trade.",
        {
            "History": history,
            "Sights": [f"Visitors come for {_list(sights)}." if sights else
                       "Visitors come for the walk along the water."],
            "Market": [f"The market is on {draw.choice(('Tuesday', 'Thursday', 'Saturday'))}."],
        },
        ["Towns"],
    )  # fmt: skip


def _write_person(person: Person, region: Region) -> Article:
    he = "She" if person.name.split()[0][-1] in "aeh" else "He"
    built = [f"[[{b.name}]] ({b.opened})" for b in region.bridges if b.designer == person]
    built += [f"[[{b.name}]] ({b.completed})" for b in region.buildings if b.architect == person]
    sections = {
        "Life": [
            (
                f"{he} was born in {person.home.link} in {person.born}, and died in "
                f"{person.grave.link} in {person.died}."
            )
        ],
        "Work": [_WORKS[person.role].format(he=he)],
    }
    if built:
        sections["Work"].append(f"Among the works are {_list(built)}.")
    return Article(
        person.title,
        "person",
        {
            "name": person.name,
            "born": f"{person.born}, {person.home.link}",
            "died": f"{person.died}, {person.grave.link}",
            "trade": person.role,
        },
        f"'''{person.name}''' ({person.born} to {person.died}) was {_a(person.role)} of the "
        f"[[The {region.name}|{region.name}]].",
        sections,
        [_CATEGORY[person.role]],
    )


def _write_bridge(bridge: Bridge, region: Region, draw: Random) -> Article:
    floods = [event for event in region.events if event.bridge == bridge]
    before = (
        f"It replaced a bridge of wood that was lost in the [[{floods[0].name}]]."
        if floods
        else "Before it, a ferry crossed from the same steps."
    )
    year = bridge.opened + draw.randint(20, 60)
    return Article(
        bridge.name,
        "bridge",
        {
            "name": bridge.name,
            "crosses": f"[[{bridge.town.river.name}]]",
            "town": bridge.town.link,
            "designer": bridge.designer.link,
            "opened": str(bridge.opened),
            "length": f"{bridge.length} m",
            "height": f"{bridge.height} m",
        },
        f"'''{bridge.name}''' is {_a(bridge.material)} bridge over the "
        f"[[{bridge.town.river.name}]] in {bridge.town.link}.",
        {
            "Construction": [before, f"The drawings are by {bridge.designer.link}."],
            "Traffic": [draw.choice(_TRAFFIC).format(year=year)],
        },
        ["Bridges"],
    )


def _write_building(building: Building, draw: Random) -> Article:
    year = building.completed + draw.randint(30, 80)
    return Article(
        building.name,
        "building",
        {
            "name": building.name,
            "type": building.kind,
            "town": building.town.link,
            "architect": building.architect.link,
            "completed": str(building.completed),
            "height": f"{building.height} m",
        },
        f"'''{building.name}''' is {_a(building.kind)} in {building.town.link}. It was completed "
        f"in {building.completed}.",
        {
            "Architecture": [
                (
                    f"The building is by {building.architect.link}. Its walls are of "
                    f"{draw.choice(('sandstone', 'flint', 'red brick', 'limestone'))}, under a "
                    f"roof of {draw.choice(('slate', 'copper', 'tiles', 'lead'))}."
                )
            ],
            "Use": [draw.choice(_USES).format(year=year)],
        },
        ["Buildings"],
    )


def _write_event(event: Event) -> Article:
    town = event.bridge.town
    return Article(
        event.name,
        "event",
        {"name": event.name, "year": str(event.year), "town": town.link},
        f"The '''{event.name}''' was a flood of the [[{town.river.name}]].",
        {
            "Course": [
                f"The water rose for three nights. {event.houses} houses of {town.link} were wet.",
                f"The wooden bridge of {town.link} was carried away whole, and was seen at sea.",
            ],
            "Aftermath": [
                "Every house on the quays has a mark of brass at the height of the flood."
            ],
        },
        ["Floods"],
    )


def _list(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
