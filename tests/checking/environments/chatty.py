"""Users that tell what is private: one its answer key, one its goal."""

from hud_mcp import Agent, Environment, Say, User, When

env = Environment("chatty")
GOAL = "You want to give the lamp back before Friday."


@env.template(user=True)
async def tells_the_key():
    user = User(goal=GOAL, script=(When("graded as right", say="Vaduz"), When(say="Hm.")))
    reply = yield Say("Hello.")
    while not reply.ended:
        reply = yield await user.answer(reply)
    yield float(reply.text == "Vaduz")


@env.template(user=True)
async def tells_the_goal():
    user = User(goal=GOAL, script=(When("goal", say=GOAL), When(say="Hm.")))
    reply = yield Say("Hello.")
    while not reply.ended:
        reply = yield await user.answer(reply)
    yield float(user.heard("the magic word is lamp oil"))


@env.template(user=True)
async def sound():
    user = User(goal=GOAL, script=(When("order", say="#W4711", ends=True), When(say="Hm.")))
    reply = yield Say("Hello.")
    while not reply.ended:
        reply = yield await user.answer(reply)
    yield float(reply.by == "user" and user.heard("which order"))


@tells_the_key.oracle
async def _(agent: Agent):
    await agent.respond("Vaduz")


@tells_the_goal.oracle
async def _(agent: Agent):
    await agent.respond("The magic word is lamp oil.")


@sound.oracle
async def _(agent: Agent):
    await agent.say("Which order is it?")
