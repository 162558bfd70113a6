"""An export of a job or of one trajectory, in the format of other programs or for people."""

from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Literal

import anyio.to_thread

from hud_mcp.base import __version__
from hud_mcp.errors import DamagedRecord, HudMcpError, SourceNotFound, did_you_mean
from hud_mcp.plugins.view.export.files import (
    MANIFEST,
    PictureFolder,
    Pictures,
    new_file,
    new_folder,
    to_json,
)
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.registry import find, names_of
from hud_mcp.store import Store

OnProgress = Callable[[int, int], None]
"""Called after each trajectory with the number of finished ones, and of all."""


@dataclass(frozen=True)
class ExportSummary:
    """The counts of a finished export.

    Attributes:
        format: The name of the format.
        path: The written file or folder; the receiver's address, for a format that sends.
        trajectories: The number of exported trajectories.
        steps: The number of their steps.
        pictures: The number of different screenshots.
        missing_pictures: Recorded screenshots whose file is gone or damaged. They are exported
            as absent.
        running: The number of trajectories that had not ended.
        damaged: One sentence for each trajectory that could not be read, and is left out.
    """

    format: str
    path: Path
    trajectories: int
    steps: int
    pictures: int
    missing_pictures: int
    running: int
    damaged: tuple[str, ...]

    def __str__(self) -> str:
        """Return the counts in one line for people."""
        counts = [
            _count(self.trajectories, "trajectory", "trajectories"),
            _count(self.steps, "step", "steps"),
            _count(self.pictures, "picture", "pictures"),
        ]
        notes = [
            f"{number} {text}"
            for number, text in (
                (self.missing_pictures, "pictures missing or damaged, exported as absent"),
                (self.running, "not ended yet"),
                (len(self.damaged), "left out as damaged"),
            )
            if number
        ]
        return "; ".join([", ".join(counts), *notes]) + "."


@dataclass(frozen=True)
class Selection:
    """The trajectories of one export, in the order of their starts."""

    id: str  # the whole id of the job or of the trajectory
    job: Job | None  # None for a trajectory without one
    trajectory_ids: tuple[str, ...]
    whole_job: bool  # a job was asked for, and not one trajectory
    foreign: int = 0  # sessions that are left out: the job's plan lacks them


@dataclass
class Output:
    """One export under way: the things that its format reads, and its place."""

    store: Store
    selection: Selection
    path: Path  # temporary; at the end it takes the place of `place`
    place: Path
    pictures: Pictures
    undo: ExitStack  # called, last first, if the export fails or is cancelled
    # one sentence for each trajectory that could not be read so far
    damaged: list[str] = field(default_factory=list[str])
    trajectories: int = 0
    steps: int = 0
    running: int = 0

    def picture_folder(self, folder: Path) -> PictureFolder:
        """Return a folder for screenshots; its files are removed if the export fails."""
        made = PictureFolder(self.pictures, folder)
        self.undo.callback(made.withdraw)
        return made

    async def read(self, on_progress: OnProgress | None = None) -> AsyncIterator[Trajectory]:
        """Read the selected trajectories, one at a time, and count them.

        A damaged one is added to `damaged` and left out.

        Raises:
            StoreFailed: The store cannot be read, or the only trajectory is damaged.
        """
        ids = self.selection.trajectory_ids
        for number, trajectory_id in enumerate(ids, 1):
            try:
                trajectory = await self.store.load_trajectory(trajectory_id, turns=True)
            except DamagedRecord as exc:
                if not self.selection.whole_job:
                    raise
                self.damaged.append(f"{trajectory_id}: {exc}")
            else:
                self.trajectories += 1
                self.steps += len(trajectory.steps)
                self.running += trajectory.receipt is None
                yield trajectory
            if on_progress is not None:
                on_progress(number, len(ids))

    def manifest(self, label: str) -> str:
        """Return the JSON text that marks a folder as an export, with its gaps."""
        return to_json(
            {
                "format": label,
                "source": self.selection.id,
                "exported_by": f"hud-mcp {__version__}",
                "trajectories": self.trajectories,
                "steps": self.steps,
                "missing_pictures": sorted(self.pictures.missing),
                "damaged": self.damaged,
            }
        )


