"""How pages are solved on which something is to be dragged or drawn."""

import re

from miniwob_steps import asked, drag, place_of, solves, submit

from hud_mcp import Agent

COLORS = {
    "red": "#e60000",
    "orange": "#ff9900",
    "yellow": "#ffff00",
    "green": "#008a00",
    "blue": "#0066cc",
    "purple": "#9933ff",
}
STYLES = {"bold": "bold", "italics": "italic", "underlined": "underline"}
WAYS = {"up": (0, -30), "down": (0, 30), "left": (-30, 0), "right": (30, 0)}
GRID_WIDTH = 3


@solves("drag-box")
async def drag_box(agent: Agent) -> None:
    """Drag the small box into the large one."""
    await drag(
        agent, await place_of(agent, "#draggableSmall"), await place_of(agent, "#draggableLarge")
    )
    await submit(agent)


@solves("drag-circle", "drag-single-shape")
async def drag_shape(agent: Agent) -> None:
    """Drag the only shape in a direction."""
    (way,) = asked(agent, r"(up|down|left|right) then press")
    x, y = await place_of(agent, "#area svg :is(circle, rect, polygon)")
    by_x, by_y = WAYS[way]
    await drag(agent, (x, y), (x + by_x, y + by_y))
    await submit(agent)


@solves("drag-items", "drag-items-grid")
async def drag_item(agent: Agent) -> None:
    """Drag an item of a list, or of a grid, to where it is wanted."""
    name, where = asked(agent, r"Drag (\S+) (?:to the )?(.+?)\.?$")
    await agent.look()
    names = re.findall(r"^ *- (\S+)$", agent.text, re.MULTILINE)
    wide = GRID_WIDTH if len(names) > 5 else 1  # noqa: PLR2004  # a list has five
    item = names.index(name)
    await sort(agent, item, _place(where, item, len(names), wide))


def _place(where: str, item: int, count: int, wide: int) -> int:
    """The place that words mean, from 0."""
    moved = {"up by one": -wide, "down by one": wide, "left by one": -1, "right by one": 1}
    if where.removesuffix(" position") in moved:
        return item + moved[where.removesuffix(" position")]
    if number := re.match(r"\d+", where):
        return int(number[0]) - 1
    if wide == 1:
        return 0 if where == "top" else count - 1
    row = 0 if "top" in where else 2 if "bottom" in where else 1
    column = 0 if "left" in where else 2 if "right" in where else 1
    return row * wide + column


async def sort(agent: Agent, item: int, to: int) -> None:
    """Drag an item of a list to the place of another, a little beyond its middle first."""
    start = await place_of(agent, f"#sortable > li >> nth={item}")
    x, y = await place_of(agent, f"#sortable > li >> nth={to}")
    beyond = 1 if to > item else -1
    await drag(agent, start, (x + 8 * beyond, y + 4 * beyond), (x, y))


@solves("drag-sort-numbers")
async def sort_numbers(agent: Agent) -> None:
    """Drag numbers to where they belong, one after the other."""
    pattern = re.compile(r"^ *- (-?\d+)$", re.MULTILINE)
    await agent.look()
    for place in range(len(pattern.findall(agent.text))):
        now = [int(n) for n in pattern.findall(await agent.look())]
        item = now.index(min(now[place:]), place)
        if item != place:
            await sort(agent, item, place)
    await submit(agent)


@solves("resize-textarea")
async def resize(agent: Agent) -> None:
    """Drag the corner of a text field."""
    bigger = 1 if "larger" in agent.prompt else -1
    x, y = await place_of(agent, ".ui-resizable-se")
    await drag(agent, (x, y), (x + 20 * bigger, y + 20 * bigger))
    await agent.click("#submit")


@solves("draw-line")
async def draw_line(agent: Agent) -> None:
    """Draw a line through the point."""
    x, y = await place_of(agent, "#area svg circle")
    by_x, by_y = (30, 0) if "horizontal" in agent.prompt else (0, 30)
    await drag(agent, (x - by_x, y - by_y), (x, y), (x + by_x, y + by_y))
    await agent.click("#controls button")


@solves("text-editor")
async def edit_text(agent: Agent) -> None:
    """Select a word or everything, and give it a style or a colour."""
    (style,) = asked(agent, r"the (?:style|color) (\w+)")
    await agent.click(".ql-editor")
    shown = re.findall(r"^ *textbox \[[^]]*\]: (.+)\n *Visit URL:", agent.text, re.MULTILINE)[0]
    if word := re.findall(r"give the text (.+?) the", agent.prompt):
        words = shown.split(" ")
        before = len(" ".join([*words[: words.index(word[0])], ""]))
        await agent.press("ctrl", "home")
        await agent.step(
            *[{"type": "press", "keys": ["right"]}] * before,
            *[{"type": "press", "keys": ["shift", "right"]}] * len(word[0]),
        )
    else:
        await agent.press("ctrl", "a")
    if style in COLORS:
        await agent.click(".ql-color .ql-picker-label")
        await agent.click(f'.ql-color [data-value="{COLORS[style]}"]')
    else:
        await agent.click(f"button.ql-{STYLES[style]}")
    await submit(agent)


HEAT = (("COLD", 50, 75), ("WARM", 13, 39), ("HOT", 6, 12))
"""What is looked for in turn, in steps of how many pixels, and how far from where it was found."""


@solves("hot-cold")
async def find_heat(agent: Agent) -> None:
    """Go over the area with the pointer, where it gets warmer ever closer, and click the spot."""
    spot = await place_of(agent, "#touch-area")
    for heat, step, reach in HEAT:
        spot = await warmer(agent, spot, heat, step, reach)
    await agent.click(x=spot[0], y=spot[1])


async def warmer(
    agent: Agent, spot: tuple[float, float], heat: str, step: int, reach: int
) -> tuple[float, float]:
    """A place around a spot where the page says that it is so warm.

    Raises:
        LookupError: There is none.
    """
    ways = range(-reach, reach + 1, step)
    places = sorted(((x, y) for x in ways for y in ways), key=lambda at: abs(at[0]) + abs(at[1]))
    for by_x, by_y in places:
        place = (spot[0] + by_x, spot[1] + by_y)
        view = await agent.step({"type": "move", "point": {"x": place[0], "y": place[1]}})
        if re.search(rf'(?:^ *|")(?:{WARMER[heat]})(?:$|")', view.text, re.MULTILINE):
            return place
    raise LookupError(f"nothing is {heat} around {spot}")


WARMER = {"COLD": "COLD|WARM|HOT", "WARM": "WARM|HOT", "HOT": "HOT"}
