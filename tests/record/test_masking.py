"""What looks like a key is masked in what a model said, and nothing else is."""

import time
from typing import Any

import pytest
from tables import each_of

from hud_mcp.values.masking import MASK, masked

KEYS = {
    "Anthropic": "sk-ant-api03-" + "aB3dE5gH7jK9" * 4,
    "OpenAI": "sk-proj-" + "aB3dE5gH7jK9" * 4,
    "OpenRouter": "sk-or-v1-" + "0123456789abcdef" * 4,
    "Google": "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "AWS": "AKIA" + "IOSFODNN7EXAMPLE",
    "GitHub": "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "Hugging Face": "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ12345678",
    "Google, of 2026": "AQ." + "Ab8RN6Kq1w2e3r4t5y6u7i8o9p0a1s2d3f4g5h",
    "Cerebras": "csk-" + "a1b2c3d4e5f6g7h8" * 3,
    "Perplexity": "pplx-" + "aB3dE5gH7jK9" * 4,
    "NVIDIA": "nvapi-" + "aB3dE5gH7jK9" * 4,
    "Replicate": "r8_" + "aB3dE5gH7jK9" * 3,
    "LangSmith": "lsv2_pt_" + "0123456789abcdef" * 2 + "_a1b2c3d4e5",
    "Slack": "xoxb-" + "123456789012-abcdefghijkl",
    "a web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.dBjftJeZ4CVP-mB92K27uhbUJU1p1r",
    "a session's id": "sess-" + "0123456789abcdef" * 2,
    "a session's token": f"hms-{'ab' * 32}-{'cd' * 32}",
}


@each_of("name", KEYS)
def test_a_provider_s_key_is_masked_wherever_it_stands(name: str) -> None:
    """Alone, in a sentence, in a command, in a call's arguments."""
    key = KEYS[name]
    assert masked(key) == MASK
    assert masked(f"I use {key}, then go on.") == f"I use {MASK}, then go on."
    told = masked({"command": f"curl -H 'x: {key}' https://a.test", "more": [{"n": key}, 7]})
    assert key not in str(told)
    assert told["more"][1] == 7


@each_of(
    ("text", "shown"),
    [
        ("Authorization: Bearer abc.def-ghi", f"Authorization: {MASK}"),
        ('{"authorization": "Basic dXNlcjpwYXNz", "a": 1}',
         f'{{"authorization": "{MASK}", "a": 1}}'),
        ("x-api-key: 12345678 \nnext", f"x-api-key: {MASK}\nnext"),
        ("with bearer dGhpcyBpcyBh", f"with bearer {MASK}"),
        ("postgres://ada:pa55word@db/x", f"postgres://ada:{MASK}@db/x"),
        ("api_key=Zx81kLm20PqrT7uvWy", f"api_key={MASK}"),
        ('"secret": "Zx81kLm20PqrT7uvWy"', f'"secret": "{MASK}"'),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nrest",
         f"{MASK}\nrest"),
        ("-----BEGIN PRIVATE KEY-----\nabc without an end", MASK),
    ],
)  # fmt: skip
def test_what_is_said_to_be_a_key_is_masked(text: str, shown: str) -> None:
    """Headers, keys of a pair, names that say so, and what is in an address."""
    assert masked(text) == shown


def test_a_field_that_is_named_for_a_key_is_masked_in_a_call() -> None:
    """Its value stands alone there, without the name beside it."""
    told = masked(
        {
            "headers": {"Authorization": "abc", "Accept": "text/html"},
            "api_token": "Zx81kLm20PqrT7uvWy",
            "key": "Enter",
            "keys": ["ctrl", "a"],
            "secret": "ControlOrMeta+Shift+KeyA",
        }
    )
    assert told == {
        "headers": {"Authorization": MASK, "Accept": "text/html"},
        "api_token": MASK,
        "key": "Enter",
        "keys": ["ctrl", "a"],
        "secret": "ControlOrMeta+Shift+KeyA",
    }


@each_of(
    "text",
    [
        "The token count is 1200; the key idea: look at the basket first.",
        "Press key=Enter, then secret: nothing_to_see_here_at_all",
        "password=hunter2",
        "sku-12345678901234567890 costs 3",
        "commit 90b7c70f3a1de5b6c7d8e9f0a1b2c3d4e5f60718 of ask-anything-to-anybody",
        "traj-0123456789abcdef",
        "I accept the cookie: click on Accept, then continue.",
        "authorization: the page asks for the manager's approval",
        "Basic authentication, or Bearer authentication, is needed here",
        "sk-learn-and-other-libraries-in-python",
        "key=ControlOrMeta+Shift+ArrowLeft",
        "https://shop.test/list?page=2&sort=price",
    ],
)
def test_what_is_no_key_stays(text: str) -> None:
    """Words about keys, ids that open nothing, short words."""
    assert masked(text) == text


@pytest.mark.long
@each_of(
    "part",
    [
        "eyJ",
        "-eyJ",
        "a",
        "-sk-",
        "key=",
        "A+",
        "-----BEGIN PRIVATE KEY-----",
        "://a:",
        "cookie: ",
        "Basic ",
    ],
)
def test_no_text_takes_long_to_mask(part: str) -> None:
    """What a text costs grows about as its length does: ten times as long, not a hundred."""

    def took_s(count: int) -> float:
        text: Any = (part * count)[:count]
        best = 1e9
        for _ in range(3):
            began = time.process_time()
            masked(text)
            best = min(best, time.process_time() - began)
        return best

    assert took_s(200_000) < 30 * max(took_s(20_000), 0.001)
