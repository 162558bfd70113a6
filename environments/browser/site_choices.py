"""What the tasks may ask for, as types, so that a client can check and offer it."""

from typing import Annotated, Literal

from admin_data import AGENTS, LANGUAGES, PLANS, PRIORITIES, REGIONS, TOPICS, new_desk
from board_data import COLUMNS, LABELS, PEOPLE, new_board
from board_grading import archived
from pydantic import Field
from shop_data import CATALOGUE, DELIVERY
from shop_grading import CART, MONTHS

ProductName = Literal[tuple(p.name for p in CATALOGUE.values())]
Category = Literal[tuple(dict.fromkeys(p.category for p in CATALOGUE.values()))]
Quantity = Annotated[int, Field(ge=1, le=10)]
Rating = Annotated[float, Field(ge=1, le=5)]
Month = Literal[MONTHS]
CartName = Literal[tuple(CATALOGUE[p].name for p, _, _ in CART)]
Delivery = Literal[tuple(DELIVERY)]
Customer = Literal[tuple(c["name"] for c in new_desk()["customers"])]
Email = Literal[tuple(c["email"] for c in new_desk()["customers"])]
Member = Literal[AGENTS]
Topic = Literal[TOPICS]
Priority = Literal[PRIORITIES]
Plan = Literal[PLANS]
Rank = Literal[1, 2, 3]
Country = Literal[tuple(REGIONS)]
Days = Annotated[int, Field(ge=1, le=90)]
Language = Literal[LANGUAGES]
Column = Literal[COLUMNS]
Label = Literal[LABELS]
Person = Literal[PEOPLE]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
Card = Literal[tuple(c["title"] for c in new_board()["cards"])]
ArchivedCard = Literal[archived(new_board())]
