"""How the shop's tasks are solved: the steps of a person who shops."""

import re

from shop_data import DELIVERY
from site_steps import (
    check,
    choose,
    click_all,
    fill,
    follow,
    heading,
    pick,
    press_button,
    see,
)

from hud_mcp import Agent

__all__ = ["best", "buy", "fill_cart", "price", "spent", "tidy_cart"]


async def price(agent: Agent, product: str, variant: str) -> str:
    """Look the price up on the product's page."""
    await find_product(agent, product)
    await pick(agent, variant)
    await see(agent, "in stock")
    return _amounts(agent.text)[0]


async def best(agent: Agent, category: str, rating: float) -> str:
    """Filter, sort by price, and take the first that is rated well enough."""
    await pick(agent, category)
    await see(agent, heading(category))
    await check(agent, "In stock only")
    await choose(agent, "Sort by", "Price, low to high")
    await see(agent, "Loading", gone=True)
    names = re.findall(r'link "([^"]+)" \[\w+ /shop/product', agent.text)
    ratings = re.findall(r"★ (\d\.\d)", agent.text)
    return next(n for n, r in zip(names, ratings, strict=True) if float(r) >= rating)


async def fill_cart(agent: Agent, product: str, variant: str, quantity: int) -> None:
    """Put a product into the cart, and look at it there."""
    await find_product(agent, product)
    await add(agent, variant, quantity)
    await open_cart(agent)


async def tidy_cart(agent: Agent, remove: str, keep: str, quantity: int) -> str:
    """Remove a line, correct another, redeem the code, and read the total."""
    await agent.look()
    await agent.click(ref=_remove_button(agent.text, remove))
    await see(agent, f"Removed: {remove}")
    held = int(re.search(rf"Quantity: {keep}, [^\n]*?: (\d+)", agent.text)[1])
    word = "One more" if quantity > held else "One less"
    while held != quantity:
        held += 1 if quantity > held else -1
        await agent.click(ref=agent.ref(f"{word}: {keep}"))
        await see(agent, re.compile(rf"Quantity: {keep}, [^\n]*?: {held}$", re.MULTILINE))
    await fill(agent, Voucher_code="SPRING10")
    await press_button(agent, "Apply")
    await see(agent, "Voucher applied.")
    return _amounts(agent.text)[-1]


async def spent(agent: Agent, month: str) -> str:
    """Add up the orders of a month."""
    await follow(agent, "My orders")
    await see(agent, "Delivered")
    totals = re.findall(rf'"AG-\d+ \d+ {month} 2026 \w+ €([\d.]+)"', agent.text)
    return f"{sum(float(t) for t in totals):.2f}"


async def buy(
    agent: Agent,
    product: str,
    variant: str,
    quantity: int,
    delivery: str,
    *,
    gift: bool,
    voucher: bool,
) -> str:
    """Put a product into the cart, check out, and read the order's number."""
    await find_product(agent, product)
    await add(agent, variant, quantity)
    await open_cart(agent)
    if voucher:
        await redeem_best(agent)
    await follow(agent, "Go to checkout")
    await see(agent, 'radio "Standard')
    await fill_address(agent)
    await choose(agent, "Country", "Austria")
    await agent.click(ref=agent.ref(f'radio "{DELIVERY[delivery]["label"]}'))
    if gift:
        await check(agent, "Wrap it as a gift, free of charge")
    await click_all(
        agent,
        radio="Invoice, to be paid within 14 days",
        checkbox="I accept the terms of sale",
        button="Place order",
    )
    await see(agent, "Thank you for your order")
    return re.search(r"Your order number is (AG-\d+)", agent.text)[1]


async def find_product(agent: Agent, name: str) -> None:
    """Search for a product and open its page."""
    box = 'role=searchbox[name="Search products"]'
    await agent.type(name, box, enter=True)
    await see(agent, f"Results for “{name}”")
    await follow(agent, name)
    await see(agent, 'button "Add to cart"')


async def add(agent: Agent, variant: str, quantity: int) -> None:
    """Choose a variant and how many, and add them to the cart."""
    await pick(agent, variant)
    if quantity > 1:
        await fill(agent, Quantity=str(quantity))
    await press_button(agent, "Add to cart")
    await see(agent, "Added to the cart")


async def open_cart(agent: Agent) -> None:
    """Open the cart, and wait until its lines are there."""
    await agent.click("#cart-link")
    await see(agent, "Go to checkout")


async def fill_address(agent: Agent) -> None:
    """Write Nora's address into the checkout."""
    await fill(
        agent,
        Full_name="Nora Lindqvist",
        **{"E-mail": "nora@lindqvist.example"},
        Street_and_number="Mill Lane 7",
        Postcode="1020",
        City="Vienna",
    )


async def redeem_best(agent: Agent) -> None:
    """Read the offers, and try them from the highest percentage on until one is taken."""
    await follow(agent, "Offers")
    offers = re.findall(r"^([A-Z0-9]+)\n(\d+) % on", agent.text, re.MULTILINE)
    await agent.custom("back")
    await see(agent, "Voucher code")
    for code, _ in sorted(offers, key=lambda offer: -int(offer[1])):
        await agent.type(code, 'role=textbox[name="Voucher code"]', enter=True)
        await see(agent, "\nstatus: ")
        if "Voucher applied." in agent.text:
            return


def _remove_button(text: str, product: str) -> str:
    """The ref of the button in the line of the cart that has a product."""
    lines = re.split(r"^ *- ", text, flags=re.MULTILINE)
    line = next(each for each in lines if each.startswith(f'link "{product}"'))
    return re.search(r'button "Remove" \[(\w+)', line)[1]


def _amounts(text: str) -> list[str]:
    return re.findall(r"€(\d+\.\d\d)", text)
