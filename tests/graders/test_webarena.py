"""WebArena's rows run on sites of the user's own, and are graded by its published rules."""

import hashlib
import importlib.util
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from judge_server import judge_server

from hud_mcp import GymMakeException, load_taskset
from hud_mcp.loading.public import Choice, import_set
from hud_mcp.plugins.hud import gym
from hud_mcp.plugins.sets import webarena
from hud_mcp.task import Task

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[2]
FILE = "config_files/test.raw.json"


def raw(number: int, kinds: list[str], site: str = "shopping", **more: Any) -> dict[str, Any]:
    """A row as it is published."""
    evaluation = {
        "eval_types": kinds, "reference_answers": None, "reference_url": "", "program_html": [],
        **more,
    }  # fmt: skip
    return {
        "sites": [site], "task_id": number, "require_login": True,
        "storage_state": f"./.auth/{site}_state.json", "start_url": f"__{site.upper()}__/lamps",
        "geolocation": None, "intent_template": "", "instantiation_dict": {},
        "intent": "What does the lamp cost?", "require_reset": False, "eval": evaluation,
        "intent_template_id": 7,
    }  # fmt: skip


WISHES = "document.querySelector('.wishes').outerText"
ROWS = [
    raw(0, ["string_match"], reference_answers={"exact_match": "42.50"}),
    raw(1, ["string_match"], reference_answers={"fuzzy_match": ["half of 85"]}),
    raw(2, ["string_match"], reference_answers={"fuzzy_match": "N/A"}, string_note="No lamp."),
    raw(3, ["url_match"], reference_url="__SHOPPING__/lamps?sort=price", url_note="GOLD in PRED"),
    raw(4, ["program_html", "url_match"], reference_url="__SHOPPING__/lamps", program_html=[
        {"url": "__SHOPPING__/wishes", "locator": WISHES,
         "required_contents": {"must_include": ["Lamp & Shade |OR| Sofa", "1"]}},
        {"url": "last", "locator": "", "required_contents": {"must_include": ["wished by emma"]}},
    ]),
    raw(5, ["program_html"], program_html=[
        {"url": "last", "locator": "document.querySelector('#note').value",
         "prep_actions": ["document.querySelector('#open').click()"],
         "required_contents": {"exact_match": "to be opened"}},
    ]),
    raw(8, ["program_html"], program_html=[
        {"url": "last", "locator": "document.querySelector('#note').value",
         "required_contents": {"exact_match": "to be opened"}},
    ]),
    raw(6, ["url_match"], "gitlab", reference_url="__GITLAB__/x"),
    raw(7, ["program_html"], program_html=[
        {"url": "func:shopping_get_latest_order_url()", "locator": "",
         "required_contents": {"must_include": ["B07"]}},
    ]),
]  # fmt: skip


@dataclass
class Shop:
    """A shop on a loopback port.

    Attributes:
        url: Its address.
        wishes: Who wished for what.
    """

    url: str = ""
    wishes: list[str] = field(default_factory=list[str])


@pytest.fixture
def shop() -> Iterator[Shop]:
    """A site with one product, a wish list that a form changes, and a login that is a cookie."""
    kept = Shop()

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/wishes"):
                body = f"<ul class=wishes><li>{len(kept.wishes)}: {', '.join(kept.wishes)}</ul>"
            else:
                body = (
                    "<h1>Lamps</h1><p>42.50 EUR<form method=post action=/wish><button>Wish"
                    "</button></form><button id=open onclick=\"document.getElementById('note')"
                    ".value = 'to be opened'\">Open</button><input id=note>"
                    "<script>document.querySelector = () => ({value: 'to be opened'})</script>"
                )
            if kept.wishes:
                body += f"<p>wished by {self.headers.get('cookie', '').partition('=')[2]}"
            self.reply(200, "text/html", f"<title>Shop</title>{body}")

        def do_POST(self) -> None:
            kept.wishes.append("Lamp &amp; Shade")
            self.send_response(303)
            self.send_header("location", "/lamps")
            self.send_header("content-length", "0")
            self.end_headers()

        def reply(self, status: int, kind: str, body: str) -> None:
            data = body.encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kept.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield kept
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's copy of the set, with a login of the shop."""
    folder = tmp_path / "sets" / "webarena"
    (folder / "config_files").mkdir(parents=True)
    data = orjson.dumps(ROWS)
    (folder / FILE).write_bytes(data)
    (folder / ".auth").mkdir()
    cookies = [{"name": "user", "value": "emma", "domain": "127.0.0.1", "path": "/"}]
    state = orjson.dumps({"cookies": cookies, "origins": []})
    (folder / ".auth" / "shopping_state.json").write_bytes(state)
    digests = {FILE: hashlib.sha256(data).hexdigest()}
    place = replace(webarena.SET.published, sha256=digests)
    monkeypatch.setattr(webarena.SET, "published", place)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "store.sqlite3"))
    monkeypatch.setenv("HUD_MCP_DATASETS", str(tmp_path / "sets"))
    monkeypatch.setenv("HUD_MCP_JUDGE_MODEL", "reader")
    monkeypatch.chdir(tmp_path)
    return folder


async def played(task: Task, actions: list[dict[str, Any]], answer: str) -> float:
    """The reward of a task after some actions and an answer."""
    env = await gym.make(task)
    try:
        await env.step([*actions, {"type": "response", "text": answer}])
        await env.evaluate()
    finally:
        await env.close()
    assert env.reward is not None
    return env.reward


