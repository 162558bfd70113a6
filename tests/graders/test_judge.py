"""A judge behind real HTTP, in both formats: what it says is a score, that it fails is none."""

import asyncio
import email.utils
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_server import Asked, JudgeServer, Script, judge_server, says, status
from starlette.responses import PlainTextResponse
from waiting import PATIENCE_S

from hud_mcp.errors import GraderFailed
from hud_mcp.graders import LLMJudgeGrader, combine
from hud_mcp.graders.endpoint import Unreadable, find_endpoint
from hud_mcp.graders.judge import VerdictCache, _question, _read_criteria, read_verdict
from hud_mcp.values.grade import SubScore

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No keys, no verdicts of before, and short waits."""
    for name in ("URL", "MODEL", "API_KEY", "CACHE"):
        monkeypatch.delenv(f"HUD_MCP_JUDGE_{name}", raising=False)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(LLMJudgeGrader, "backoff_s", 0.01)
    monkeypatch.setattr(LLMJudgeGrader, "limiter", anyio.CapacityLimiter(8))
    VerdictCache.forget()


@pytest.fixture
async def serve() -> AsyncIterator[Any]:
    """Start servers; they end with the test."""
    async with AsyncExitStack() as stack:

        async def start(script: Script) -> JudgeServer:
            return await stack.enter_async_context(judge_server(script))

        yield start


async def judge(server: JudgeServer, /, **options: Any) -> SubScore:
    """Grade, within a bound."""
    options = {"base_url": server.url, "model": "m", "answer": "Paris", **options}
    with anyio.fail_after(PATIENCE_S):
        return await LLMJudgeGrader.grade(weight=1.0, **{"criteria": ["It is right"], **options})


def files_in(folder: Path) -> list[Path]:
    """Every file under a folder."""
    return [path for path in folder.rglob("*") if path.is_file()]


def by_criterion(met: dict[str, bool]) -> Script:
    """Replies by which criterion is asked of."""

    def reply(asked: Asked) -> str:
        (name,) = [name for name in met if f"\n{name}\n" in asked.text]
        return says("MET" if met[name] else "UNMET", f"of {name}")

    return reply


@pytest.mark.parametrize("speaks", ["openai", "anthropic"])
async def test_each_criterion_is_asked_of_in_either_format(serve: Any, speaks: Any) -> None:
    """The value is the weighted share; each criterion is a child with the judge's reason."""
    server = await serve(by_criterion({"right": True, "short": False, "rude": True}))
    part = await judge(
        server, criteria=["right", ("short", 2.0), ["rude", -0.5]], question="Where?", speaks=speaks
    )
    assert part.value == pytest.approx((1 - 0.5) / 3)
    assert [(c.name, c.value, c.weight) for c in part.children] == [
        ("right", 1.0, 1.0),
        ("short", 0.0, 2.0),
        ("rude", 1.0, -0.5),
    ]
    assert part.children[0].info == {"reason": "of right"}
    assert part.info["model"] == "m"
    path = "/v1/messages" if speaks == "anthropic" else "/v1/chat/completions"
    assert {asked.path for asked in server.asked} == {path}
    for asked in server.asked:
        assert "<question>\nWhere?\n</question>" in asked.text
        assert "\nParis\n" in asked.text
        assert ("kind='unwanted'" in asked.text) is ("rude" in asked.text)
        assert ("response_format" in asked.body) is (speaks == "openai")
        assert ("tool_choice" in asked.body) is (speaks == "anthropic")


@pytest.mark.parametrize(
    ("weights", "met", "value"),
    [
        ([1, 1], [True, True], 1.0),
        ([1, 3], [True, False], 0.25),
        ([1, -1], [True, True], 0.0),
        ([1, -5], [True, True], 0.0),
        ([-1, -3], [False, False], 1.0),
        ([-1, -3], [True, False], 0.75),
        ([-1, -3], [True, True], 0.0),
        ([0, 2], [False, True], 1.0),
    ],
)
async def test_weights_make_a_value_as_hud_s_do(
    serve: Any, weights: list[float], met: list[bool], value: float
) -> None:
    """Mistakes are taken off; where there are only mistakes, none is full marks."""
    names = ["one", "two"]
    server = await serve(by_criterion(dict(zip(names, met, strict=True))))
    part = await judge(server, criteria=list(zip(names, weights, strict=True)))
    assert part.value == pytest.approx(value)


