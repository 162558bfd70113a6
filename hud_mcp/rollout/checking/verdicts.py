"""The verdict on each task, from the records of its probes alone."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from hud_mcp.analysis.tries import PASS_REWARD
from hud_mcp.base.text import clip
from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.registry import service
from hud_mcp.rollout.checking.leaks import Candidate, Leak, Trail, candidates, find_leaks
from hud_mcp.rollout.checking.probes import Probe, has_oracle, has_work, read_probe
from hud_mcp.rollout.checking.solver import Report, read_report
from hud_mcp.rollout.checking.surface import Seen
from hud_mcp.values.action import Value
from hud_mcp.values.outcome import NOT_BEGUN, UNFINISHED, Outcome

CUT_OFF = "The check "
"""The beginning of the reason if the end of the check itself cut a session off."""
_FAULTS = {
    Outcome.GRADING_FAILED: "Grading fails on {}",
    Outcome.ENVIRONMENT_FAILED: "Its setup or its world fails with {}",
    Outcome.LOST: "The server is lost with {}",
}
_STOPPED = " agent stopped "
_SHOWN_CHARS = 160
_NAMED = 5
"""The most probes with the same fault that are named; the others are counted."""

Verdict = Literal["proven", "unproven", "failed"]


class ProbeResult(Value):
    """The result of one probe."""

    probe: str
    place: int = Field(description="Its number among those with the same seed, from 0.")
    trajectory: str | None = Field(description="Its record's id; None where it was never begun.")
    outcome: str = Field(description="How it ended; `unfinished` or `not_begun` where it did not.")
    reward: float | None
    exactly: float | None = Field(description="The reward that it was to get; None for any.")
    below: float | None = Field(description="The reward that it must not reach; None for any.")
    left_out: bool = Field(description="Whether there was nothing to try.")
    ok: bool


class TaskVerdict(Value):
    """The verdict on one task."""

    task: str
    environment: str
    verdict: Verdict
    reasons: tuple[str, ...] = Field(description="Why it is not proven, a sentence each.")
    notes: tuple[str, ...] = Field(default=(), description="What else was seen.")
    weak: tuple[str, ...] = Field(
        default=(), description="How an agent can forge its grade, as its graders say."
    )
    probes: tuple[ProbeResult, ...] = ()


def is_done(record: Trajectory) -> bool:
    """Whether a probe's record is conclusive. It is not played again then."""
    if record.outcome is None:
        return False
    if record.outcome in (Outcome.GRADED, Outcome.GRADING_FAILED):
        return read_report(record.logs) is not None or record.outcome is Outcome.GRADING_FAILED
    return record.outcome is Outcome.CANCELLED and (
        read_report(record.logs) is not None or _STOPPED in (record.logs or "")
    )


def judge(
    task: Task,
    environment: Environment,
    probes: Sequence[Task],
    records: Mapping[str, Trajectory],
    *,
    shared: Sequence[Seen] = (),
    listed: Sequence[frozenset[str | int | float]] = (),
    refused: Mapping[str, str] | None = None,
) -> TaskVerdict:
    """Judge a task by its probes and their records, by the probes' task ids.

    `shared` has the texts that the environment shows to anybody, `listed` the choices of the
    server's schemas, and `refused` the reasons why probes could not start.
    """
    played = [_Played(read_probe(each), records.get(each.id)) for each in probes]
    for each, derived in zip(played, probes, strict=True):
        each.refused = (refused or {}).get(derived.id)
    reasons = _folded(fault for each in played if (fault := each.fault) is not None)
    reasons += _differences(played)
    reasons += _folded(_quoted(played, by_model=True))
    leaks = _leaks(task, environment, played, shared, listed)
    reasons += [str(leak) for leak in leaks if leak.fails]
    reasons += [text for each in played for text in each.report.findings]
    missing = [each for each in played if each.is_missing]
    open_points: list[str] = []
    if missing and not reasons:  # a fault decides already
        open_points.append(f"{len(missing)} of {len(played)} probes have not come to their end.")
    if not any(each.probe.kind == "oracle" for each in played):
        # Nobody has shown that it can be solved.
        open_points.append(_why_unproven(task, environment))
    verdict: Verdict = "failed" if reasons else "unproven" if open_points else "proven"
    return TaskVerdict(
        task=task.id,
        environment=task.env,
        verdict=verdict,
        reasons=tuple(dict.fromkeys([*reasons, *open_points])),
        notes=(
            *(str(leak) for leak in leaks if not leak.fails),
            *_folded(_quoted(played, by_model=False)),
            *dict.fromkeys(text for each in played for text in each.report.notes),
        ),
        weak=tuple(dict.fromkeys(text for each in played for text in _weaknesses(each.record))),
        probes=tuple(each.result() for each in played),
    )


