"""The service desk of a small shop: customers ask, a policy binds, and a database is changed.

A task is one customer's case. The end state of the database is graded, and what was told and
asked in the conversation. The tools keep the database consistent and ask nothing of the policy:
agents read it and obey it. `office_customer` answers in the customer's place.
"""

from typing import Annotated, Any, Literal

import office_lookups as lookups
import office_oracles as oracles
from office_accounts import (
    CardCase,
    PointsCase,
    WorkshopCase,
    card_case,
    errands_case,
    points_case,
    workshop_case,
)
from office_cases import prompt_of
from office_grading import Case, grade_case
from office_parcels import (
    AddressCase,
    CancelCase,
    ParcelCase,
    StrangerCase,
    address_case,
    cancel_case,
    parcel_case,
    stranger_case,
)
from office_returns import (
    DamageCase,
    ExchangeCase,
    ReturnCase,
    damage_case,
    exchange_case,
    return_case,
)
from office_stock import Shop
from office_tables import KINDS
from office_terms import SERVICES, Topic, draw_terms, policy_text
from office_world import Office, OfficeWorld
from pydantic import Field

from hud_mcp import Environment

Seed = Annotated[int, Field(ge=0, le=1_000_000, description="What the shop is drawn from.")]
Euros = Annotated[float, Field(gt=0, le=10_000, description="Euros, such as 49.90.")]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="Such as 2025-03-14.")]
Text = Annotated[str, Field(max_length=2000)]
Key = Annotated[str, Field(min_length=1, max_length=40)]
Kind = Literal[KINDS]
Service = Literal[SERVICES]
Rows = list[dict[str, Any]]

env = Environment("office", version="0.1.0", world=Office())
