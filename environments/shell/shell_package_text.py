"""The text of a small Python package, and what may be wrong in it."""

__all__ = ["BUGS", "PACKAGE", "README", "TESTS", "Bug"]

from dataclasses import dataclass

README = """# tally

`python3 -m tally` reads invoices from its input and prints a line for each customer.

An invoice is a line `date;customer;net;days`, as in `2024-01-31;Baker;1.234,50;30`.

- Lines may end with CRLF or LF, the last one with nothing. Empty lines, and lines that begin with
  `#`, are skipped.
- `net` has dots between thousands, as many as it needs, and a decimal comma. `12,5` is 12.50, and
  `12` is 12.00. It is never negative.
- The gross amount of each invoice is its net amount and 19 per cent, rounded to a cent; half a
  cent is rounded up. Amounts are computed in whole cents.
- An invoice is due on the last day of the month in which `date` and so many `days` lie.
- Customers are the same where `str.casefold` makes them so, without spaces around. They are shown
  as they were first written.
- A line of the output is `customer;invoices;gross;quarter`: how many invoices, the sum of their
  gross amounts with a decimal point and two decimals, and the quarter of the latest day on which
  one is due, such as 2024-Q1.
- Lines are sorted by the sum, the greatest first, then by the customer as shown.
"""

PACKAGE = {
    "tally/__init__.py": '"""Invoices by customer."""\n',
    "tally/money.py": '''"""Amounts of money, in whole cents."""


def read_amount(text):
    """Read an amount such as 1.234,50."""
    whole, _, part = text.strip().replace(".", "").partition(",")
    return int(whole) * 100 + int(part.ljust(2, "0") or 0)


def gross(cents, percent=19):
    """Add the tax; half a cent is rounded up."""
    return (cents * (100 + percent) + 50) // 100


def show_amount(cents):
    """Write an amount such as 1234.50."""
    return f"{cents // 100}.{cents % 100:02}"
''',
    "tally/dates.py": '''"""Days on which invoices are due."""

import calendar
import datetime


def due(day, days):
    """The last day of the month in which a day and some days lie."""
    later = datetime.date.fromisoformat(day) + datetime.timedelta(days=days)
    return later.replace(day=calendar.monthrange(later.year, later.month)[1])


def quarter(day):
    """A day's quarter, such as 2024-Q1."""
    return f"{day.year}-Q{(day.month - 1) // 3 + 1}"
''',
    "tally/ledger.py": '''"""All invoices of each customer."""

from tally.dates import due, quarter
from tally.money import gross, read_amount, show_amount


class Customer:
    """What is known of one customer."""

    def __init__(self, name, amounts=None):
        self.name = name
        self.amounts = [] if amounts is None else amounts
        self.latest = None

    def add(self, day, net, days):
        """Add an invoice."""
        self.amounts.append(gross(read_amount(net)))
        day = due(day, days)
        if self.latest is None or day > self.latest:
            self.latest = day

    def line(self):
        """A line of the output."""
        total = show_amount(sum(self.amounts))
        return f"{self.name};{len(self.amounts)};{total};{quarter(self.latest)}"


def report(rows):
    """The lines for some invoices."""
    customers = {}
    for day, name, net, days in rows:
        key = name.strip().casefold()
        customer = customers.setdefault(key, Customer(name.strip()))
        customer.add(day, net, int(days))
    ordered = sorted(customers.values(), key=lambda each: (-sum(each.amounts), each.name))
    return [customer.line() for customer in ordered]
''',
    "tally/__main__.py": '''"""Reads invoices, and prints a line for each customer."""

import sys

from tally.ledger import report


def rows(text):
    """The fields of each line."""
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.split(";")


if __name__ == "__main__":
    for line in report(rows(sys.stdin.read())):
        print(line)
''',
}

TESTS = '''"""Tests of tally; they do not cover all that README.md says."""

import unittest

from tally.dates import due, quarter
from tally.ledger import report
from tally.money import gross, read_amount, show_amount


class Money(unittest.TestCase):
    def test_amounts_are_read(self):
        self.assertEqual(read_amount("1.234,50"), 123450)
        self.assertEqual(read_amount("12"), 1200)

    def test_tax_is_added(self):
        self.assertEqual(gross(10000), 11900)
        self.assertEqual(show_amount(5), "0.05")


class Dates(unittest.TestCase):
    def test_quarters(self):
        self.assertEqual(str(due("2024-01-20", 10)), "2024-01-31")
        self.assertEqual(quarter(due("2024-03-01", 1)), "2024-Q1")


class Reports(unittest.TestCase):
    def test_customers_are_apart(self):
        rows = [("2024-01-02", "Baker", "10", "1"), ("2024-01-02", "Miller", "20", "1")]
        self.assertEqual(report(rows), ["Miller;1;23.80;2024-Q1", "Baker;1;11.90;2024-Q1"])


if __name__ == "__main__":
    unittest.main()
'''


@dataclass(frozen=True)
class Bug:
    """What may be wrong in a file.

    Attributes:
        path: The file.
        right: What stands there.
        wrong: What may stand there instead.
        shown: Whether one of the tests fails with it.
    """

    path: str
    right: str
    wrong: str
    shown: bool = False


BUGS = (
    Bug("tally/money.py", "+ 50) // 100", ") // 100"),
    Bug("tally/money.py", 'replace(".", "").p', 'replace(".", "", 1).p'),
    Bug("tally/money.py", 'part.ljust(2, "0") or 0', "part or 0"),
    Bug("tally/money.py", "{cents % 100:02}", "{cents % 100}", shown=True),
    Bug("tally/dates.py", "(day.month - 1) // 3 + 1", "day.month // 3 + 1", shown=True),
    Bug(
        "tally/dates.py",
        "calendar.monthrange(later.year, later.month)[1]",
        "[31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][later.month - 1]",
    ),
    Bug("tally/dates.py", "day=calendar.mon", "day=calendar.Mon", shown=True),
    Bug("tally/ledger.py", "day > self.latest", "day < self.latest"),
    Bug("tally/ledger.py", "name, amounts=None):", "name, amounts=[]):", shown=True),
    Bug("tally/ledger.py", "(-sum(each.amounts), each.name)", "(-len(each.amounts), each.name)",
        shown=True),
    Bug("tally/ledger.py", ".strip().casefold()", ".strip().lower()"),
    Bug("tally/__main__.py", "text.splitlines()", 'text.split("\\n")[:-1]'),
)  # fmt: skip
"""The tests find those that are shown; README.md tells the others."""
