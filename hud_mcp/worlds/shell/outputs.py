"""An agent's outputs, sifted for a grader's place: data alone, and never in the author's way.

Files that Python, pytest, git or a shell would run by itself are left out. So are files that would
stand in front of a file of the author's. A link is kept if it leads to another output.
"""

import fnmatch
import gzip
import io
import json
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from hud_mcp.errors import BrokenByAgent, GraderFailed
from hud_mcp.sandbox.inside.gather import FILES, REPORT

Thing = str | bool
"""The thing at a path: a link, by its target; a folder, as True; a file, as False."""

_MOST_LINKS = 40
"""The most links on one path, as the kernel counts them."""
_MOST_NAMES = 200_000
"""The most names on all paths together: an agent can write long links through each other."""


def kept_links(tree: Mapping[str, Thing], names: Mapping[str, str]) -> set[str]:
    """Return the paths of the links that lead, in any way, to a file or folder of a tree.

    A link that leads out shows another file in each place. One that leads nowhere, or to a file of
    the author's, becomes that file's content when a grader looks. `names` are absolute paths at
    which folders of the tree are seen, each with its path in it.
    """
    walk = _Walk(tree, names)
    return {path for path, thing in tree.items() if isinstance(thing, str) and walk.arrives(path)}


class _Walk:
    def __init__(self, tree: Mapping[str, Thing], names: Mapping[str, str]) -> None:
        self._tree = tree
        self._names = [(_parts(name), _parts(path)) for name, path in names.items()]
        self._left = _MOST_NAMES

    def arrives(self, path: str) -> bool:
        """Whether a path leads to something in the tree, through any links on its way."""
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
        """Return an absolute target as a path of the tree; None if it is elsewhere."""
        parts = _parts(target)
        for name, path in self._names:
            if parts[: len(name)] == name:
                return path + parts[len(name) :]
        return None


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


TESTS = (
    "test", "tests", "test[_.-]*", "*[_.-]test", "*[_.-]test.*", "*[_.-]tests.*", "tests.*",
    "check", "checks", "check[_.-]*", "*[_.-]check.*", "checks.*", "verify*", "grade*", "grading*",
    "spec", "specs", "*[_.-]spec.*", "expected*", "golden*", "conftest.py", "pytest.ini",
    ".pytest.ini", "tox.ini", "noxfile.py", "Makefile", "makefile", "GNUmakefile",
    "jest.config.*", "vitest.config.*", ".mocharc*", ".rspec",
)  # fmt: skip
"""The usual names of files and folders that grade.

Those of an environment's own folder are taken from the original. If it or the author's files have
any, an agent adds no others.
"""

_ORIGINAL_TOO = (".git", "package.json", ".npmrc", ".cargo")
"""Names that are taken from the original with them. Without an original, an agent's may stay."""
_MAY_CONFIGURE = ("setup.cfg", "pyproject.toml")
"""Configuration files of many programs, pytest among them."""
_MOST_CONFIGURATION_BYTES = 1 << 20

_RUN_BY_ITSELF = (
    "__pycache__", "*.pyc", "*.pth", "sitecustomize.*", "usercustomize.*", "conftest.*",
    "pytest.ini", ".pytest.ini", "tox.ini", ".bashrc", ".bash_*", ".profile", ".gitconfig",
    ".envrc", ".pythonrc*", ".local", ".config", ".npmrc", ".cargo", ".mocharc*", ".rspec",
)  # fmt: skip
"""Names of files that programs run or read by themselves."""
_RUN_BY_GIT = ("hooks", "config", "config.worktree")
_ALSO_GIT = ("modules", "worktrees")
"""The folders of a repository for others, with hooks and a configuration of their own."""
_MOST_NAMED = 1000
_TAKEN = "another output has its path"