async def test_what_is_refused_for_now_is_asked_again(serve: Any) -> None:
    """After 429 and 5xx, later each time."""
    codes = [429, 503, 529, 500]
    server = await serve(lambda a: status(codes[a.number]) if a.number < 4 else says("MET"))
    assert (await judge(server)).value == 1.0
    gaps = [b.at - a.at for a, b in zip(server.asked, server.asked[1:], strict=False)]
    assert len(gaps) == 4
    assert all(gap >= 0.01 * 2**n for n, gap in enumerate(gaps))


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_a_server_that_asks_to_wait_is_waited_for(serve: Any, form: str) -> None:
    """As long as its Retry-After says, in either of its forms."""
    after = "0.4" if form == "seconds" else email.utils.formatdate(time.time() + 2, usegmt=True)
    refusal = status(429, Retry_After=after)
    server = await serve(lambda a: refusal if a.number == 0 else says("MET"))
    assert (await judge(server)).value == 1.0
    first, second = server.asked
    assert second.at - first.at >= (0.39 if form == "seconds" else 0.9)


async def test_a_wait_that_is_too_long_is_told_at_once(serve: Any) -> None:
    """Nobody waits for an hour to be told that the time is over."""
    server = await serve(lambda _: status(429, Retry_After="3600"))
    with anyio.fail_after(PATIENCE_S), pytest.raises(GraderFailed, match="asks to wait for 3600 s"):
        await judge(server, timeout_seconds=600)
    assert len(server.asked) == 1


async def test_a_server_that_never_comes_round_is_no_score(serve: Any) -> None:
    """Five tries, and the text says what the last one was."""
    server = await serve(lambda _: status(500))
    with pytest.raises(GraderFailed, match=r"no reply in 5 tries; the last: status 500"):
        await judge(server)
    assert len(server.asked) == 5


async def test_nobody_there_is_no_score(serve: Any) -> None:
    """A refused connection is tried again, and told."""
    server = await serve(lambda _: says("MET"))
    gone = JudgeServer("http://127.0.0.1:1/v1", server.script)
    with pytest.raises(GraderFailed, match=r"no reply in 5 tries; the last: ConnectError"):
        await judge(gone)


async def test_a_judge_that_hangs_is_given_up_in_time(serve: Any) -> None:
    """The bound is of all of it together."""
    given_up = anyio.Event()

    async def hang(_: Asked) -> str:
        await given_up.wait()
        return says("MET")

    server = await serve(hang)
    with anyio.fail_after(PATIENCE_S), pytest.raises(GraderFailed, match=r"longer than 0\.3 s"):
        await judge(server, timeout_seconds=0.3, criteria=["a", "b", "c"])
    given_up.set()


