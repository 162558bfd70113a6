"""How pages are solved on which something is to be clicked."""

import re

from miniwob_steps import asked, by_text, place_of, quoted, solves, submit, tick, tries

from hud_mcp import Agent

REACTIONS = {"Like": "like", "Reply": "reply", "Retweet": "retweet", "Share": "share"}
NAMING = frozenset({"Block", "Mute"})
"""What a menu says with the user's name behind it."""


@solves("click-test")
async def click_test(agent: Agent) -> None:
    """Click the only button."""
    await submit(agent)


@solves("click-test-2", "click-test-transfer")
async def click_one(agent: Agent) -> None:
    """Click the button with the name that is asked for."""
    name = re.findall(r"button (?:labeled )?(ONE|TWO)", agent.prompt)[0]
    await agent.click(by_text("button", name))


@solves("click-button", "unicode-test")
async def click_button(agent: Agent) -> None:
    """Click the first button with a name."""
    await agent.click(by_text("#area button", quoted(agent)[0]))


@solves("click-link")
async def click_link(agent: Agent) -> None:
    """Click a word of the text."""
    await agent.click(by_text("#area span", quoted(agent)[0]))


@solves("click-dialog")
async def close_dialog(agent: Agent) -> None:
    """Close the dialog."""
    await agent.click(".ui-dialog-titlebar-close")


@solves("click-dialog-2")
async def press_in_dialog(agent: Agent) -> None:
    """Press one button of the dialog; the cross is called x."""
    name = quoted(agent)[0]
    cross = ".ui-dialog-titlebar-close"
    await agent.click(cross if name == "x" else by_text(".ui-dialog button", name))


@solves("click-checkboxes", "click-checkboxes-large", "click-checkboxes-transfer")
async def tick_boxes(agent: Agent) -> None:
    """Tick the boxes that are named, or none."""
    names = re.fullmatch(r"Select (.+) and click Submit\.?", agent.prompt)[1].split(", ")
    await tick(agent, *(name for name in names if name != "nothing"))
    await submit(agent)


@solves("click-option")
async def pick_option(agent: Agent) -> None:
    """Pick one of several."""
    await tick(agent, re.fullmatch(r"Select (.+) and click Submit\.?", agent.prompt)[1])
    await submit(agent)


@solves("click-tab")
async def show_tab(agent: Agent) -> None:
    """Show a tab by its number."""
    number = re.findall(r"Tab #(\d)", agent.prompt)[0]
    await agent.click(f'a[href="#tabs-{number}"]')


@solves("click-collapsible", "click-collapsible-nodelay")
async def open_section(agent: Agent) -> None:
    """Open the section, and press what it holds."""
    await agent.click("#area h3 >> nth=0")
    await submit(agent)


@solves("click-button-sequence")
async def click_in_turn(agent: Agent) -> None:
    """Click two buttons in their order."""
    await agent.click("#subbtn")
    await agent.click("#subbtn2")


@solves("click-color")
async def click_color(agent: Agent) -> None:
    """Click the box of a colour."""
    (color,) = asked(agent, r"Click on the (\S+) colored box")
    await agent.click(f'#area [data-color="{color}"]')


@solves("click-shades")
async def click_shades(agent: Agent) -> None:
    """Click each shade of a colour, until no other is left."""
    (color,) = asked(agent, r"shades of (\S+) and")
    left = f'#area span[data-color="{color}"]:not(.selected) >> nth=0'
    while await tries(agent, {"type": "click", "selector": left}):
        pass
    await agent.click("#submit")


@solves("click-scroll-list")
async def choose_in_list(agent: Agent) -> None:
    """Choose one or two entries of a list that scrolls."""
    (names,) = asked(agent, r"Select (.+) from the scroll list")
    await agent.custom("select_option", selector="#options", values=names.split(", "))
    await agent.click("#area button")


@solves("click-collapsible-2", "click-collapsible-2-nodelay")
async def find_in_sections(agent: Agent) -> None:
    """Open one section after the other until the link is in it."""
    word = quoted(agent)[0]
    for number in range(3):
        await agent.click(f"#area h3 >> nth={number}")
        panel = f"#area > .ui-accordion-content >> nth={number}"
        link = f"{panel} >> {by_text('.alink', word)}"
        if word in agent.text and await tries(agent, {"type": "click", "selector": link}):
            return


