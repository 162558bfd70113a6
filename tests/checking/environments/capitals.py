"""A sound template without an oracle, for rows that say what answers get."""

from hud_mcp import Environment, exact_match

env = Environment("capitals")


@env.template()
async def capital(country: str, city: str):
    answer = yield f"What is the capital of {country}? Answer with its name alone."
    yield exact_match(answer, city)