@dataclass(frozen=True)
class Option:
    """An option of a format on the command line; the format's function declares type and default.

    Attributes:
        flag: Its name, such as `--width`.
        help: One sentence for people.
        metavar: The placeholder of its value, such as `N`.
        between: The smallest and the largest number.
    """

    flag: str
    help: str
    metavar: str | None = None
    between: tuple[int, int] | None = None


@dataclass(frozen=True)
class Export:
    """A format of exports. Calling it exports a job, or one trajectory.

    A plugin's table `exports` names it, for `hud-mcp export --to NAME` and `export_record`.

    Attributes:
        name: Its name, which is also the end of the default path.
        sentence: One sentence for `hud-mcp export --help`.
        kind: `file` and `folder` for all trajectories; `files` for a file of one trajectory, and a
            folder of files of a job; `sent` if nothing is written here.
        write: Opened with the `Output` and the options as keyword arguments. Inside its `async
            with` block, the function that it gives is called with each trajectory, on a thread.
        options: The keyword arguments that are options of the command.
        label: Its name in the manifest of a folder, if that is another one.
    """

    name: str
    sentence: str
    kind: Literal["file", "folder", "files", "sent"]
    write: Callable[..., AbstractAsyncContextManager[Callable[[Trajectory], None]]]
    options: Mapping[str, Option] = field(default_factory=dict[str, Option])
    label: str | None = None

    async def __call__(
        self,
        store: Store,
        source_id: str,
        path: Path | None = None,
        *,
        force: bool = False,
        on_progress: OnProgress | None = None,
        **options: Any,
    ) -> ExportSummary:
        """Export a job, or one trajectory. One trajectory is held in memory at a time.

        Args:
            store: The store that has it.
            source_id: The id of the job or of the trajectory, or a unique beginning of it.
            path: The file or folder to write; None for a format that sends.
            force: Whether to replace an earlier export at that path.
            on_progress: A function that is called after each trajectory.
            **options: The options of the format.

        Raises:
            NotInstalled: The format needs an extra.
            SourceNotFound: There is neither such a job nor such a trajectory.
            OutputExists: Something is there already. Nothing was written.
            StoreFailed: The store cannot be read, or the only trajectory is damaged.
            HudMcpError: A receiver refused spans. It keeps those of earlier trajectories.
            OSError: The place cannot be written.

        After a failure or a cancellation, no written file stays.
        """
        self._check(path, options)
        selection = await select(store, source_id)
        place = path or Path()
        with ExitStack() as undo:
            pictures = Pictures(store)
            with self._new(place, selection, force=force) as temporary:
                output = Output(store, selection, temporary, place, pictures, undo)
                async with self.write(output, **options) as write:
                    async for trajectory in output.read(on_progress):
                        await anyio.to_thread.run_sync(write, trajectory)
                if self.makes_folder(selection):
                    text = output.manifest(self.label or self.name)
                    (temporary / MANIFEST).write_text(text, encoding="utf-8")
            undo.pop_all()  # it is written: nothing is taken back from here on
        return self._summary(output)

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """The keyword arguments of its function: the command's options, and others."""
        found = signature(self.write).parameters.items()
        return {name: each for name, each in found if each.kind is Parameter.KEYWORD_ONLY}

    def makes_folder(self, selection: Selection) -> bool:
        """Whether it writes a folder, and not one file."""
        return self.kind == "folder" or (self.kind == "files" and selection.whole_job)

    def default_path(self, selection: Selection) -> Path:
        """Return the path that the command writes if none is given: `ID.gif` or `ID-gif`."""
        return Path(f"{selection.id}{'-' if self.makes_folder(selection) else '.'}{self.name}")

    def _check(self, path: Path | None, options: Mapping[str, Any]) -> None:
        for name in options:
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                hint = did_you_mean(name, self.parameters)
                raise TypeError(f"{self.name} has no option {name!r}; its options: {known}.{hint}")
        if (path is None) != (self.kind == "sent"):
            said = "writes no file: leave out" if self.kind == "sent" else "writes files: give"
            raise TypeError(f"{self.name} {said} the path.")

    @contextmanager
    def _new(self, place: Path, selection: Selection, *, force: bool) -> Generator[Path]:
        if self.kind == "sent":
            yield place
            return
        new = new_folder if self.makes_folder(selection) else new_file
        with new(place, force=force) as temporary:
            yield temporary

    def _summary(self, output: Output) -> ExportSummary:
        return ExportSummary(
            format=self.name,
            path=output.place,
            trajectories=output.trajectories,
            steps=output.steps,
            pictures=len(output.pictures.found),
            missing_pictures=len(output.pictures.missing),
            running=output.running,
            damaged=tuple(output.damaged),
        )