@solves("click-tab-2", "click-tab-2-easy", "click-tab-2-medium", "click-tab-2-hard")
async def find_in_tabs(agent: Agent) -> None:
    """Show one tab after the other until the link is in it."""
    word = quoted(agent)[0] if quoted(agent) else ""
    await agent.look()
    for number in re.findall(r" #tabs-(\d)", agent.text):
        await agent.click(f'a[href="#tabs-{number}"]')
        link = f"#tabs-{number} >> {by_text('.alink', word)}"
        if word in agent.text and await tries(agent, {"type": "click", "selector": link}):
            return


@solves("click-menu")
async def go_through_menu(agent: Agent) -> None:
    """Go from menu to menu, and click the last item."""
    (path,) = asked(agent, r"Select (.+)")
    *parents, leaf = path.split(">")
    for name in parents:
        await agent.step({"type": "move", "selector": by_text("#menu li > div", name)})
    await agent.click(by_text("#menu li > div", leaf))


@solves("click-menu-2")
async def find_in_menu(agent: Agent) -> None:
    """Open the menu, and its second one where the item is in that."""
    name = quoted(agent)[1]
    icon = f"#menu li > div:has(.{name}) >> nth=0"
    item = icon if name.startswith("ui-icon-") else by_text("#menu li > div", name)
    await agent.click("#open-menu")
    if not await tries(agent, {"type": "click", "selector": item}):
        await agent.step({"type": "move", "selector": by_text("#menu > li > div", "Playback")})
        await agent.click(item)


@solves("click-pie", "click-pie-nodelay")
async def click_slice(agent: Agent) -> None:
    """Open the pie, and click a slice."""
    await agent.click("#wheelnav-divWheel-spreadertitle")
    await agent.step({"type": "wait", "time": 1200})
    await agent.click(by_text('svg [id*="-title-"] tspan', quoted(agent)[0]))


@solves("click-widget")
async def click_widget(agent: Agent) -> None:
    """Click the first of a kind of widget."""
    await agent.click(f'[data-type="{quoted(agent)[0]}"] >> nth=0')


@solves("grid-coordinate")
async def click_coordinate(agent: Agent) -> None:
    """Click a point of the grid."""
    await agent.click(f'[id="({",".join(asked(agent, r"[(](-?[0-9]),(-?[0-9])[)]"))})"]')


@solves("buy-ticket")
async def buy_ticket(agent: Agent) -> None:
    """Compare what all tickets cost, or how long they take, and book one."""
    await agent.look()
    prices = [int(each) for each in re.findall(r"Book for \$(\d+)", agent.text)]
    durations = [int(h) * 60 + int(m) for h, m in re.findall(r"(\d+)h (\d+)m", agent.text)]
    values = prices if "cost" in agent.prompt else durations
    best = max(values) if re.search("expensive|longest", agent.prompt) else min(values)
    await agent.click(f".buy-ticket >> nth={values.index(best)}")


@solves("phone-book")
async def find_contact(agent: Agent) -> None:
    """Turn the pages until the name is there, and click what is asked for."""
    name, kind = asked(agent, r"Find (.+) in the contact book and click on their (\w+)")
    await agent.look()
    while not re.search(rf"^ *#+ {name}$", agent.text, re.MULTILINE):
        await agent.click(".page-item.next a")
    await agent.click(f"#contact a.{kind}")


@solves("search-engine")
async def find_result(agent: Agent) -> None:
    """Search, turn to the page of the result, and click it."""
    (number,) = asked(agent, r"click the (\d)")
    page, place = divmod(int(number) - 1, 3)
    await agent.type(quoted(agent)[0], "#search-text")
    await agent.click("#search")
    if page:
        await agent.click(by_text("#pagination a", str(page + 1)))
    await agent.click(f".search-title >> nth={place}")


@solves("navigate-tree")
async def find_in_tree(agent: Agent) -> None:
    """Open folders from top to bottom until the name can be clicked."""
    name = quoted(agent)[0]
    await agent.look()
    for _ in range(40):
        if re.search(rf"^[ -]*(?:\[[^]]*\] )?{re.escape(name)}$", agent.text, re.MULTILINE):
            break
        await agent.click("#tree li.expandable > .hitarea >> visible=true >> nth=0")
    shown = by_text("#tree span", name).replace(">> nth=0", ">> visible=true >> nth=0")
    await agent.click(shown)


@solves("sign-agreement")
async def sign_agreement(agent: Agent) -> None:
    """Cancel, or scroll to the end, sign, and press what is asked for."""
    if (names := quoted(agent)) == []:
        await agent.click("#cancel")
        return
    x, y = await place_of(agent, "#area h2")
    await agent.step({"type": "scroll", "point": {"x": x, "y": y + 50}, "scroll_y": 4000})
    await agent.type(names[0], "#name")
    await agent.click(f"#{names[1].lower()}")