@pytest.mark.parametrize("code", [401, 403, 404])
async def test_a_refusal_for_good_is_told_once_and_without_the_key(
    serve: Any, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what the server says, apart from the key that some servers repeat."""
    monkeypatch.setenv("HUD_MCP_JUDGE_API_KEY", "sk-very-secret")
    server = await serve(lambda a: status(code, f"bad key {a.headers['authorization']}"))
    with pytest.raises(GraderFailed, match=f"refused: status {code}") as caught:
        await judge(server)
    assert "sk-very-secret" not in str(caught.value)
    assert len(server.asked) == 1


async def test_the_key_is_sent_and_recorded_nowhere(
    serve: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not in the part, nor in the folder of verdicts."""
    monkeypatch.setenv("MY_JUDGE", "sk-very-secret")
    server = await serve(lambda _: says("MET"))
    secret = server.url.replace("http://", "http://user:pass@")
    for speaks in ("openai", "anthropic"):
        part = await judge(
            server, api_key_env="MY_JUDGE", speaks=speaks, base_url=secret, cache_dir=tmp_path
        )
        assert "secret" not in part.model_dump_json()
        assert "user:pass" not in part.model_dump_json()
    assert server.asked[1].headers["x-api-key"] == "sk-very-secret"
    assert server.asked[1].headers["anthropic-version"]
    files = files_in(tmp_path)
    assert len(files) == 2
    assert not any(b"secret" in p.read_bytes() for p in files)


async def test_the_same_question_is_asked_once(serve: Any, tmp_path: Path) -> None:
    """In this process, and by its folder in another one; anything else is another question."""
    server = await serve(lambda _: says("MET", "once"))
    first = await judge(server, cache_dir=tmp_path)
    again = await judge(server)
    assert (len(server.asked), first.children[0].info) == (1, {"reason": "once"})
    assert again.children[0].info == {"reason": "once", "cached": True}
    VerdictCache.forget()  # as another process begins
    assert (await judge(server, cache_dir=tmp_path)).children[0].info["cached"] is True
    assert len(server.asked) == 1
    changes: list[dict[str, Any]] = [
        {"answer": "Rome"},
        {"criteria": ["It is long"]},
        {"criteria": [("It is right", -1)]},
        {"question": "Where?"},
        {"model": "other"},
        {"speaks": "anthropic"},
        {"cache": False},
    ]
    for number, change in enumerate(changes, start=2):
        await judge(server, **change)
        assert len(server.asked) == number, change


async def test_a_damaged_verdict_is_asked_for_again(serve: Any, tmp_path: Path) -> None:
    """A folder that somebody else wrote into breaks no grading."""
    server = await serve(lambda _: says("UNMET"))
    await judge(server, cache_dir=tmp_path)
    (file,) = files_in(tmp_path)
    for damage in (b"", b"{", b'{"met": 1}', b"[]", b'{"met": "MET", "reason": ""}'):
        file.write_bytes(damage)
        VerdictCache.forget()
        assert (await judge(server, cache_dir=tmp_path)).value == 0.0
    assert len(server.asked) == 6
    VerdictCache.forget()
    (tmp_path / "file").write_text("")
    assert (await judge(server, cache_dir=tmp_path / "file")).value == 0.0


async def test_no_more_requests_are_made_at_once_than_are_allowed(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all sessions together."""
    monkeypatch.setattr(LLMJudgeGrader, "limiter", anyio.CapacityLimiter(3))

    async def slow(_: Asked) -> str:
        await anyio.sleep(0.02)
        return says("MET")

    server = await serve(slow)
    names = [f"criterion {i}" for i in range(8)]
    parts = await asyncio.gather(
        *(judge(server, criteria=names, answer=str(i), cache=False) for i in range(3))
    )
    assert [part.value for part in parts] == [1.0] * 3
    assert len(server.asked) == 24
    assert server.at_once == 3


async def test_a_failing_criterion_ends_the_others(serve: Any) -> None:
    """One that cannot be judged is not a score at all, and nobody waits for the rest."""
    told = anyio.Event()

    async def reply(asked: Asked) -> Any:
        if "\nbad\n" in asked.text:
            return status(404, "no such model")
        await told.wait()
        return says("MET")

    server = await serve(reply)
    with anyio.fail_after(PATIENCE_S), pytest.raises(GraderFailed, match="no such model"):
        await combine(
            LLMJudgeGrader.grade(
                weight=1.0, criteria=["good", "bad"], base_url=server.url, model="m"
            )
        )
    told.set()


@pytest.mark.parametrize(
    ("left_out", "speaks"),
    [
        ("response_format", "openai"),
        ("temperature", "openai"),
        ("max_tokens", "openai"),
        ("tools", "anthropic"),
        ("temperature", "anthropic"),
    ],
)
async def test_what_a_server_does_not_take_is_left_out(
    serve: Any, left_out: str, speaks: Any
) -> None:
    """It is found out once, and the next question is asked in that way at once."""

    def reply(asked: Asked) -> Any:
        if left_out in asked.body:
            hint = " Use max_completion_tokens." if left_out == "max_tokens" else ""
            return status(400, f"Unsupported parameter: {left_out}.{hint}")
        assert left_out != "max_tokens" or asked.body["max_completion_tokens"] > 0
        return says("MET")

    server = await serve(reply)
    assert (await judge(server, speaks=speaks)).value == 1.0
    tried = len(server.asked)
    assert tried <= 3
    assert (await judge(server, speaks=speaks, answer="other")).value == 1.0
    assert len(server.asked) == tried + 1


async def test_a_request_that_is_never_understood_is_told(serve: Any) -> None:
    """In the server's own words, after a few forms of it."""
    server = await serve(lambda _: status(400, "context length exceeded"))
    with pytest.raises(GraderFailed, match=r"status 400: .*context length exceeded"):
        await judge(server)
    assert len(server.asked) == 3


async def test_a_reply_that_cannot_be_read_is_asked_for_once_more(serve: Any) -> None:
    """Then there is no score: neither 0 nor 1 is made of it."""
    server = await serve(lambda a: "Hm." if a.number == 0 else says("MET"))
    assert (await judge(server)).value == 1.0
    assert "Reply with the JSON object alone." in server.asked[1].text
    odd = await serve(lambda _: "I cannot say.")
    with pytest.raises(GraderFailed, match=r"replied twice without a verdict.*I cannot say"):
        await judge(odd)
    assert len(odd.asked) == 2
    page = await serve(lambda _: PlainTextResponse("<html>Welcome</html>"))
    with pytest.raises(GraderFailed, match="not a reply in the openai format"):
        await judge(page)
    endless = await serve(lambda _: PlainTextResponse("x" * 5_000_000))
    with pytest.raises(GraderFailed, match="more than 4194304 bytes"):
        await judge(endless)


@pytest.mark.parametrize(
    ("reply", "met"),
    [
        ('{"criterion_status": "MET", "explanation": "x"}', True),
        ('{"criterion_status": "unmet"}', False),
        ('```json\n{"criterion_status": "UNMET", "explanation": "x"}\n```', False),
        ('I think {so}: {"criterion_status": "MET", "explanation": "a {b}"} thanks', True),
        ("MET", True),
        ("Verdict: UNMET.", False),
        ("It is NOT MET, sadly.", False),
        ("un-met? UN-MET", False),
        ('{"criterion_status": "MET", "expl', True),
    ],
)
def test_a_verdict_is_read_in_the_forms_that_models_use(reply: str, met: bool) -> None:  # noqa: FBT001
    """An object, in whatever it is wrapped, or the bare word."""
    assert read_verdict(reply).met is met


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "met",
        "METEOR",
        "MET or UNMET",
        '{"criterion_status": "PARTLY"}',
        '{"criterion_status": null}',
        '{"verdict": "yes"}',
        '{"criterion_status": "MET"} {"criterion_status": "UNMET"}',
        'The response says {"criterion_status": "MET"}, but {"criterion_status": "UNMET"}',
        "[" * 50_000,
        "{" * 50_000,
    ],
)
def test_what_is_no_one_verdict_is_not_guessed(reply: str) -> None:
    """Above all not where an answer that is quoted brings a verdict of its own."""
    with pytest.raises(Unreadable):
        read_verdict(reply)


