"""The links among an agent's outputs, of which a grader sees those that lead to other outputs."""

from collections.abc import Mapping

__all__ = ["Thing", "kept_links"]

Thing = str | bool
"""What is at a path: a link, by its target; a folder, as True; a file, as False."""

_MOST_LINKS = 40
"""On one way, as the kernel counts them."""
_MOST_NAMES = 200_000
"""On all ways together: an agent can write long links that lead through each other."""


def kept_links(tree: Mapping[str, Thing], names: Mapping[str, str]) -> set[str]:
    """The paths of the links that lead, by whatever way, to a file or folder of a tree.

    Others are dangerous to keep. One that leads out shows another file in each place. One that
    leads nowhere, or to a file of the author's, becomes that file's content when a grader looks.

    Args:
        tree: What is at each path.
        names: Absolute paths at which folders of the tree are seen, each with its path in it.
    """
    walk = _Walk(tree, names)
    return {path for path, thing in tree.items() if isinstance(thing, str) and walk.arrives(path)}


class _Walk:
    def __init__(self, tree: Mapping[str, Thing], names: Mapping[str, str]) -> None:
        self._tree = tree
        self._names = [(_parts(name), _parts(path)) for name, path in names.items()]
        self._left = _MOST_NAMES

    def arrives(self, path: str) -> bool:
        """Whether something of the tree is at the end of a path, whatever links are on the way."""
        here: list[str] = []
        ahead = _parts(path)[::-1]
        links = 0
        while ahead:
            self._left -= 1
            name = ahead.pop()
            if self._left < 0 or (name == ".." and not here):
                return False
            if name == "..":
                here.pop()
                continue
            found = self._tree.get("/".join((*here, name)))
            if found is None or (found is False and ahead):
                return False
            if not isinstance(found, str):
                here.append(name)
                continue
            links += 1
            target = self._from_root(found) if found.startswith("/") else _parts(found)
            if target is None or links > _MOST_LINKS:
                return False
            here = [] if found.startswith("/") else here
            ahead += target[::-1]
        return True

    def _from_root(self, target: str) -> list[str] | None:
        """An absolute target as a path of the tree; None where it is elsewhere."""
        parts = _parts(target)
        for name, path in self._names:
            if parts[: len(name)] == name:
                return path + parts[len(name) :]
        return None


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