@dataclass(frozen=True)
class Originals:
    """Files of the environment's own folder, even if an agent changed them, by patterns of names.

    `*` stands for all of them, and `tests` for `TESTS`.
    """

    root: Path
    patterns: Sequence[str]

    def paths(self, named: Iterable[str]) -> dict[str, Path]:
        """Return each by its path in the folder, except those that lie in a named output."""
        whole = (*TESTS, *_ORIGINAL_TOO)
        patterns = [
            each for name in self.patterns for each in (whole if name == "tests" else (name,))
        ]
        configures = "tests" in self.patterns
        taken = [PurePosixPath(name) for name in named if name != "."]
        found: dict[str, Path] = {}
        for path in sorted(self.root.rglob("*")):
            inside = PurePosixPath(path.relative_to(self.root).as_posix())
            if "__pycache__" in inside.parts or any(inside.is_relative_to(each) for each in taken):
                continue
            is_folder = path.is_dir() and not path.is_symlink()
            if is_folder or _matches(inside, patterns) or (configures and _configures(path)):
                found[str(inside)] = path
        return found


@dataclass
class Sifted:
    """The content for a grader's place: a compressed tar for its folder.

    `missing` has the reason for each requested output that is not there as a file or folder, and
    `left_out` that for each part of a folder that was not copied.
    """

    archive: bytes = b""
    missing: dict[str, str] = field(default_factory=dict[str, str])
    left_out: dict[str, str] = field(default_factory=dict[str, str])


def named_outputs(copy: str | Iterable[str] | Mapping[str, str]) -> dict[str, str]:
    """Return outputs by their paths in the agent's folder, each with its path in the grader's.

    A path that is absolute, or leads out, is a `GraderFailed`.
    """
    if isinstance(copy, Mapping):
        pairs = cast("Mapping[str, str]", copy).items()
        return {_relative(source): _relative(target) for source, target in pairs}
    names = [_relative(name) for name in ([copy] if isinstance(copy, str) else copy)]
    return {name: name for name in names}


def sift(
    packed: bytes,
    *,
    named: Mapping[str, str],
    authors: Path | None,
    originals: Originals | None,
    names: Mapping[str, str],
) -> Sifted:
    """Keep those of a sandbox's outputs that are data and in nobody's way.

    Args:
        packed: The tar, as the sandbox gives it.
        named: The outputs, as `named_outputs` gives them.
        authors: The author's files, which come first. Outputs in a folder of theirs are put beside
            them.
        originals: The files that come from the environment's own folder.
        names: Absolute paths at which folders of the grader's place are seen; see `kept_links`.

    Raises:
        BrokenByAgent: The outputs are more than may be copied, or cannot be read.
    """
    taken = originals.paths(named.values()) if originals else {}
    sifter = _Sifter(named, authors, taken, names)
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as unzipped:
        try:
            with tarfile.open(fileobj=unzipped, mode="r|", encoding="utf-8") as archive:
                for member in archive:
                    sifter.take(member, archive)
        except (tarfile.TarError, EOFError, OSError) as exc:
            raise BrokenByAgent(f"The files to grade cannot be read: {exc}.") from exc
    return sifter.done()


