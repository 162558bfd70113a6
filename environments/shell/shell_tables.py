"""Questions on tables: exports as CSV, and a shop's database."""

import random
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from shell_files import File, Files, Seed, draws, fill, need, run
from shell_words import CITIES, LAST_NAMES

from hud_mcp import Agent, Environment, ShellWorld, numeric_match

__all__ = ["Sale", "declare", "sales_case"]

Level = Literal["plain", "quoted", "messy"]
README = """# The exports

- `sales.csv`: fields are separated by commas, and amounts have a decimal point. A field in double
  quotes may have commas in it, amounts too: "1,234.50".
- `sales-west.csv`: fields are separated by semicolons, and amounts have a decimal comma and dots
  between thousands: 1.234,50. Its encoding is ISO 8859-1.
- An amount in parentheses is a refund, and counts as negative: (12.00) is -12.00.
- Several lines may be of one invoice. The number of an invoice is the same in any case of its
  letters: inv-17a is INV-17A. An invoice that is in both files counts once; then both have the same
  amounts. Within one file every line counts.
- The name of a customer is the same in any case of its letters, and with spaces around it.
- A line whose status is `void` does not count, in either file.
"""
SUM = r"""
import csv, decimal, os, sys
name = sys.argv[1].casefold()
total, known = decimal.Decimal(0), set()
for path, comma, encoding in (("sales.csv", ",", "utf-8-sig"), ("sales-west.csv", ";", "latin-1")):
    if not os.path.exists(path):
        continue
    seen = set()
    with open(path, newline="", encoding=encoding) as file:
        for row in csv.DictReader(file, delimiter=comma):
            invoice, text = row["invoice"].strip().upper(), row["amount"].strip()
            if row["customer"].strip().casefold() != name or row["status"].strip() == "void":
                continue
            seen.add(invoice)
            if invoice in known:
                continue
            minus = text.startswith("(")
            text = text.strip("()")
            text = text.replace(".", "") if comma == ";" else text.replace(",", "")
            plain = text.replace(",", ".")
            total += -decimal.Decimal(plain) if minus else decimal.Decimal(plain)
    known |= seen
print(total)
"""


@dataclass(frozen=True)
class Sale:
    """One line of an export."""

    invoice: str
    customer: str
    city: str
    cents: int
    status: str


def amount(cents: int, *, comma: bool, refund: bool) -> str:
    """An amount as an export writes it."""
    text = f"{abs(cents) // 100:,}.{abs(cents) % 100:02}"
    text = text.translate(str.maketrans(",.", ".,")) if comma else text
    if cents < 0:
        return f"({text})" if refund else f"-{text}"
    return text


def sales_case(seed: int, level: str) -> tuple[Files, str, Decimal, list[str]]:
    """The exports, a customer, the sum of it, and what a careless reader answers."""
    draw = draws(f"sales/{level}", seed)
    ends = (" & Co", " Ltd", "") if level == "plain" else (", Sons & Co", ", Ltd", " GmbH")
    pairs = draw.sample(LAST_NAMES, 7)
    customers = [f"{name}{draw.choice(ends)}" for name in pairs]
    customer = f"{pairs[0]}{ends[0]}"
    customers[0], customers[1] = (
        customer,
        f"{pairs[0]}{' Trading' if level == 'plain' else ends[1]}",
    )
    sales = [one_sale(draw, customers, level, index) for index in range(160)]
    sales += [
        Sale(f"INV-{i}Z", customer, "Oslo", c, "paid") for i, c in ((900, 123_450), (901, 99))
    ]
    west = [one_sale(draw, customers, level, index + 200) for index in range(60)]
    again = draw.sample([s for s in sales if s.customer == customer and s.status != "void"], 3)
    cents = total([*sales, *(west if level == "messy" else [])], customer)
    files: dict[str, File | str | bytes] = {"sales.csv": as_csv(sales, draw, level)}
    careless = [total(sales, customer, void=True), total(sales, customers[1])]
    if level == "messy":
        taken = {sale.invoice for sale in again}
        doubled = [s for s in sales if s.invoice in taken]
        rows = [*west, *doubled]
        draw.shuffle(rows)
        files |= {"sales-west.csv": as_west(rows, draw), "README.md": README}
        careless += [total([*sales, *rows], customer), total(sales, customer)]
        careless.append(total([*sales, *west], customer, refunds=False))
    elif level == "quoted":
        files["README.md"] = "\n".join(README.splitlines()[:4]) + "\n\n" + README.splitlines()[-1]
    wrong = [f"{Decimal(each) / 100:.2f}" for each in careless if each != cents]
    return files, customer, Decimal(cents) / 100, list(dict.fromkeys(wrong))


