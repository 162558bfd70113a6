"""Tasks of the WebVoyager benchmark, on live sites or on copies of them, with its judge."""

from hud_mcp import Answer, Browser, BrowserWorld, Environment, Grade, Look, WebVoyagerJudge

env = Environment(
    "webvoyager",
    version="0.1.0",
    world=Browser(start=None, tasks_open_hosts=True, viewport=(1024, 768)),
)


@env.function(use="evaluate", weak="A model judges, and what it reads can persuade it.")
async def webvoyager_judge(
    browser: BrowserWorld, answer: Answer[str], question: str, model: str = ""
) -> Grade:
    """1.0 where a model that sees the answer and the last picture takes the task for done."""
    pictures: list[bytes] = []
    if answer.raw.strip():
        seen = await browser.observe(Look(text=False, image="png"))
        pictures += [seen.image.data] if seen.image is not None else []
    judged = await WebVoyagerJudge.grade(
        answer=answer.raw, question=question, pictures=pictures, model=model
    )
    return Grade(reward=judged.value, subscores=(judged,), info=judged.info)
