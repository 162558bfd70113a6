"""A request is read without trust, and changed in one place."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import DIALECT_NAMES, EXCHANGES, Exchange, exchanges
from test_dialect_replies import JSON, PATHS, about, altered

from hud_mcp.plugins.models.gateway.conversation import Conversation
from hud_mcp.plugins.models.gateway.dialects import Unreadable
from hud_mcp.plugins.models.gateway.dialects.known import DIALECTS, dialect_of

Json = dict[str, Any]

PATH = {each.name: each.path for each in EXCHANGES}
CAPS = {
    "messages": ("max_tokens",),
    "chat": ("max_completion_tokens",),
    "responses": ("max_output_tokens",),
    "gemini": ("generationConfig", "maxOutputTokens"),
}


@pytest.mark.parametrize("each", EXCHANGES, ids=about)
def test_the_dialect_of_a_request_is_that_of_its_path(each: Exchange) -> None:
    """A query changes nothing, and another method is another request."""
    assert dialect_of("POST", each.path, {}) == (each.dialect, "turn")
    assert dialect_of("GET", each.path, {}) is None
    assert dialect_of("POST", f"/x{each.path}", {}) is None


@pytest.mark.parametrize(
    ("method", "path", "headers", "found"),
    [
        ("POST", "/v1/messages/count_tokens?beta=true", {}, ("messages", "count")),
        ("POST", "/v1beta/models/g-1:countTokens", {}, ("gemini", "count")),
        ("GET", "/v1/models", {"anthropic-version": "2023-06-01"}, ("messages", "models")),
        ("GET", "/v1/models/m1", {}, ("chat", "models")),
        ("GET", "/v1beta/models?key=x", {}, ("gemini", "models")),
        ("HEAD", "/", {}, ("messages", "hello")),
        ("HEAD", "/api/hello", {}, ("messages", "hello")),
        ("POST", "/v1/messages/batches", {}, None),
        ("POST", "/v1/responses/compact", {}, None),
        ("GET", "/v1/responses/resp_1", {}, None),
        ("POST", "/v1/embeddings", {}, None),
        ("POST", "/v1beta/models/g-1:batchGenerateContent", {}, None),
        ("POST", "/v1beta/models/g-1/../g-2:generateContent", {}, None),
        ("POST", "/v1beta/models/:generateContent", {}, None),
    ],
)
def test_other_requests_are_counts_lists_and_signs_of_life(
    method: str, path: str, headers: dict[str, str], found: tuple[str, str] | None
) -> None:
    """Whatever else a provider has is none of a dialect's."""
    got = dialect_of(method, path, headers)
    assert (None if got is None else (got[0].name, got[1])) == found


def test_the_facts_of_a_request_are_read() -> None:
    """Model, stream, cap, tools, system prompt and settings, as today's programs write them."""
    read = {each.name: each.asked() for each in reversed(EXCHANGES)}  # the first of each
    assert {name: asked.model for name, asked in read.items()} == {
        "messages": "claude-opus-5-5",
        "chat": "m1",
        "responses": "my-own-model",
        "gemini": "gemini-3.1-pro-preview",
    }
    assert all(asked.is_stream and asked.tools for asked in read.values())
    caps = {name: asked.cap for name, asked in read.items()}
    assert caps == {"messages": 128_000, "chat": 32_000, "responses": None, "gemini": None}
    assert (read["messages"].system or "").startswith("You are a Claude agent")
    assert "billing" not in (read["messages"].system or "")
    assert "metadata" not in read["messages"].settings
    assert read["gemini"].settings["generationConfig"]["topK"] == 64


def test_the_tools_of_codex_that_stand_in_its_input_are_tools() -> None:
    """Code mode has them in an item of its own, which is no message."""
    asked = exchanges("responses")[-1].asked()
    assert asked.tools_digest is not None
    assert all(item["type"] != "additional_tools" for item in asked.items)


@pytest.mark.parametrize("name", DIALECT_NAMES)
def test_a_snake_is_a_camel_to_google_and_a_twin_is_refused(name: str) -> None:
    """No body says one thing to us and another to its provider."""
    dialect, path = DIALECTS[name], PATH[name]
    assert (
        DIALECTS["gemini"]
        .request(PATH["gemini"], b'{"generation_config": {"max_output_tokens": 7}}', {})
        .cap
        == 7
    )
    for body in (
        b'{"model": "cheap", "model": "dear"}',
        b'{"model": "cheap", "Model": "dear"}',
        b'{"model": "m", "max_tokens": 1, "max_Tokens": 9}',
        b'{"model": "m", "generationConfig": {}, "generation_config": {}}',
    ):
        with pytest.raises(Unreadable, match="twice"):
            dialect.request(path, body, {})
    with pytest.raises(Unreadable, match="maxOutputTokens"):
        DIALECTS["gemini"].request(
            PATH["gemini"],
            b'{"generationConfig": {"maxOutputTokens": 1, "max_output_tokens": 9}}',
            {},
        )


