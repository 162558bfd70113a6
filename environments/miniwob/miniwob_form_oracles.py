"""How pages are solved on which fields are to be filled."""

import calendar
import re

from miniwob_steps import asked, by_text, quoted, solves, submit
from PIL import ImageColor

from hud_mcp import Agent


@solves("choose-list")
async def choose_from_list(agent: Agent) -> None:
    """Choose an entry of the list."""
    name = re.fullmatch(r"Select (.+) from the list and click Submit\.?", agent.prompt)[1]
    await agent.custom("select_option", selector="#options", values=[name])
    await agent.click("#area button")


@solves("enter-text", "enter-text-dynamic")
async def enter_text(agent: Agent) -> None:
    """Type what is quoted."""
    await agent.type(quoted(agent)[0], "#tt")
    await submit(agent)


@solves("enter-password")
async def enter_password(agent: Agent) -> None:
    """Type the password twice."""
    for field in ("#password", "#verify"):
        await agent.type(quoted(agent)[0], field)
    await submit(agent)


@solves("login-user")
async def log_in(agent: Agent) -> None:
    """Type the name and the password."""
    for text, field in zip(quoted(agent), ("#username", "#password"), strict=True):
        await agent.type(text, field)
    await submit(agent)


@solves("focus-text", "focus-text-2")
async def focus_text(agent: Agent) -> None:
    """Click into a field; the first, where no number says which."""
    number = re.findall(r"(\d)(?:st|nd|rd)", agent.prompt) or ["1"]
    await agent.click(f"#area input >> nth={int(number[0]) - 1}")


@solves("enter-text-2")
async def enter_in_case(agent: Agent) -> None:
    """Type what is quoted in capitals, or without any."""
    text = quoted(agent)[0]
    await agent.type(text.upper() if "upper case" in agent.prompt else text.lower(), "#tt")
    await submit(agent)


@solves("enter-date")
async def enter_date(agent: Agent) -> None:
    """Type a date into a field for dates."""
    month, day, year = asked(agent, r"(\d+)/(\d+)/(\d+)")
    await agent.type(f"{year}-{month}-{day}", "#tt")
    await submit(agent)


@solves("enter-time")
async def enter_time(agent: Agent) -> None:
    """Type a time into a field for times."""
    hour, minute, half = asked(agent, r"(\d+):(\d+)\s(AM|PM)")
    full = int(hour) % 12 + (12 if half == "PM" else 0)
    await agent.type(f"{full:02}:{minute}", "#tt")
    await submit(agent)


@solves("login-user-popup")
async def log_in_past_popup(agent: Agent) -> None:
    """Type the name and the password, and close what pops up."""
    for text, field in zip(quoted(agent), ("#username", "#password"), strict=True):
        await agent.click(field)
        if "Exit to home page" in agent.text:
            await agent.click("#popup-cancel")
        await agent.type(text, field)
    await submit(agent)


@solves("find-word")
async def find_word(agent: Agent) -> None:
    """Count the words of a paragraph."""
    (number,) = asked(agent, r"(\d+)(?:st|nd|rd|th) word")
    await agent.look()
    text = re.findall(r"^ *(.+)\n *textbox \[", agent.text, re.MULTILINE)[0]
    await agent.type(re.sub(r"[^a-zA-Z]", "", text.split()[int(number) - 1]), "#answer-input")
    await submit(agent)


@solves("simple-arithmetic")
async def do_arithmetic(agent: Agent) -> None:
    """Work out a sum, a difference or a product."""
    await agent.look()
    first, sign, second = re.findall(r"(\d+) ([-+x]) (\d+) =", agent.text)[0]
    a, b = int(first), int(second)
    await agent.type(str({"+": a + b, "-": a - b, "x": a * b}[sign]), "#math-answer")
    await submit(agent)