def find_export(name: str) -> Export:
    """Find a format by its name, also one of another distribution.

    Raises:
        HudMcpError: No plugin has it; the text names those that there are.
    """
    found = find("exports", name)
    if found is None:
        known = sorted(names_of("exports"))
        raise HudMcpError(
            f"No format {name!r} of exports; there are {', '.join(known)}."
            f"{did_you_mean(name, known)}"
        )
    return found


async def export_record(
    store: Store, source_id: str, path: Path | None = None, *, to: str = "jsonl", **options: Any
) -> ExportSummary:
    """Export a job, or one trajectory, in the format `to`.

    Args:
        store: The store that has it.
        source_id: The id of the job or of the trajectory, or a unique beginning of it.
        path: The file or folder to write; None for a format that sends.
        to: `jsonl`, `parquet`, `atif`, `html`, `gif`, `otel`, or a format of another distribution.
        **options: `force`, `on_progress`, and the options of the format.

    Raises:
        HudMcpError: No plugin has such a format.
        NotInstalled, SourceNotFound, OutputExists, StoreFailed, OSError: As for `Export`.

    After a failure or a cancellation, no written file stays.
    """
    return await find_export(to)(store, source_id, path, **options)


async def select(store: Store, source_id: str) -> Selection:
    """Find a job, or a trajectory, by its id or a unique beginning of it.

    Raises:
        SourceNotFound: There is neither, or the job has no trajectory yet.
        StoreFailed: The store cannot be read.
    """
    job_id, trajectory_id = await _find(store, source_id)
    if job_id is None:
        return await _select_one(store, trajectory_id)
    job, ids = await store.load_job_ids(job_id)
    foreign = (await store.load_job_ids(job_id, foreign=True))[1]
    if not ids:
        raise SourceNotFound(f"Job {job_id!r} has no trajectories yet; there is nothing to export.")
    return Selection(job_id, job, tuple(ids), whole_job=True, foreign=len(foreign))


async def find_trajectories(store: Store, source_id: str) -> list[str]:
    """Return the ids of a job's trajectories, foreign ones too, or of the named trajectory.

    Raises:
        SourceNotFound: There is neither.
        StoreFailed: The store cannot be read.
    """
    job_id, trajectory_id = await _find(store, source_id)
    if job_id is None:
        return [trajectory_id]
    _, ids = await store.load_job_ids(job_id)
    return ids + (await store.load_job_ids(job_id, foreign=True))[1]


async def _find(store: Store, text: str) -> tuple[str | None, str]:
    """Return the id of a job, or None and the id of a trajectory.

    Raises:
        SourceNotFound: There is neither. An id with the prefix of a kind is of that kind only.
    """
    missing: list[str] = []
    if not text.startswith("traj-"):
        try:
            return await store.find_job_id(text), ""
        except SourceNotFound as exc:
            missing.append(str(exc))
    if not text.startswith("job-"):
        try:
            return None, await store.find_trajectory_id(text)
        except SourceNotFound as exc:
            missing.append(str(exc))
    raise SourceNotFound(" ".join(dict.fromkeys(missing)))  # an empty store says the same twice


async def _select_one(store: Store, trajectory_id: str) -> Selection:
    found = await store.load_trajectory(trajectory_id)
    job = (await store.load_job_ids(found.job_id))[0] if found.job_id else None
    return Selection(trajectory_id, job, (trajectory_id,), whole_job=False)


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