@given(st.text())
def test_any_reply_is_a_verdict_or_unreadable(reply: str) -> None:
    """Nothing else comes of it."""
    try:
        read_verdict(reply)
    except Unreadable:
        return


@settings(max_examples=50)
@given(st.text(), st.text(min_size=1).filter(str.strip))
def test_no_answer_can_leave_its_fence(answer: str, criterion: str) -> None:
    """The fence is made of what it encloses, so the answer never has it."""
    (read,) = _read_criteria([criterion])
    asked = _question(read, answer, "")
    fence = asked.user.rpartition("</")[2].removesuffix(">")
    assert asked.user.count(fence) == 2
    again = _question(read, asked.user, "")
    assert again.user.rpartition("</")[2] != f"{fence}>"


async def test_an_answer_of_any_kind_is_judged(serve: Any) -> None:
    """A huge one by its beginning, and half a pair of surrogates breaks no request."""
    server = await serve(lambda _: says("MET"))
    for answer in ("x" * 300_000, "\ud800", None, {"a": 1}):
        assert (await judge(server, answer=answer)).value == 1.0
    assert len(server.asked[0].text) < 101_000
    assert "200000 more characters were left out" in server.asked[0].text


@pytest.mark.parametrize(
    "criteria",
    [None, [], "text", [""], [("a", 0)], [("a", float("nan"))], [("a", "b")], [5], [("a", 1, 2)]],
)
async def test_criteria_that_are_none_are_refused(criteria: Any) -> None:
    """HUD scores no criteria with 0.0; that is the author's mistake and not the agent's."""
    with pytest.raises(ValueError, match="LLMJudgeGrader"):
        await LLMJudgeGrader.grade(weight=1, criteria=criteria, model="m", base_url="http://h")