@solves("odd-or-even")
async def mark_numbers(agent: Agent) -> None:
    """Mark each number."""
    await agent.look()
    numbers = re.findall(r"^ *(-?\d+)$", agent.text, re.MULTILINE)
    for place, number in enumerate(numbers):
        await agent.click(f".row >> nth={place} >> .{'odd' if int(number) % 2 else 'even'}")
    await agent.click("#submit")


@solves("generate-number")
async def generate_number(agent: Agent) -> None:
    """Generate numbers until one is as asked."""
    fits = {
        "less than": lambda n, limit: n < limit,
        "greater than": lambda n, limit: n > limit,
        "odd": lambda n, _: n % 2 == 1,
        "even": lambda n, _: n % 2 == 0,
    }
    kind = next(each for each in fits if each in agent.prompt)
    limit = int((re.findall(r"\d+", agent.prompt) or ["0"])[0])
    while True:
        await agent.click("#generate")
        shown = re.findall(r"^ *(\d+)$", agent.text, re.MULTILINE)
        if shown and fits[kind](int(shown[0]), limit):
            break
    await agent.click("#submit")


@solves("social-media")
async def react_to_post(agent: Agent) -> None:
    """Press a button under a user's post, or in the menu that one of them opens."""
    (user,) = asked(agent, r"(@\w+)")
    (label,) = quoted(agent)
    controls = f'.media:has(.username:text-is("{user}")) >> nth=0 >> .controls'
    if label in REACTIONS:
        await press(agent, f"{controls} >> .{REACTIONS[label]}")
    else:
        await press(agent, f"{controls} >> .more")
        said = f"{label} {user}" if label in NAMING else label
        await agent.click(f"{controls} >> {by_text('li', said)}")


@solves("social-media-all", "social-media-some")
async def react_to_posts(agent: Agent) -> None:
    """Press a button under some or all posts of a user."""
    count, user = asked(agent, r"on (all|\d+) posts? by (@\w+)")
    kind = REACTIONS[quoted(agent)[0]]
    await agent.look()
    posts = len(re.findall(rf"{user}(?!\w)", agent.text)) - 1
    for place in range(posts if count == "all" else int(count)):
        post = f'.media:has(.username:text-is("{user}")) >> nth={place}'
        await press(agent, f"{post} >> .{kind}")
    await agent.click(by_text("#area button", "Submit"))


async def press(agent: Agent, selector: str) -> None:
    """Point at a button, which may change under the pointer, and click it."""
    await agent.step(
        {"type": "move", "selector": selector}, {"type": "click", "selector": selector}
    )


@solves("order-food")
async def order_food(agent: Agent) -> None:
    """Add what is named, or as many as are asked for of what is of a kind."""
    await agent.look()
    if counted := re.search(r"Order (\d+) items that are (.+)", agent.prompt):
        item = f'.food-item:has(img[alt="{counted[2].strip(".")}"]) >> nth=0 >> .add'
        for _ in range(int(counted[1])):
            await agent.click(item)
    else:
        for name in asked(agent, r"each item: (.+)")[0].split(", "):
            await agent.click(f'.food-item[data-item="{name}"] >> .add')
    await agent.click("#area button")


@solves("ascending-numbers")
async def click_in_order(agent: Agent) -> None:
    """Click the one, which hides the others, and then the places of the others."""
    await agent.click(by_text("#area svg text", "1"))
    for _ in range(4):
        await agent.click("#area svg rect >> nth=0")


@solves("identify-shape")
async def identify_shape(agent: Agent) -> None:
    """Find out what the figure is, and press the button with its name."""
    for tag, name in (("rect", "rectangle"), ("circle", "circle"), ("polygon", "triangle")):
        if await tries(agent, {"type": "move", "selector": f"#area_svg {tag}"}):
            await agent.click(f'#area-buttons [data-type="{name}"]')
            return
    await agent.look()
    sign = re.findall(r'^ *"?(\w)"?(?: \[[^]]*\])?$', agent.text, re.MULTILINE)[0]
    kind = "digit" if sign.isdigit() else "letter"
    await agent.click(f'#area-buttons [data-type="{kind}"]')


@solves("find-greatest")
async def pick_greatest(agent: Agent) -> None:
    """Turn the card with the greatest number."""
    await agent.look()
    numbers = [int(n) for n in re.findall(r'"(\d+)" \[', agent.text)]
    await agent.click(f"#cardholder > div >> nth={numbers.index(max(numbers))}")
    await agent.click("#submit")
