"""WebArena: tasks on web sites that each user hosts, graded by answers, addresses and pages."""

import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from hud_mcp.environment.task import Task
from hud_mcp.loading.provenance import why_not_runnable
from hud_mcp.loading.public import Choice
from hud_mcp.plugins.sets.files import Files, InFolder, keep_file
from hud_mcp.plugins.sets.imports import ImportedSet, NotRunnable, as_tasks, json_rows, row, row_id

_TITLE = "WebArena"
_GYM = "webarena"
_TASKS = "config_files/test.raw.json"
_WINDOW = {"viewport_width": 1280, "viewport_height": 720}
"""The window of the authors' own runs."""
_NAMED = re.compile(r"__([A-Z_]+?)__")
"""The mark in place of a site's address; `__last_url__` in a program is not a mark."""
_AND = " |AND| "
_COMPARED = frozenset({"exact_match", "must_include", "fuzzy_match"})
_READ = ("document.", "[...document.")
_MEMBER = re.compile(r"func:gitlab_get_project_memeber_role\(__page__, '([^']+)'\)")
_POST = "func:reddit_get_post_url('__last_url__')"
_ASKED = (
    "Answer with nothing but what is asked for; where something is to be done, answer `done` when "
    "it is. Where that cannot be, answer `N/A` and why."
)


_LACKING = "no address for"


def read(files: Files, choice: Choice) -> list[Task]:
    """Read the rows, at the user's addresses of their sites."""
    rows = json_rows(files.read(_TASKS), _TASKS, _TITLE)
    tasks = as_tasks(rows, lambda _, raw: _task(files, raw, choice), _TITLE)
    if any((why_not_runnable(task) or "").startswith(_LACKING) for task in tasks):
        files.notes.append("Say where each site is, with --site NAME=ADDRESS.")
    return tasks


def _task(files: Files, raw: Mapping[str, Any], choice: Choice) -> Task:
    sites = [str(site) for site in raw["sites"]]
    places = {name.casefold(): _place(address) for name, address in choice.hosts.items()}
    setup: list[list[Any]] = []
    evaluate: list[list[Any]] = []
    why, starts = None, [str(raw["start_url"])]
    try:
        _check_sites(sites, places)
        starts = str(_placed(raw["start_url"], places)).split(_AND)
        setup = [*_login(files, raw), ["goto", starts[0]]]
        evaluate = _graders(cast("dict[str, Any]", _placed(raw["eval"], places)), raw["intent"])
    except NotRunnable as exc:
        why = str(exc)
    begin = [f"Begin at {starts[0]}, which is open."]
    begin += [f"It is about {each} too." for each in starts[1:]]
    begin += [f"The site {site} is at {places[site]}." for site in sites[1:] if site in places]
    here = [places[site] for site in sites if site in places]
    return row(
        row_id("webarena", raw["task_id"]),
        _GYM,
        "\n\n".join([str(raw["intent"]), " ".join(begin), _ASKED]),
        parts=sites,
        split="test",
        source=f"{files.published.credit(_TASKS)}, {raw['task_id']}",
        is_local=why is None,
        setup=setup,
        evaluate=evaluate,
        not_runnable=why,
        metadata={
            "sites": sites,
            "template": raw["intent_template_id"],
            "needs": _needs(raw, evaluate, setup),
        },
        context=dict(_WINDOW),
        config={"allow": sorted({urlsplit(each).netloc.rpartition("@")[2] for each in here})},
    )


def _place(address: str) -> str:
    return (address if "://" in address else f"http://{address}").rstrip("/")


def _check_sites(sites: list[str], places: Mapping[str, str]) -> None:
    if missing := [site for site in sites if site not in places]:
        raise NotRunnable(f"{_LACKING} {', '.join(missing)}")


def _placed(value: Any, places: Mapping[str, str]) -> Any:
    """Return a value with addresses in place of placeholders; raise NotRunnable if one lacks."""
    if isinstance(value, str):
        return _NAMED.sub(lambda found: _address(found[1], places), value)
    if isinstance(value, list):
        return [_placed(each, places) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {k: _placed(each, places) for k, each in cast("dict[str, Any]", value).items()}
    return value


def _address(name: str, places: Mapping[str, str]) -> str:
    site = name.casefold()
    if site not in places:
        raise NotRunnable(f"{_LACKING} {site}")
    return places[site]


def _login(files: Files, raw: Mapping[str, Any]) -> list[list[Any]]:
    """Return the call that signs the browser in with the cookies of the user's copy, if any."""
    state = str(raw.get("storage_state") or "").removeprefix("./")
    if not state or not isinstance(files, InFolder) or files.read_optional(state) is None:
        return []
    return [["webarena_login", keep_file(files.path(state))]]


def _needs(raw: Mapping[str, Any], evaluate: list[list[Any]], setup: list[list[Any]]) -> list[str]:
    needs = ["the sites"]
    if raw.get("storage_state") and not any(call[0] == "webarena_login" for call in setup):
        needs.append("a login")
    if any("fuzzy_match" in call[1] for call in evaluate if call[0] == "webarena_answer"):
        needs.append("judge")
    return needs


def _graders(evaluation: Mapping[str, Any], intent: str) -> list[list[Any]]:
    """Return the calls that grade a row, each to be 1; raise NotRunnable for other kinds."""
    calls: list[list[Any]] = []
    for kind in evaluation["eval_types"]:
        if kind == "string_match":
            references = evaluation["reference_answers"]
            if not references or not set(references) <= {
                "exact_match",
                "must_include",
                "fuzzy_match",
            }:
                raise NotRunnable("its answer is compared in a way that is not known")
            calls.append(
                ["webarena_answer", references, intent, str(evaluation.get("string_note") or "")]
            )
        elif kind == "url_match":
            if evaluation.get("url_note", "GOLD in PRED") != "GOLD in PRED":
                raise NotRunnable(f"its address is compared as {evaluation['url_note']!r}")
            calls.append(["webarena_address", evaluation["reference_url"].split(" |OR| ")])
        elif kind == "program_html":
            calls.append(["webarena_pages", [_target(each) for each in evaluation["program_html"]]])
        else:
            raise NotRunnable(f"the evaluator {kind}")
    if not calls:
        raise NotRunnable("it has no evaluator")
    return calls


def _target(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the check of one page, without the programs that the authors' own grader runs.

    Raise NotRunnable if the check needs such a program, or an unknown comparison.
    """
    url, locator = str(raw["url"]), str(raw["locator"]).strip()
    wanted = raw["required_contents"]
    target: dict[str, Any] = {"url": url, "read": locator, "prepare": raw.get("prep_actions", [])}
    if url == _POST:
        target["url"] = "post"
    elif url != "last" and not url.startswith(("http://", "https://")):
        raise NotRunnable("it asks the shop's own programs for its newest order")
    if found := _MEMBER.fullmatch(locator):
        target |= {"read": "", "member": found[1]}
    elif locator and not locator.startswith(_READ):
        raise NotRunnable("it asks the shop's own programs for a review")
    for how in ("exact_match", "must_include"):
        if how in wanted:
            return target | {how: wanted[how]}
    raise NotRunnable("its page is compared in a way that is not known")


SET = ImportedSet(_TITLE, read)