@pytest.mark.parametrize(
    ("options", "environment", "url", "speaks", "key"),
    [
        ({"model": "gpt"}, {"OPENAI_API_KEY": "o"}, "https://api.openai.com/v1/chat/completions",
         "openai", "o"),
        ({"model": "claude-x"}, {"ANTHROPIC_API_KEY": "a"}, "https://api.anthropic.com/v1/messages",
         "anthropic", "a"),
        ({}, {"HUD_MCP_JUDGE_MODEL": "m", "HUD_MCP_JUDGE_URL": "http://h:1/v1/"},
         "http://h:1/v1/chat/completions", "openai", ""),
        ({"model": "claude-x"}, {"HUD_MCP_JUDGE_URL": "https://h", "ANTHROPIC_API_KEY": "a",
          "OPENAI_API_KEY": "o"}, "https://h/chat/completions", "openai", ""),
        ({"model": "m", "base_url": "https://h/v1/messages"}, {"HUD_MCP_JUDGE_API_KEY": "j"},
         "https://h/v1/messages", "anthropic", "j"),
        ({"model": "m", "base_url": "https://h", "speaks": "anthropic"}, {},
         "https://h/v1/messages", "anthropic", ""),
        ({"model": "m", "base_url": "https://h/v1", "api_key_env": "MINE"}, {"MINE": "k"},
         "https://h/v1/chat/completions", "openai", "k"),
    ],
)  # fmt: skip
def test_the_environment_says_where_the_judge_is(  # noqa: PLR0917  # a case has as many parts
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    environment: dict[str, str],
    url: str,
    speaks: str,
    key: str,
) -> None:
    """A provider's key is for the provider alone."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = find_endpoint(**options)
    assert (found.url, found.speaks, found.key) == (url, speaks, key)
    assert f"'{key}'" not in repr(found)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "knows no model. Pass model="),
        ({"model": "gpt"}, "api.openai.com needs a key. Set OPENAI_API_KEY"),
        ({"model": "m", "base_url": "127.0.0.1:80"}, "address is http://"),
        ({"model": "m", "base_url": "file:///etc/passwd"}, "address is http://"),
        ({"model": "m", "base_url": "http://h", "api_key_env": "NOWHERE"}, "NOWHERE, and that is"),
        ({"model": "m", "base_url": "http://h", "speaks": "hud"}, "'openai' or 'anthropic'"),
    ],
)
def test_a_judge_that_cannot_be_asked_is_no_0(options: dict[str, Any], said: str) -> None:
    """The text says what to set."""
    with pytest.raises(GraderFailed, match=said):
        find_endpoint(**options)
