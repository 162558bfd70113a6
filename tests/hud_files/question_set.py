"""A question set as HUD's documentation has one: answers compared, typed, combined in a tree."""

# ruff: noqa: ANN003, ANN201, ANN206, D102, D103  # as authors write it

from pydantic import BaseModel

from hud_mcp import Environment
from hud_mcp.graders import (
    EvaluationResult,
    Grader,
    SubScore,
    combine,
    combine_all,
    combine_any,
    contains,
    contains_any,
    exact_match,
    f1_score,
    numeric_match,
)

env = Environment(name="question-set", version="1.0.0")

CAPITALS = {"France": "Paris", "Japan": "Tokyo"}


class Trip(BaseModel):
    """What the trip task asks for."""

    city: str
    nights: int
    total: float


class LengthGrader(Grader):
    """Whether a text is no longer than it may be."""

    name = "length"

    @classmethod
    async def compute_score(cls, answer: str = "", most: int = 100, **kwargs):
        return SubScore(
            name=cls.name, value=1.0 if len(answer) <= most else 0.0, metadata={"most": most}
        )


@env.template(description="Name a capital")
async def capital(country: str = "France"):
    answer = yield f"What is the capital of {country}?"
    yield exact_match(answer, CAPITALS[country])


@env.template(id="count", description="Count a letter", returns=int)
async def count_letter(word: str = "strawberry", letter: str = "r"):
    answer = yield f"How many '{letter}'s are in '{word}'?"
    yield numeric_match(answer.content, word.count(letter))


@env.template(id="trip", description="Plan a trip", returns=Trip)
async def plan_trip(city: str = "Paris", nights: int = 3, price: float = 80.0):
    answer = yield f"Plan {nights} nights in {city} at {price} a night."
    trip = answer.content
    if not isinstance(trip, Trip):
        yield EvaluationResult(reward=0.0, content="The answer is no trip.")
        return
    place = SubScore(name="city", value=exact_match(trip.city, city))
    stay = combine_all(
        0.6,
        [
            SubScore(name="nights", value=numeric_match(trip.nights, nights)),
            SubScore(name="total", value=numeric_match(trip.total, nights * price, tolerance=0.01)),
            combine_any(
                1.0, [place, SubScore(name="country", value=contains(trip.city, "France"))]
            ),
        ],
        name="stay",
    )
    sense = SubScore(name="sense", value=1.0 if trip.nights > 0 else 0.0, weight=0.4)
    result = await combine(stay, sense)
    result.content = f"{trip.nights} nights in {trip.city}."
    result.info["price"] = price
    yield result


@env.template(id="explain", description="Explain in few words")
async def explain(topic: str = "gravity"):
    answer = yield f"Explain {topic} in one sentence."
    yield await combine(
        SubScore(name="words", value=f1_score(answer, "masses attract each other"), weight=0.5),
        LengthGrader.grade(weight=0.5, answer=answer, most=60),
        SubScore(
            name="hedging",
            value=contains_any(answer, ["perhaps", "maybe"], case_sensitive=False),
            weight=-0.25,
        ),
    )


@env.template(id="broken", description="A grader that says that it failed")
async def broken():
    yield "Say anything."
    yield EvaluationResult(reward=1.0, isError=True, content="The reference is missing.")


tasks = [
    capital(country="Japan"),
    count_letter(),
    plan_trip(city="Paris", nights=3),
    explain(),
]