def _weaknesses(record: Trajectory | None) -> Iterator[str]:
    receipt = record.receipt if record is not None else None
    parts = [receipt.info] if receipt is not None else []
    left = [*receipt.subscores] if receipt is not None else []
    while left:
        part = left.pop()
        parts.append(part.info)
        left += part.children
    yield from (str(info["weak"]) for info in parts if info.get("weak"))


def _why_unproven(task: Task, environment: Environment) -> str:
    if task.validation is not None and task.validation.oracle is None:
        return "Its row expects nothing of an oracle (`oracle` is null), so nobody has solved it."
    if task.prompt is not None:
        return "It has a prompt and so no oracle: nobody has shown that it can be solved."
    if has_oracle(task, environment):
        return "Its oracle has not played."
    where = environment.find_template(task.template).where
    return f"Its template has no oracle ({where}): nobody has shown that it can be solved."


@dataclass(frozen=True)
class _Fault:
    """A fault of one probe, with `{}` for the probe's name.

    Faults with one text become one sentence.
    """

    what: str
    text: str
    record: str | None = None


class _Played:
    def __init__(self, probe: Probe, record: Trajectory | None) -> None:
        self.probe = probe
        self.record = record
        self.report = read_report(record.logs if record else None) or Report()
        self.reward = record.reward if record else None
        self.refused: str | None = None

    @property
    def is_missing(self) -> bool:
        if self.record is None or self.record.outcome is None:
            return True
        return not is_done(self.record) and self.record.outcome not in (
            Outcome.ENVIRONMENT_FAILED,
            Outcome.GRADED,
        )

    @property
    def is_right_value(self) -> bool:
        """Whether a hidden value was graded as right: it is an answer then."""
        probe = self.probe
        # Other probes are no candidates.
        if probe.kind != "value" or self.report.left_out or not probe.below:
            return False
        return self.reward is not None and self.reward >= probe.below - (1 - PASS_REWARD)

    @property
    def fault(self) -> _Fault | None:
        record = self.record
        if record is None:
            text = f"It could not be started ({{}}): {_clip(self.refused)}"
            return _Fault(self.probe.shown, text) if self.refused else None
        if record.outcome is Outcome.GRADED:
            return None if self.report.left_out else self._of_reward(record.id)
        receipt = record.receipt
        error = _clip((receipt.error if receipt else None) or "no reason is recorded")
        # It says nothing of the task.
        if record.outcome is Outcome.LOST and error.startswith(CUT_OFF):
            return None
        if record.outcome is not None and (text := _FAULTS.get(record.outcome)) is not None:
            return _Fault(self.what, f"{text}: {error}", record.id)
        return self._of_no_grade(record) if is_done(record) else None

    def result(self) -> ProbeResult:
        record, probe = self.record, self.probe
        outcome = NOT_BEGUN if record is None else record.outcome or UNFINISHED
        return ProbeResult(
            probe=probe.name,
            place=probe.place,
            trajectory=record.id if record else None,
            outcome=outcome.value,
            reward=self.reward,
            exactly=probe.exactly,
            below=probe.below,
            left_out=self.report.left_out,
            ok=not self.is_missing and self.fault is None,
        )

    @property
    def what(self) -> str:
        probe = self.probe
        answer = self.report.answer if self.report.answer is not None else probe.answer
        value = probe.name.removeprefix("value-")
        text = {
            "oracle": "the oracle",
            "prompt": "the prompt as the answer",
            "last-line": "the prompt's last line as the answer",
            "words": "a text of the prompt's words in another order",
            "odd": f"the oracle's outputs left as {probe.shape!r}",
            "look": "what is seen as the answer",
            "attack": f"the attack {probe.name.removeprefix('attack-')!r} without any work",
            "leaks": "an empty answer after wrong calls",
            "asks": f"asking its user for the {probe.name.removeprefix('asks-')}",
            "gets": f"opening {', '.join(self.report.opened)} alone",
            "value": f"the value of {value!r} as the answer",
        }.get(probe.kind)
        if text is None:
            shown = _clip(answer or "", 60)
            text = "doing nothing" if probe.name == "nop" else f"the answer {shown!r}"
        return f"{text} (time {probe.place + 1})" if probe.place else text

    def _of_reward(self, record: str) -> _Fault | None:
        reward = self.reward or 0.0
        expected = self.probe.missed(reward)
        if expected is None:
            return None
        # An attack may well fail.
        told = self.report.error if self.probe.exactly is not None else None
        failed = f" {_clip(told)}" if told else ""
        return _Fault(self.what, f"Reward {reward:g} for {{}}; {expected}.{failed}", record)

    def _of_no_grade(self, record: Trajectory) -> _Fault | None:
        if self.report.refused and self.probe.exactly is None:  # a refused answer earned nothing
            return None
        why = self.report.error or self.report.refused
        if why is None:
            stopped = (record.logs or "").partition(_STOPPED)[2].partition("\n")[0]
            why = f"it was stopped {stopped}" if stopped else "it gave no answer"
        return _Fault(self.what, f"No grade for {{}}: {_clip(why)}", record.id)