class _Sifter:
    def __init__(
        self,
        named: Mapping[str, str],
        authors: Path | None,
        originals: Mapping[str, Path],
        names: Mapping[str, str],
    ) -> None:
        self._exact = set(named.values())
        self._names = names
        self._tree: dict[str, Thing] = {}
        self._links: dict[str, tarfile.TarInfo] = {}
        self._authors = authors
        self._originals = originals
        own = _names_in(authors) if authors else {}
        self._in_front = {
            **{path: found.is_dir() for path, found in originals.items()},
            **own,
        }
        self._stems = _stems(self._in_front)
        files = [PurePosixPath(path) for path, is_folder in self._in_front.items() if not is_folder]
        whole = "." in named.values()
        self._tests_are_there = whole and any(_matches(path, TESTS) for path in files)
        self._beside = {path for path, is_folder in own.items() if is_folder and "/" not in path}
        self._report: dict[str, Any] = {}
        self._left_out: dict[str, str] = {}
        self._out = io.BytesIO()
        self._zipped = gzip.GzipFile(fileobj=self._out, mode="wb", compresslevel=1, mtime=0)
        self._archive = tarfile.open(fileobj=self._zipped, mode="w|", encoding="utf-8")  # noqa: SIM115  # closed in done

    def take(self, member: tarfile.TarInfo, archive: tarfile.TarFile) -> None:
        if member.name == REPORT:
            content = archive.extractfile(member)
            self._report = json.load(content) if content is not None else {}
            return
        path = member.name.removeprefix(FILES)
        parts = path.split("/")
        if not (member.isreg() or member.isdir() or member.issym()) or {"", ".", ".."} & set(parts):
            return  # a sandbox of ours writes no such thing
        if why := self._why_not(path, is_folder=member.isdir()):
            self._leave_out(path, why)
            return
        if member.issym():
            self._take_link(path, member)
            return
        content: IO[bytes] | None = archive.extractfile(member) if member.isreg() else None
        if content is not None and parts[-1] in _MAY_CONFIGURE and path not in self._exact:
            data = content.read()
            if _speaks_to_pytest(data):
                self._leave_out(path, "it configures pytest")
                return
            content = io.BytesIO(data)
        self._put(path, content, member)

    def _put(self, path: str, content: IO[bytes] | None, member: tarfile.TarInfo) -> None:
        """Put a file or folder in its place, unless another output is in its way."""
        if self._authors is not None and path.split("/", maxsplit=1)[0] in self._beside:
            try:
                _put(self._authors / path, content, member.mode)
            except (FileExistsError, NotADirectoryError):
                self._leave_out(path, _TAKEN)
        elif self._is_taken(path, is_folder=member.isdir()):
            self._leave_out(path, _TAKEN)
        else:
            self._archive.addfile(_made(path, member), content)
            self._note(path, member.isdir())

    def _take_link(self, path: str, member: tarfile.TarInfo) -> None:
        """Keep a link for the end, when all its possible targets are known."""
        parts = path.split("/")
        special = ".git" in parts or parts[-1] in _MAY_CONFIGURE or parts[0] in self._beside
        if special:  # its target could be read in the place of what is not copied
            self._leave_out(path, "it is a link")
        else:
            self._links[path] = member

    def _is_taken(self, path: str, *, is_folder: bool) -> bool:
        """Whether another output keeps this one from its path. Two may lie in one folder."""
        above = [str(each) for each in PurePosixPath(path).parents][:-1]
        return self._tree.get(path, is_folder) is not is_folder or any(
            self._tree.get(each, True) is not True for each in above
        )

    def _note(self, path: str, thing: Thing) -> None:
        """Note the thing at a path, and the folders above it."""
        self._tree[path] = thing
        above = path.rpartition("/")[0]
        while above and above not in self._tree:
            self._tree[above] = True
            above = above.rpartition("/")[0]

    def _add_links(self) -> None:
        for path, member in list(self._links.items()):
            if path in self._tree or self._is_taken(path, is_folder=False):
                del self._links[path]
                self._leave_out(path, _TAKEN)
            else:
                self._note(path, member.linkname)
        kept = kept_links(self._tree, self._names)
        for path, member in self._links.items():
            if path in kept:
                self._archive.addfile(_made(path, member))
            else:
                self._leave_out(path, "it is a link, and does not lead to what is copied")

    def done(self) -> Sifted:
        for path, source in self._originals.items():
            if self._tree.get(path) is True:
                continue  # the agent's folder, with the rights that it gave it
            self._archive.add(source, arcname=path, recursive=False, filter=_plain)
            self._note(path, str(source.readlink()) if source.is_symlink() else source.is_dir())
        self._add_links()
        self._archive.close()
        self._zipped.close()
        report = self._report
        if not report:
            raise BrokenByAgent("The files to grade could not be read completely.")
        if report["stopped"]:
            raise BrokenByAgent(
                f"The files to grade cannot be copied: {report['stopped']}. Nothing was graded."
            )
        left_out = {**report["left_out"], **self._left_out}
        return Sifted(self._out.getvalue(), _as_text(report["missing"]), _as_text(left_out))

    def _leave_out(self, path: str, why: str) -> None:
        if len(self._left_out) < _MOST_NAMED:
            self._left_out[path] = why

    def _why_not(self, path: str, *, is_folder: bool) -> str | None:
        parts = path.split("/")
        for count in range(1, len(parts) + 1):
            above = "/".join(parts[:count])
            if self._in_front.get(above) is False or (
                count == len(parts) and not is_folder and self._in_front.get(above)
            ):
                return "the author's is taken"
            folder, _, name = above.rpartition("/")
            stem, _, ending = name.partition(".")
            if above not in self._in_front and ending != "py" and (folder, stem) in self._stems:
                return "it would stand in front of a module of the author's"
        return None if path in self._exact else self._why_not_unnamed(path, is_folder=is_folder)

    def _why_not_unnamed(self, path: str, *, is_folder: bool) -> str | None:
        parts = path.split("/")
        if any(fnmatch.fnmatchcase(part, each) for part in parts for each in _RUN_BY_ITSELF):
            return "programs run or read such a file by themselves"
        if ".git" in parts and _is_run_by_git(
            parts[parts.index(".git") + 1 :], is_folder=is_folder
        ):
            return "git runs it"
        is_new = path not in self._in_front
        if is_new and self._tests_are_there and _matches(PurePosixPath(path), TESTS):
            return "the tests are the author's; `copy` can name it"
        return None