@solves("simple-algebra")
async def solve_equation(agent: Agent) -> None:
    """Solve an equation for x."""
    await agent.look()
    first, sign, second, total = re.findall(r"(x|\d+) ([-+]) (x|\d+) = (\d+)", agent.text)[0]
    if first != "x" and sign == "-":
        x = int(first) - int(total)
    else:
        known = int(second if first == "x" else first)
        x = int(total) + (known if sign == "-" else -known)
    await agent.type(str(x), "#math-answer")
    await submit(agent)


@solves("text-transform")
async def read_letters(agent: Agent) -> None:
    """Type the letters of a twisted picture, as a screen reader has them."""
    await agent.look()
    letters = re.findall(r"^ *(\S)$", agent.text, re.MULTILINE)
    await agent.type("".join(letters), "#tt")
    await submit(agent)


@solves("copy-paste", "copy-paste-2")
async def copy_and_paste(agent: Agent) -> None:
    """Copy all of a text, and paste it."""
    number = re.findall(r"(\d)(?:st|nd|rd)", agent.prompt) or ["1"]
    await agent.click(f"#area textarea >> nth={int(number[0]) - 1}")
    for keys in (("ctrl", "a"), ("ctrl", "c")):
        await agent.press(*keys)
    await agent.click("#answer-input")
    await agent.press("ctrl", "v")
    await submit(agent)


@solves("highlight-text", "highlight-text-2")
async def highlight(agent: Agent) -> None:
    """Select a paragraph with three clicks."""
    number = re.findall(r"(\d)(?:st|nd|rd)", agent.prompt)
    target = f"#randomText p >> nth={int(number[0]) - 1}" if number else "#randomText"
    await agent.click(target, pattern=[40, 40])
    await submit(agent)


@solves("scroll-text")
async def find_last_word(agent: Agent) -> None:
    """Type the last word of a long text."""
    await agent.look()
    text = re.findall(r"textbox \[[^]]*\]: (.+)", agent.text)[0]
    await agent.type(re.sub(r"[^a-zA-Z0-9]", "", text.split()[-1]), "#answer-input")
    await submit(agent)


@solves("scroll-text-2")
async def scroll_text(agent: Agent) -> None:
    """Scroll a text to one of its ends."""
    down = "bottom" in agent.prompt
    turn = {"type": "scroll", "selector": "#text-area", "scroll_y": 5000 if down else -5000}
    await agent.step(turn)
    await submit(agent)


@solves("read-table", "read-table-2")
async def read_table(agent: Agent) -> None:
    """Type values that stand in a table."""
    await agent.look()
    values = dict(re.findall(r"^ *\| (.+?) \| (.+)$", agent.text, re.MULTILINE))
    if names := re.findall(r"value of (.+) into", agent.prompt):
        await agent.type(values[names[0]], "#tt")
    else:
        labels = re.findall(r"^ *([A-Z][\w ]+):\n *textbox", agent.text, re.MULTILINE)
        for field, name in zip(("#tt1", "#tt2"), labels, strict=True):
            await agent.type(values[name], field)
    await submit(agent)


@solves("use-spinner")
async def use_spinner(agent: Agent) -> None:
    """Type a number into a spinner."""
    (number,) = asked(agent, r"Select (-?\d+)")
    await agent.look()
    while (shown := int(re.findall(r"spinbutton .*: (-?\d+)", agent.text)[0])) != int(number):
        await agent.click(f".ui-spinner-{'up' if shown < int(number) else 'down'}")
    await submit(agent)


async def slide(agent: Agent, slider: str, value: int, shown: int) -> None:
    """Bring a slider to a value with keys, from the value that it shows."""
    await agent.click(f"{slider} .ui-slider-handle")
    key = "ArrowRight" if value > shown else "ArrowLeft"
    presses = [{"type": "press", "keys": [key]}] * abs(value - shown)
    for start in range(0, len(presses), 40):
        await agent.step(*presses[start : start + 40])


async def slider_values(agent: Agent) -> list[int]:
    """What the sliders show, from top to bottom."""
    await agent.look()
    return [int(n) for n in re.findall(r"^ *(-?\d+)$", agent.text, re.MULTILINE)]