def _folded(faults: Iterable[_Fault]) -> list[str]:
    """Return a sentence for each fault. Faults with one text are one, with the first record."""
    same: dict[str, list[_Fault]] = {}
    for fault in faults:
        same.setdefault(fault.text, []).append(fault)  # many probes fail for one reason
    found: list[str] = []
    for text, each in same.items():
        names = [fault.what for fault in each[:_NAMED]]
        names += [f"{len(each) - _NAMED} more"] if len(each) > _NAMED else []
        what = ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]
        said = text.replace("{}", what, 1)
        see = f" See {each[0].record}." if each[0].record else ""
        found.append(f"{said[0].upper()}{said[1:]}{see}")
    return found


def _quoted(played: Iterable[_Played], *, by_model: bool) -> Iterator[_Fault]:
    for each in played:
        users = [s for s in each.record.steps if s.kind == "user"] if each.record else []
        if users and each.record and (found := service("quoted by a user")(users, by_model)):
            says = f"Its user says its own {' and '.join(found)} word for word after {{}}."
            yield _Fault(each.what, says, each.record.id)


def _differences(played: Sequence[_Played]) -> list[str]:
    found: list[str] = []
    prompts = list(
        dict.fromkeys(p.record.prompt for p in played if p.record and p.record.prompt is not None)
    )
    if len(prompts) > 1:
        one, other = _apart(prompts[0], prompts[1])
        found.append(
            f"The same seed gives {len(prompts)} prompts: {one!r} and {other!r}. What is "
            "drawn at random is to follow from its arguments."
        )
    by_name: dict[str, list[_Played]] = {}
    for each in played:
        if each.record and each.record.outcome is Outcome.GRADED:
            by_name.setdefault(each.probe.name, []).append(each)
    for same in by_name.values():
        # Sums of floats may differ by their order.
        rewards = sorted({round(each.reward or 0.0, 9) for each in same})
        if len(rewards) > 1:
            shown = " and ".join(f"{reward:g}" for reward in rewards)
            found.append(f"The same seed and {same[0].what} are graded {shown}.")
    return found


def _apart(one: str, other: str) -> tuple[str, str]:
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    start = max(0, at - 20)  # some text before shows the place
    return one[start : start + 60], other[start : start + 60]


def _leaks(
    task: Task,
    environment: Environment,
    played: Iterable[_Played],
    shared: Sequence[Seen],
    listed: Sequence[frozenset[str | int | float]],
) -> list[Leak]:
    every = list(played)
    looked = [each for each in every if each.probe.kind == "leaks"]
    # Shared texts come in by the argument.
    seen = [text for each in looked for text in each.report.seen if not text.shared]
    seen += [text for text in shared if text.template in (None, task.template)]
    prompt = next((each.record.prompt or "" for each in looked if each.record), "")
    found = candidates(task, environment)
    full = {each.report.answer for each in every if each.is_right_value}
    found = [c.proven("which is graded as right") if c.text in full else c for c in found]
    found += [
        Candidate(answer, "oracle", "the oracle's answer", certain=True)
        for each in every
        if each.probe.kind == "oracle" and (answer := each.report.answer)
        if not has_work(environment) or answer in full  # where the answer is all of the work
    ]
    return find_leaks(found, seen, prompt, listed, _trail(every))


def _trail(played: Iterable[_Played]) -> Trail:
    steps = [
        step
        for each in played
        if each.probe.kind == "oracle" and each.record
        for step in each.record.steps
        if step.kind != "response"
    ]
    return Trail(
        said=json.dumps([step.actions for step in steps], ensure_ascii=False),
        saw="\n".join(step.observation_text or "" for step in steps),
    )


def _clip(text: str | None, chars: int = _SHOWN_CHARS * 3) -> str:
    return clip(" ".join((text or "").split()), chars)
