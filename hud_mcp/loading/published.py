"""Sets of tasks that people know by name: where each is published, by whom, under which licence."""

from dataclasses import dataclass

__all__ = ["PLACE_VARIABLE", "PUBLISHED", "Published", "Token", "find_published"]

PLACE_VARIABLE = "HUD_MCP_DATASETS"
"""A folder or an address that stands for every published place."""


@dataclass(frozen=True)
class Token:
    """What a place wants to know before it gives a set away.

    Attributes:
        host: The only host that is sent it.
        variables: Environment variables that may hold it, the first one first.
        terms: Where a person accepts the terms.
    """

    host: str
    variables: tuple[str, ...]
    terms: str


@dataclass(frozen=True)
class Published:
    """A set of tasks, and where it comes from.

    Attributes:
        key: Its folder, in caches and in a place of the user's own.
        title: What people call it; a part of it is `TITLE-PART`.
        about: What it is, in a few words.
        base: The address before the paths of its files, of one version.
        page: Where a person finds it.
        licence: Of its rows.
        parts: How its parts are called, with an example.
        importer: The module that reads it.
        token: What its place wants to know, or None.
        extra: The optional dependency that it needs, or None.
    """

    key: str
    title: str
    about: str
    base: str
    page: str
    licence: str
    parts: str
    importer: str
    token: Token | None = None
    extra: str | None = None


_RAW = "https://raw.githubusercontent.com"

PUBLISHED = (
    Published(
        key="webvoyager",
        title="WebVoyager",
        about="tasks on live web sites",
        base=f"{_RAW}/MinorJerry/WebVoyager/5a7896738c10bfb8b9edccce6bb0e0411f8ae569",
        page="data/WebVoyager_data.jsonl of github.com/MinorJerry/WebVoyager",
        licence="Apache-2.0",
        parts="a site: WebVoyager-Allrecipes",
        importer="webvoyager",
    ),
    Published(
        key="gaia",
        title="GAIA",
        about="questions that take tools and the web",
        base="https://huggingface.co/datasets/gaia-benchmark/GAIA/resolve/"
        "682dd723ee1e1697e00360edccf2366dc8418dd9",
        page="the data set gaia-benchmark/GAIA on Hugging Face, to those who accept its terms",
        licence="gated: it may not be passed on",
        parts="a level or a split: GAIA-level1, GAIA-validation",
        importer="gaia",
        token=Token(
            "huggingface.co",
            ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"),
            "https://huggingface.co/datasets/gaia-benchmark/GAIA",
        ),
    ),
    Published(
        key="osworld",
        title="OSWorld",
        about="tasks on an Ubuntu desktop",
        base=f"{_RAW}/xlang-ai/OSWorld/e74232a5a8dca90c96a823255cbda1900c8fa66b",
        page="evaluation_examples of github.com/xlang-ai/OSWorld",
        licence="Apache-2.0",
        parts="a domain, or small: OSWorld-os, OSWorld-small; OSWorld-Ubuntu is all of it",
        importer="osworld",
    ),
    Published(
        key="agentbench_os",
        title="AgentBench-OS",
        about="questions and work in a shell",
        base=f"{_RAW}/THUDM/AgentBench/578c5e9f706fc2dd96188ca6c8cf9095ca0c6528",
        page="data/os_interaction of github.com/THUDM/AgentBench",
        licence="Apache-2.0",
        parts="a split: AgentBench-OS-dev",
        importer="agentbench",
    ),
    Published(
        key="intercode_bash",
        title="InterCode-bash",
        about="requests that one line of bash answers",
        base=f"{_RAW}/princeton-nlp/intercode/c3e46d827cfc9d4c704ec078f7abf9f41e3191d8",
        page="data/nl2bash of github.com/princeton-nlp/intercode",
        licence="MIT",
        parts="a file system: InterCode-bash-fs1",
        importer="intercode",
    ),
    Published(
        key="webarena",
        title="WebArena",
        about="tasks on web sites that you host",
        base=f"{_RAW}/web-arena-x/webarena/f62e0b99bc7d9e0cd996d0cf5ebb2225780ec279",
        page="config_files/test.raw.json of github.com/web-arena-x/webarena",
        licence="Apache-2.0",
        parts="a site: WebArena-shopping",
        importer="webarena",
    ),
    Published(
        key="reasoning_gym",
        title="ReasoningGym",
        about="generated questions with verifiers",
        base="",
        page="the package reasoning-gym",
        licence="Apache-2.0",
        parts="a generator: ReasoningGym-leg_counting",
        importer="reasoning",
        extra="reasoning",
    ),
)
"""Each is read by a module of this folder."""


def find_published(name: str) -> tuple[Published, str | None] | None:
    """The set of a name, and the part of it that the name says; None where it is no such name.

    Case does not count: `GAIA-level1` and `gaia-level1` are one.
    """
    plain = name.casefold()
    for each in PUBLISHED:
        title = each.title.casefold()
        if plain == title:
            return each, None
        if plain.startswith(f"{title}-") and len(plain) > len(title) + 1:
            return each, name[len(title) + 1 :]
    return None