@solves("use-slider")
async def use_slider(agent: Agent) -> None:
    """Bring a slider to a value."""
    (value,) = asked(agent, r"Select (-?\d+)")
    await slide(agent, "#slider", int(value), (await slider_values(agent))[0])
    await submit(agent)


@solves("use-slider-2")
async def use_sliders(agent: Agent) -> None:
    """Bring three sliders to their values."""
    wanted = [int(n) for n in re.findall(r"\d+", agent.prompt)]
    shown = await slider_values(agent)
    for number, value in enumerate(wanted, 1):
        await slide(agent, f"#slider-{number}", value, shown[number - 1])
    await submit(agent)


@solves("form-sequence")
async def slide_and_tick(agent: Agent) -> None:
    """Bring a slider to a value, and tick one box."""
    value, box = asked(agent, r"Select (-?\d+) with the slider, click the (\d)")
    await slide(agent, "#slider", int(value), (await slider_values(agent))[0])
    await agent.click(f"#checkbox-{box}")
    await submit(agent)


@solves("form-sequence-2")
async def pick_and_type(agent: Agent) -> None:
    """Pick a button by its place, and type a number."""
    radio, field = asked(agent, r"(\d)\w\w radio button .+ (\d)\w\w textbox")
    await agent.click(f'input[type=radio][value="{radio}"]')
    await agent.type(quoted(agent)[0], f"#input-{field}")
    await submit(agent)


@solves("form-sequence-3")
async def choose_and_press(agent: Agent) -> None:
    """Choose an entry of a list that a script draws, and press a button."""
    (entry,) = asked(agent, r"Choose (.+) from the dropdown")
    await agent.click(".selectric .button")
    await agent.click(by_text(".selectric-items li", entry))
    await agent.click(by_text("#buttons button", quoted(agent)[0]))


@solves("multi-layouts", "multi-orderings")
async def search_movie(agent: Agent) -> None:
    """Fill three fields, wherever they are and whatever they are called."""
    genre, director, year = asked(agent, r"Search for (.+) movies directed by (.+) from year (\d+)")
    await agent.look()
    shown = agent.text.split("from year", 1)[1]
    parts = re.findall(r"(Genre|Director|Year|Released|textbox)", shown)
    labels = [part for part in parts if part != "textbox"]
    values = {"Genre": genre, "Director": director, "Year": year, "Released": year}
    for place, label in enumerate(labels[:3] if len(labels) == 3 else labels[-3:]):  # noqa: PLR2004
        await agent.type(values[label], f"#area input >> nth={place}")
    await agent.click("#area :is(button, .final, .ui-submit, .submit, input[type=button]) >> nth=0")


@solves("guess-number")
async def guess_number(agent: Agent) -> None:
    """Halve what the number can be, until it is found."""
    low, high = 0, 9
    while low <= high:
        guess = (low + high) // 2
        await agent.type(str(guess), "#tt")
        await submit(agent)
        if "higher than" in agent.text:
            low = guess + 1
        elif "lower than" in agent.text:
            high = guess - 1
        else:
            return


@solves("terminal")
async def delete_file(agent: Agent) -> None:
    """List the files, and delete one of the kind."""
    await agent.click("#terminal")
    await agent.type("ls", enter=True)
    kind = re.findall(r"extension (\.\S+)", agent.prompt)
    names = re.findall(r"^ *(.+)\n *user\$", agent.text, re.MULTILINE)[-1].split()
    fits = [n for n in names if (n.endswith(kind[0]) if kind else "." not in n)]
    await agent.type(f"rm {fits[0]}", enter=True)


@solves("use-autocomplete", "use-autocomplete-nodelay")
async def complete(agent: Agent) -> None:
    """Type how an item begins, and choose one that ends as asked."""
    start, *end = quoted(agent)
    await agent.type(start, "#tags")
    for _ in range(20):
        found = re.findall(r"^ *- (?:\[[^]]*\] )?(.+)$", agent.text, re.MULTILINE)
        fits = [n for n in found if n.startswith(start) and n.endswith(end[0] if end else "")]
        if fits:
            break
        await agent.step({"type": "wait", "time": 200})
    await agent.click(by_text(".ui-menu-item > div", fits[0]))
    if not re.search(rf"textbox .*: {re.escape(fits[0])}$", agent.text, re.MULTILINE):
        # The menu takes the item that it has in focus, which the pointer need not have changed.
        await agent.press("ctrl", "a")
        await agent.type(fits[0])
        await agent.press("esc")
    await submit(agent)


