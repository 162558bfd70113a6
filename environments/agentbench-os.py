"""Questions and work of AgentBench's `os_interaction`, in a shell with the places of its rows."""

from hud_mcp import Answer, Environment, Shell, ShellWorld

HOME = "/root"
STARTUP = (".bashrc", ".profile", ".bash_profile", ".bash_aliases")
PARTS = (HOME, "/home", "/var", "/opt", "/srv", "/mnt")

env = Environment("agentbench-os", version="0.1.0", world=Shell(parts=PARTS, env={"HOME": HOME}))


@env.function(use="evaluate")
async def agentbench_check(
    shell: ShellWorld,
    answer: Answer[str],
    scripts: list[list[str]],
    prepared: list[str] | None = None,
) -> float:
    """1.0 where every script exits 0, in a place in which no agent has been.

    A script is its language and its text. It is given the answer, and then what those before it
    printed. The place has a copy of what the agent left; or, for a question, what the lines of
    `prepared` make anew: an agent that changed what it was asked about changes no answer.
    """
    given = [answer.raw]
    copied = {".": ".", **{f"root/{name}": f"root/{name}" for name in STARTUP}}
    async with shell.verifier(copy=copied if prepared is None else ()) as clean:
        for line in prepared or ():
            await clean.run(line)
        for language, code in scripts:
            command = (
                ["python3", "-c", code, *given]
                if language == "python"
                else ["bash", "-c", code, "--", *given]
            )
            done = await clean.run(command)
            if done.exit_code != 0 or done.stopped is not None:
                return 0.0
            given.append(done.stdout)
    return 1.0
