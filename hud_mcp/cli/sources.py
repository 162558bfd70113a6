"""What a command serves: environments by what names them, and the tasks that go with them."""

from collections.abc import Sequence
from typing import Any

from hud_mcp.cli import surfaces
from hud_mcp.errors import HudMcpError
from hud_mcp.loading.source import Source

__all__ = ["load", "only_environment"]


def load(
    sources: Sequence[str], tasksets: Sequence[str], *, split: str | None = None
) -> tuple[list[Any], list[Any]]:
    """Load environments and the tasks that go with them.

    Where no taskset is named, the quickstart's tasks of the served shipped environments
    are offered, and those that the authors' own files declare.

    Args:
        sources: What names environments.
        tasksets: What names sets of tasks.
        split: Only the rows of one split or difficulty of each set.

    Raises:
        SourceNotFound, InvalidEnvironment, InvalidTask: As loading them does.
    """
    plain = [source for source in sources if not Source(source).is_remote]
    environments = surfaces.load_environments(plain if sources else surfaces.default_sources())
    if tasksets:
        found = [surfaces.find_sets([name]).read().tasks for name in tasksets]
        return environments, found if split is None else [each.split(split) for each in found]
    shipped = {path.resolve() for path in surfaces.shipped_environments().values()}
    names = {e.name for e in environments if e.file.resolve() in shipped}
    own = surfaces.declared_tasks(e for e in environments if e.name not in names)
    offered = [surfaces.Taskset(own, name="The tasks of the source")] if own else []
    quickstart = surfaces.shipped_folder("taskset_data") / "quickstart.jsonl"
    if names and quickstart.is_file():
        offered.append(surfaces.Taskset.load(quickstart).filter(lambda task: task.env in names))
    return environments, offered


def only_environment(environments: Sequence[Any], what: str) -> Any:
    """The one environment of several that a channel can serve.

    Raises:
        HudMcpError: There are several.
    """
    if len(environments) == 1:
        return environments[0]
    names = ", ".join(e.name for e in environments)
    raise HudMcpError(
        f"{what} serves one environment, and there are {len(environments)}: {names}. Name one as "
        "path/to/env.py:name."
    )
