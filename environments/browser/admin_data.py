"""What the support desk holds: its people, customers, tickets and settings."""

from datetime import date, timedelta
from typing import Any

from site_day import TODAY

__all__ = [
    "AGENTS",
    "LANGUAGES",
    "PASSWORDS",
    "PLANS",
    "PRIORITIES",
    "REGIONS",
    "STATUSES",
    "TOPICS",
    "new_desk",
]

AGENTS = ("Ines Falk", "Okan Demir", "Ruth Maas", "Tomas Vik")
PASSWORDS = {"mara": "lantern-42"}
"""Who may log in. The desk's API never hands these out."""

TOPICS = ("Account", "Billing", "Delivery", "Technical")
PRIORITIES = ("Low", "Normal", "High", "Urgent")
STATUSES = ("Open", "Waiting", "Solved")
LANGUAGES = ("English", "German", "Danish", "Dutch")
PLANS = ("Basic", "Plus", "Team")
REGIONS = {
    "Austria": ("Styria", "Tyrol", "Vienna"),
    "Denmark": ("Funen", "Jutland", "Zealand"),
    "Germany": ("Bavaria", "Hamburg", "Saxony"),
    "Netherlands": ("Friesland", "Utrecht", "Zeeland"),
}
"""The regions of each country: what the second select offers depends on the first."""

_CUSTOMERS = """
C-101|Alder Bakery|office@alder-bakery.example|Plus|Germany|Saxony|2024-03-01|2027-02-28|184200
C-102|Bright Cycle Works|hello@brightcycle.example|Team|Denmark|Jutland|2023-09-15|2026-09-14|412950
C-103|Cloudberry Studio|team@cloudberry.example|Basic|Netherlands|Utrecht|2025-01-10|2027-01-09|36400
C-104|Dune Hotel|desk@dunehotel.example|Team|Netherlands|Zeeland|2022-05-20|2026-05-19|655000
C-105|Elm Street Clinic|admin@elmclinic.example|Plus|Austria|Vienna|2024-11-04|2026-11-03|97300
C-106|Fir & Daughters|post@fir-daughters.example|Basic|Germany|Bavaria|2025-06-01|2026-05-31|21850
C-107|Gull Ferries|ops@gullferries.example|Team|Denmark|Zealand|2021-02-01|2027-01-31|731200
C-108|Hazel Language School|info@hazelschool.example|Plus|Austria|Tyrol|2024-08-19|2026-08-18|142600
C-109|Iris Optics|contact@irisoptics.example|Basic|Germany|Hamburg|2025-10-13|2026-10-12|18900
C-110|Juniper Legal|office@juniperlegal.example|Plus|Netherlands|Friesland|2023-04-03|2027-04-02|268400
C-111|Kestrel Couriers|dispatch@kestrel.example|Team|Germany|Hamburg|2022-12-01|2026-11-30|589700
C-112|Lark Music Shop|shop@larkmusic.example|Basic|Denmark|Funen|2025-03-17|2027-03-16|44750
C-113|Maple Dental|front@mapledental.example|Plus|Austria|Styria|2024-01-08|2027-01-07|156050
C-114|Nettle Garden Centre|hello@nettlegarden.example|Basic|Germany|Saxony|2025-08-25|2026-08-24|30200
"""  # noqa: E501  # one customer a line

_SUBJECTS = {
    "Account": (
        "Cannot add a second user",
        "Change the name on our account",
        "Password reset mail never arrives",
        "Please close an unused login",
    ),
    "Billing": (
        "Invoice shows the wrong address",
        "Charged twice in April",
        "Question about the yearly price",
        "Need a copy of the March invoice",
    ),
    "Delivery": (
        "Parcel arrived with a dent",
        "Two boxes are missing",
        "Delivery to a new warehouse",
        "Courier came outside hours",
    ),
    "Technical": (
        "Export stops at row 500",
        "Label printer prints blank pages",
        "Report loads forever",
        "Scanner app loses connection",
    ),
}

_CYCLE = "Billing Technical Delivery Billing Account Technical Delivery Technical Billing Account"


def new_desk() -> dict[str, Any]:
    """The support desk as a session finds it: nobody is logged in."""
    customers = [_customer(row) for row in _CUSTOMERS.strip().splitlines()]
    settings = {
        "digest": True,
        "auto_assign": False,
        "status_page": True,
        "weekend_cover": False,
        "two_step": False,
        "close_after": 14,
        "reply_language": "English",
    }
    tickets = [_ticket(n, customers) for n in range(38)]
    return {"user": None, "customers": customers, "tickets": tickets, "settings": settings}


def _customer(row: str) -> dict[str, Any]:
    key, name, email, plan, country, region, start, end, spent = row.split("|")
    return {
        "id": key,
        "name": name,
        "email": email,
        "plan": plan,
        "country": country,
        "region": region,
        "start": start,
        "end": end,
        "spent": int(spent),
        "notes": "",
    }


def _ticket(n: int, customers: list[dict[str, Any]]) -> dict[str, Any]:
    topic = _CYCLE.split()[n % 10]
    subjects = _SUBJECTS[topic]
    created = date.fromisoformat(TODAY) - timedelta(days=(n * 7) % 31 + n // 9)
    status = STATUSES[(0, 0, 1, 0, 2, 0, 1)[n % 7]]
    return {
        "id": f"T-{2001 + n}",
        "subject": subjects[(n // 2 + n // 10) % len(subjects)],
        "customer": customers[(n * 5 + 3) % len(customers)]["name"],
        "topic": topic,
        "priority": PRIORITIES[(1, 2, 1, 0, 3, 1, 2, 0, 1, 1, 2)[n % 11]],
        "status": status,
        "assignee": "" if status == "Open" and n % 3 else AGENTS[n % 4],
        "created": created.isoformat(),
        "note": "",
    }