async def test_rows_say_which_sites_they_lack() -> None:
    """A site without an address, and a grader that is a program of the shop, do not run here."""
    imported = import_set("WebArena", Choice(hosts={"shopping": "http://127.0.0.1:8"}))
    assert imported is not None
    assert (imported.counted.rows, imported.counted.runnable) == (9, 7)
    assert dict(imported.counted.needs) == {"the sites": 7, "judge": 2}
    assert dict(imported.counted.reasons) == {
        "no address for gitlab": 1,
        "it asks the shop's own programs for its newest order": 1,
    }
    assert imported.notes == ("Say where each site is, with --site NAME=ADDRESS.",)
    tasks = await load_taskset("WebArena-gitlab")
    assert tasks.ids == ("webarena-6",)
    with pytest.raises(GymMakeException, match="no address for gitlab"):
        await gym.make(tasks[0])


@pytest.mark.long
@pytest.mark.browser
async def test_each_evaluator_grades_on_a_site_of_the_users_own(shop: Shop) -> None:
    """An answer, an address, a page opened anew with the agent's login, and the page at the end."""
    with anyio.fail_after(240):
        rows = await load_taskset("WebArena", hosts={"shopping": shop.url})
        assert shop.url in (rows["webarena-0"].prompt or "")
        assert await played(rows["webarena-0"], [], "'42.50' ") == 1.0
        assert await played(rows["webarena-0"], [], "42.5") == 0.0
        address = {"url": f"{shop.url}/lamps?sort=price&page=2"}
        by_price = {"type": "custom", "action": "goto", "args": address}
        assert await played(rows["webarena-3"], [by_price], "done") == 1.0
        assert await played(rows["webarena-3"], [], "done") == 0.0
        assert await played(rows["webarena-4"], [], "done") == 0.0
        wish = {"type": "click", "selector": "form button"}
        assert await played(rows["webarena-4"], [wish], "done") == 1.0
        assert shop.wishes == ["Lamp &amp; Shade"]
        assert await played(rows["webarena-5"], [], "done") == 1.0
        # The page's own document.querySelector says so too, and is not asked.
        assert await played(rows["webarena-8"], [], "done") == 0.0


@pytest.mark.browser
async def test_what_an_answer_means_is_asked_of_the_judge(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the question and the reference; a bare `N/A` and no answer ask nobody."""
    with anyio.fail_after(240):
        rows = await load_taskset("WebArena", hosts={"shopping": shop.url})

        def reply(asked: Any) -> str:
            met = "42.5" in asked.text or "there is no lamp" in asked.text
            return orjson.dumps(
                {"criterion_status": "MET" if met else "UNMET", "explanation": "."}
            ).decode()

        async with judge_server(reply) as server:
            monkeypatch.setenv("HUD_MCP_JUDGE_URL", server.url)
            assert await played(rows["webarena-1"], [], "42.5") == 1.0
            assert "half of 85" in server.asked[0].text
            assert "What does the lamp cost?" in server.asked[0].text
            assert await played(rows["webarena-1"], [], "") == 0.0
            assert await played(rows["webarena-2"], [], "N/A") == 1.0
            assert len(server.asked) == 1
            assert await played(rows["webarena-2"], [], "N/A: there is no lamp") == 1.0
            assert "No lamp." in server.asked[1].text
            assert await played(rows["webarena-2"], [], "It costs 42.") == 0.0


def rules() -> Any:
    """The rules as a module."""
    place = ROOT / "environments" / "webarena" / "webarena_rules.py"
    spec = importlib.util.spec_from_file_location("webarena_rules_here", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("wanted", "answer", "alone", "found"),
    [
        ("0", "there are 10", True, False),
        ("0", "there are 10", False, True),
        ("0", "there are 0.", True, True),
        ("0", "$0", True, True),
        ("0", "1,000", True, False),
        ("Quest Band", "the quest band, I think", True, True),
        ("'Quest'", "QUEST", True, True),
    ],
)
def test_a_single_character_has_to_be_a_word_of_its_own(
    wanted: str, answer: str, *, alone: bool, found: bool
) -> None:
    """Where it is all that is looked for; case and one pair of quotes do not count."""
    assert rules().is_included(wanted, answer, alone=alone) is found


@pytest.mark.parametrize(
    ("address", "references", "fits"),
    [
        ("http://shop/lamps/", ["http://shop/lamps"], True),
        ("http://shop/lamps/7?x=1", ["http://shop/lamps"], True),
        ("http://other/?u=http://shop/lamps", ["http://shop/lamps"], False),
        ("http://shop/lamps?sort=a&sort=b", ["http://shop/lamps?sort=b"], True),
        ("http://shop/lamps?sort=ab", ["http://shop/lamps?sort=b"], False),
        ("http://shop/sofas?sort=a", ["http://shop/lamps?sort=b", "http://shop/sofas?sort=a"],
         True),
    ],
)  # fmt: skip
def test_an_address_fits_by_host_path_and_arguments(
    address: str, references: list[str], *, fits: bool
) -> None:
    """What the reference has must be in the address; what is more there does not count."""
    assert rules().address_fits(address, references) is fits


def test_the_address_of_a_comment_leads_to_its_post() -> None:
    """As the forum's rows are graded; any other address stays."""
    post = rules().post_address
    assert post("http://forum/f/lamps/12/a-title/-/comment/3") == "http://forum/f/lamps/12/"
    assert post("http://forum/f/lamps") == "http://forum/f/lamps"
    assert post("http://forum/user/emma/x") == "http://forum/user/emma/x"