def one_sale(draw: random.Random, customers: list[str], level: str, index: int) -> Sale:
    """Draw one."""
    cents = draw.randint(100, 90_000 if level == "plain" else 400_000)
    refund = level == "messy" and draw.random() < 0.15  # noqa: PLR2004  # a share
    status = draw.choice(("paid", "paid", "open", "void"))
    customer = draw.choice((customers[0], *customers))
    letter = draw.choice("ABCDEF")
    return Sale(
        f"INV-{index // 2 + 10}{letter}",
        customer,
        draw.choice(CITIES),
        -cents if refund else cents,
        status,
    )


def total(sales: list[Sale], customer: str, *, void: bool = False, refunds: bool = True) -> int:
    """The sum of a customer's sales, in cents."""
    return sum(
        sale.cents if refunds else abs(sale.cents)
        for sale in sales
        if sale.customer == customer and (void or sale.status != "void")
    )


HEAD = ("date", "invoice", "customer", "city", "amount", "status")


def as_csv(sales: list[Sale], draw: random.Random, level: str) -> str:
    """The first export; the messy one has CRLF, a byte order mark, and names in any case."""
    lines = [",".join(HEAD)]
    for number, sale in enumerate(sales):
        text = amount(sale.cents, comma=False, refund=True)
        text = text if level != "plain" else text.replace(",", "")
        name = spelled(sale.customer, draw) if level == "messy" else sale.customer
        row = [
            f"2024-0{number % 6 + 1}-1{number % 10}",
            sale.invoice,
            name,
            sale.city,
            text,
            sale.status,
        ]
        lines.append(",".join(f'"{each}"' if "," in each else each for each in row))
    end = "\r\n" if level == "messy" else "\n"
    return ("\ufeff" if level == "messy" else "") + end.join(lines) + end


def as_west(sales: list[Sale], draw: random.Random) -> bytes:
    """The second export."""
    lines = [";".join(HEAD)]
    for number, sale in enumerate(sales):
        invoice = draw.choice((sale.invoice, sale.invoice.lower()))
        text = amount(sale.cents, comma=True, refund=True)
        name = spelled(sale.customer, draw)
        city = sale.city.replace("Malaga", "Málaga")
        lines.append(
            f"2024-0{number % 6 + 1}-2{number % 9};{invoice};{name};{city};{text};{sale.status}"
        )
    return ("\n".join(lines) + "\n").encode("latin-1")


def spelled(name: str, draw: random.Random) -> str:
    """A name as one of many people writes it."""
    return draw.choice((name, name, name.upper(), name.lower(), f"{name} ", f" {name}"))


async def sum_sales(
    shell: ShellWorld, seed: Seed = 0, level: Level = "plain"
) -> AsyncGenerator[str | float]:
    """Ask for the sum of one customer's sales."""
    files, customer, cents, _ = sales_case(seed, level)
    await need(shell)
    await fill(shell, files)
    where = {
        "plain": "/workspace/sales.csv is an export of sales.",
        "quoted": "/workspace/sales.csv is an export of sales; /workspace/README.md explains it.",
        "messy": "/workspace has two exports of sales, and README.md, which explains them.",
    }[level]
    answer = yield (
        f"{where} What is the sum of the amounts of the customer '{customer}', exactly this one? "
        "Leave out lines whose status is void. Answer with the number alone, with two decimals "
        "and a decimal point."
    )
    yield numeric_match(answer, float(cents), tolerance=0.001)


async def solve_sales(agent: Agent, level: str) -> str:
    """Read the rules and some lines, then add with a program that knows CSV."""
    await run(agent, "ls -l; file *.csv; head -5 sales.csv | cat -A")
    if level != "plain":
        await run(agent, "cat README.md")
    if level == "messy":
        await run(agent, "head -5 sales-west.csv | cat -A")
        await run(agent, "cut -d';' -f6 sales-west.csv | sort | uniq -c")
    customer = agent.prompt.partition("customer '")[2].partition("', exactly")[0]
    await run(agent, f"grep -i '{customer.split(',')[0].split()[0]}' sales.csv | head -40")
    await agent.tool("write_file", path="/workspace/.sum.py", content=SUM)
    return (await run(agent, f"python3 .sum.py '{customer}'; rm .sum.py")).strip()


def declare(env: Environment) -> None:
    """Declare the template of this file."""
    env.template(description="Add up what an export of sales has")(sum_sales).oracle(solve_sales)