def _is_run_by_git(inside: Sequence[str], *, is_folder: bool) -> bool:
    """Whether git runs a path in a `.git`, or reads there what to run, or the `.git` is a file."""
    if not inside:
        return not is_folder  # it names another folder, which may have any name
    if inside[0] in _ALSO_GIT:
        return any(part in _RUN_BY_GIT for part in inside[1:])
    return inside[0] in _RUN_BY_GIT


def _configures(path: Path) -> bool:
    return path.name in _MAY_CONFIGURE and path.is_file() and _speaks_to_pytest(path.read_bytes())


def _speaks_to_pytest(data: bytes) -> bool:
    return len(data) > _MOST_CONFIGURATION_BYTES or b"pytest" in data


def _as_text(reasons: Mapping[str, str]) -> dict[str, str]:
    # A name of the agent's may be no UTF-8, which records cannot keep.
    return {name.encode("utf-8", "replace").decode(): why for name, why in reasons.items()}


def _names_in(folder: Path) -> dict[str, bool]:
    return {path.relative_to(folder).as_posix(): path.is_dir() for path in folder.rglob("*")}


def _stems(paths: Iterable[str]) -> set[tuple[str, str]]:
    modules = (path.rpartition("/") for path in paths if path.endswith(".py"))
    return {(folder, name.removesuffix(".py")) for folder, _, name in modules}


def _put(place: Path, content: IO[bytes] | None, mode: int) -> None:
    """Put an output into the folder of the author's files, which no agent reaches."""
    if content is None:
        place.mkdir(parents=True, exist_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("xb") as file:
        while data := content.read(1 << 20):
            file.write(data)
    place.chmod(0o555 if mode & 0o100 else 0o444)  # read-only, and to be read by the sandbox's user


def _made(path: str, member: tarfile.TarInfo) -> tarfile.TarInfo:
    made = tarfile.TarInfo(path)
    made.type, made.size, made.mode = member.type, member.size, member.mode
    made.mtime, made.linkname = member.mtime, member.linkname
    return made


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def _matches(path: PurePosixPath, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(part, each) for part in path.parts for each in patterns)


def _relative(path: str) -> str:
    parts = [part for part in str(path).split("/") if part not in ("", ".")]
    if str(path).startswith("/") or ".." in parts or "\0" in str(path):
        raise GraderFailed(
            f"copy: {path!r} is not a path in the agent's folder. Name one from that folder on."
        )
    return "/".join(parts) or "."