@solves("choose-date", "choose-date-easy", "choose-date-medium", "choose-date-nodelay")
async def choose_date(agent: Agent) -> None:
    """Turn the calendar back to the month, and click the day."""
    month, day, year = (int(each) for each in asked(agent, r"(\d+)/(\d+)/(\d+)"))
    await agent.click("#datepicker")
    name = f"{calendar.month_name[month]} {year}"
    while name not in agent.text:
        await agent.click(".ui-datepicker-prev")
    await agent.click(by_text(".ui-datepicker-calendar a", str(day)))
    await submit(agent)


async def open_email(agent: Agent, sender: str) -> None:
    """Open the e-mail of a sender."""
    await agent.click(f".email-thread:has({by_text('.email-sender', sender).partition(' >>')[0]})")


@solves(
    "email-inbox",
    "email-inbox-delete",
    "email-inbox-forward",
    "email-inbox-important",
    "email-inbox-noscroll",
    "email-inbox-reply",
    "email-inbox-star-reply",
)
async def work_on_email(agent: Agent) -> None:
    """Find an e-mail by who sent it, and reply, forward, delete or mark it."""
    (sender,) = asked(agent, r"email by (.+?) and ")
    row = f'.email-thread:has(.email-sender:text-is("{sender}"))'
    if "trash" in agent.prompt or "star" in agent.prompt:
        kind = "trash" if "trash" in agent.prompt else "star"
        await agent.click(f"{row} >> .{kind}")
        return
    await agent.click(f"{row} >> .email-sender")
    if "forward" in agent.prompt:
        (name,) = asked(agent, r"forward that email to (.+)\.$")
        await agent.click(".email-forward")
        await agent.type(name, ".forward-sender")
        await agent.click("#send-forward")
    else:
        await agent.click(".email-reply")
        await agent.type(quoted(agent)[0], "#reply-text")
        await agent.click("#send-reply")


@solves("use-colorwheel", "use-colorwheel-2")
async def enter_color(agent: Agent) -> None:
    """Type the six digits of a colour."""
    (name,) = asked(agent, r"Select (?:the following color )?(\S+) with")
    red, green, blue = ImageColor.getrgb(name)[:3]
    await agent.type(f"{red:02x}{green:02x}{blue:02x}", "#col")
    await submit(agent)


@solves("book-flight", "book-flight-nodelay")
async def book_flight(agent: Agent) -> None:
    """Choose two airports and a day, search, and book the best."""
    best, start, end = asked(agent, r"the (\w+) one-way flight from: (.+) to: (.+) on ")
    for field, name in (("#flight-from", start), ("#flight-to", end)):
        await agent.type(name, field)
        await agent.step({"type": "wait", "time": 600})
        item = f".ui-menu-item > div:visible >> text={name} >> nth=0"
        await agent.click(item)
    month, day, year = (int(each) for each in asked(agent, r"(\d+)/(\d+)/(\d+)"))
    await agent.click("#datepicker")
    while f"{calendar.month_name[month]} {year}" not in agent.text:
        await agent.click(".ui-datepicker-prev")
    await agent.click(by_text(".ui-datepicker-calendar a", str(day)))
    await agent.click("#search")
    await agent.look()
    prices = [int(each) for each in re.findall(r"Book flight for \$(\d+)", agent.text)]
    durations = [int(h) * 60 + int(m) for h, m in re.findall(r"(\d+)h (\d+)m", agent.text)]
    values = prices if best == "cheapest" else durations
    await agent.click(f".flight-price >> nth={values.index(min(values))}")
