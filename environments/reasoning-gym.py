"""Questions of reasoning-gym's generators, without a world, scored by its own verifiers."""

from hud_mcp import Answer, Environment, ReasoningGymGrader, SubScore

env = Environment("reasoning-gym", version="0.1.0")


@env.function(use="evaluate")
async def reasoning_score(
    answer: Answer[str], question: str, drawn: dict[str, str | int]
) -> SubScore:
    """What the generator's own verifier makes of the answer, from 0 to 1."""
    return await ReasoningGymGrader.grade(answer=answer.raw, question=question, drawn=drawn)