@pytest.mark.parametrize("name", DIALECT_NAMES)
@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b'{"model": "m"} x', b'{"model": "\xff"}', b'{"a" 1}', b"{'a': 1}", b"{1:2}",
     b'{"a": ' + b"9" * 5_000 + b"}", b'{"messages": ' + b"[" * 100_000],
)  # fmt: skip
def test_a_body_that_is_no_object_is_refused_in_a_sentence(name: str, body: bytes) -> None:
    """Nothing of it is guessed."""
    with pytest.raises(Unreadable, match=r"JSON object in UTF-8|nested"):
        DIALECTS[name].request(PATH[name], body, {})


def test_a_request_without_a_model_is_refused() -> None:
    """The sentence names what lacks."""
    for name in ("messages", "chat", "responses"):
        with pytest.raises(Unreadable, match="model"):
            DIALECTS[name].request(PATH[name], b'{"model": ["m"]}', {})


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("responses", b'{"model": "m", "background": true}'),
        ("responses", b'{"model": "m", "conversation": "conv_1"}'),
        ("responses", b'{"model": "m", "prompt": {"id": "p"}}'),
        ("gemini", b'{"cachedContent": "cachedContents/1"}'),
        ("gemini", b'{"cached_content": "cachedContents/1"}'),
    ],
)
def test_a_request_for_what_it_does_not_hold_is_refused(name: str, body: bytes) -> None:
    """No budget could bind text that stands elsewhere."""
    with pytest.raises(Unreadable, match="leave it out"):
        DIALECTS[name].request(PATH[name], body, {})


@pytest.mark.sampled(1)
@pytest.mark.parametrize("each", EXCHANGES, ids=about)
@settings(max_examples=40)
@given(path=PATHS, put=JSON)
def test_an_agent_may_write_anything(each: Exchange, path: list[int], put: Any) -> None:
    """A wrong type in any place of a request is passed over, or refused in a sentence."""
    body = json.dumps(altered(each.request, path, put)).encode()
    try:
        asked = each.dialect.request(each.path, body, each.headers)
        place = Conversation().place(asked)
    except Unreadable:
        return
    json.dumps(place.messages).encode()
    assert len(asked.digests) == len(asked.items)
    assert 0 <= asked.text_bytes <= len(body)


@pytest.mark.parametrize("name", DIALECT_NAMES)
@pytest.mark.parametrize("depth", [200, 300, 700, 900, 3_000])
def test_depth_is_recorded_as_text_or_refused(name: str, depth: int) -> None:
    """No depth ends in an error of ours."""
    each = exchanges(name)[1]
    deep = json.loads("[" * 100 + "]" * 100)
    body = json.dumps(altered(each.request, [1, 0, 1], deep)).encode()
    body = body.replace(b"[" * 100, b"[" * depth).replace(b"]" * 100, b"]" * depth)
    try:
        Conversation().place(each.dialect.request(each.path, body, {}))
    except Unreadable:
        assert depth > 500


@pytest.mark.parametrize("depth", [100, 300, 450, 490])
def test_results_in_results_are_recorded_or_refused(depth: int) -> None:
    """A block of a tool's result may hold another one."""
    block = '{"type":"tool_result","content":['
    body = f'{{"model":"m","messages":[{{"content":[{block * depth}{"]}" * depth}]}}]}}'
    try:
        Conversation().place(DIALECTS["messages"].request("/v1/messages", body.encode(), {}))
    except Unreadable:
        assert depth > 200


SPACE = st.text(" \t\r\n", max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b c", "größe", '"', "\\", "model "]), VALUES)


def written(value: dict[str, Any], data: st.DataObject) -> str:
    """Write an object with space and escapes wherever JSON allows them."""
    members = [
        f"{data.draw(SPACE)}{json.dumps(name, ensure_ascii=data.draw(st.booleans()))}"
        f"{data.draw(SPACE)}:{data.draw(SPACE)}"
        f"{json.dumps(each, ensure_ascii=data.draw(st.booleans()))}{data.draw(SPACE)}"
        for name, each in value.items()
    ]
    inside = ",".join(members) or data.draw(SPACE)
    return f"{data.draw(SPACE)}{{{inside}}}{data.draw(SPACE)}"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["messages", "chat", "responses"])
@settings(max_examples=60)
@given(value=OBJECTS, after=OBJECTS, data=st.data())
def test_another_model_changes_its_bytes_alone(
    name: str, value: dict[str, Any], after: dict[str, Any], data: st.DataObject
) -> None:
    """All space, order, escapes and numbers stay as they came."""
    rest = {key: each for key, each in after.items() if key not in value}
    body = written({**value, "model": "the old model", **rest}, data)
    path, changed = DIALECTS[name].with_model("/p?q", body.encode(), 'new "size"')
    assert path == "/p?q"
    assert changed.decode() == body.replace('"the old model"', json.dumps('new "size"'))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", DIALECT_NAMES)
@settings(max_examples=60)
@given(value=OBJECTS, data=st.data(), has_one=st.booleans())
def test_another_cap_changes_its_bytes_alone(
    name: str, value: dict[str, Any], data: st.DataObject, *, has_one: bool
) -> None:
    """It is put in where there is none."""
    names = CAPS[name]
    inner = {names[-1]: 64_000_123} if has_one else {}
    outer = {names[0]: inner} if len(names) > 1 else inner
    body = written({**value, **outer}, data)
    changed = DIALECTS[name].with_cap(body.encode(), 1_024).decode()
    cap = {names[-1]: 1_024}
    expected = {**value, names[0]: cap} if len(names) > 1 else {**value, **cap}
    assert json.loads(changed) == expected
    if has_one:
        assert changed == body.replace("64000123", "1024")
    else:
        added = len(changed) - len(body)
        assert any(
            changed[:at] + changed[at + added :] == body for at in range(len(changed) - added + 1)
        )
    assert DIALECTS[name].request(PATH[name], _named(changed), {}).cap == 1_024


def _named(body: str) -> bytes:
    return body.replace("{", '{"model":"m",' if json.loads(body) else '{"model":"m"', 1).encode()


def test_both_names_of_the_cap_of_chat_are_set() -> None:
    """An engine that reads one of them has no other cap."""
    body = b'{"model": "m", "max_tokens": 5000, "max_completion_tokens": 9000}'
    assert DIALECTS["chat"].request(PATH["chat"], body, {}).cap == 9_000
    changed = json.loads(DIALECTS["chat"].with_cap(body, 1_000))
    assert changed == {"model": "m", "max_tokens": 1_000, "max_completion_tokens": 1_000}


@pytest.mark.parametrize("name", ["messages", "responses"])
def test_numbers_and_doubles_of_a_recorded_body_stay(name: str) -> None:
    """The bytes of today's programs come through."""
    each = exchanges(name)[0]
    _, changed = each.dialect.with_model(each.path, each.body, "x")
    assert changed == each.body.replace(each.request["model"].encode(), b"x", 1)


def test_the_model_of_gemini_is_in_its_path() -> None:
    """The body of a count names it too."""
    path = "/v1beta/models/gemini-3.5%2Dflash:streamGenerateContent?alt=sse&key=k"
    assert DIALECTS["gemini"].request(path, b"{}", {}).model == "gemini-3.5-flash"
    body = b'{ "contents":[] , "model":"models/dear"}'
    assert DIALECTS["gemini"].with_model(path, body, "g 2") == (
        "/v1beta/models/g%202:streamGenerateContent?alt=sse&key=k",
        b'{ "contents":[] , "model":"models/g 2"}',
    )


def test_several_choices_are_told() -> None:
    """Each of them may use the whole cap."""
    for written_as in ("8", '"8"', "8.0"):
        body = f'{{"model": "m", "n": {written_as}}}'
        assert DIALECTS["chat"].request(PATH["chat"], body.encode(), {}).choices == 8
        body = f'{{"generationConfig": {{"candidateCount": {written_as}}}}}'
        assert DIALECTS["gemini"].request(PATH["gemini"], body.encode(), {}).choices == 8
    for odd in ("null", "[]", '"x"', "1e999", "-1"):
        body = f'{{"model": "m", "n": {odd}}}'
        assert DIALECTS["chat"].request(PATH["chat"], body.encode(), {}).choices == 1


@pytest.mark.parametrize(
    ("name", "body", "hosted"),
    [
        ("messages", {"tools": [{"type": "web_search_20250305", "name": "w"}]}, "web_search"),
        ("messages", {"mcp_servers": [{"url": "https://example.com"}]}, "mcp_servers"),
        ("messages", {"tools": [{"type": "bash_20250124", "name": "bash"}, {"name": "x"}]}, ""),
        ("chat", {"web_search_options": {"user_location": None}}, "web_search_options"),
        ("chat", {"tools": [{"type": "function", "function": {"name": "x"}}]}, ""),
        ("responses", {"tools": [{"type": "code_interpreter", "container": "c"}]}, "code"),
        ("responses", {"tools": [{"type": "custom", "name": "x"}, {"type": "computer"}]}, ""),
        ("gemini", {"tools": [{"googleSearch": {}}]}, "googleSearch"),
        ("gemini", {"tools": [{"function_declarations": [{"name": "x"}]}]}, ""),
    ],
)
def test_tools_that_the_provider_runs_are_told(name: str, body: Json, hosted: str) -> None:
    """No bound has what they read and cost."""
    asked = DIALECTS[name].request(PATH[name], json.dumps({"model": "m", **body}).encode(), {})
    assert bool(asked.hosted) is bool(hosted)
    assert "".join(asked.hosted).startswith(hosted)
