"""What a template asks is read, whatever form it has."""

from types import SimpleNamespace
from typing import Any

import mcp_types as types
import pytest
from tables import each_of

from hud_mcp.environment.prompt import Prompt, PromptMessage, read_prompt
from hud_mcp.errors import InvalidTemplate

HELLO = Prompt((PromptMessage("user", "Hello"),))
DIALOGUE = Prompt((PromptMessage("user", "Hello"), PromptMessage("assistant", "Yes?")))


@each_of(
    ("value", "prompt"),
    [
        ("Hello", HELLO),
        ({"prompt": "Hello"}, HELLO),
        (["Hello"], HELLO),
        (HELLO, HELLO),
        ({"prompt": HELLO}, HELLO),
        (PromptMessage("user", "Hello"), HELLO),
        ({"role": "user", "content": "Hello"}, HELLO),
        ({"role": "user", "content": {"type": "text", "text": "Hello"}}, HELLO),
        (SimpleNamespace(role="user", content=SimpleNamespace(text="Hello")), HELLO),
        (SimpleNamespace(role="user", content="Hello"), HELLO),
        (
            {"prompt": [{"role": "user", "content": "Hello"}, PromptMessage("assistant", "Yes?")]},
            DIALOGUE,
        ),
        (("Hello", {"role": "assistant", "content": "Yes?"}), DIALOGUE),
        ({"content": "Hello"}, HELLO),
        ({"role": "user", "content": ["Hello"]}, HELLO),
        ({"role": "user", "content": [{"type": "text", "text": "Hello"}]}, HELLO),
        (types.PromptMessage(role="user", content=types.TextContent(text="Hello")), HELLO),
    ],
)
def test_every_form_of_a_prompt_is_read(value: Any, prompt: Prompt) -> None:
    """Text, mappings and messages of any library mean the same prompt."""
    assert read_prompt(value, where="env.py:1") == prompt


def test_a_prompt_of_several_messages_is_one_text() -> None:
    """Where only text can be shown, messages are set apart by an empty line."""
    assert DIALOGUE.text == "Hello\n\nYes?"


PICTURE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


@each_of(
    ("content", "text"),
    [
        ([{"type": "text", "text": "One"}, "two"], "One\ntwo"),
        ([{"type": "text", "text": "See"}, PICTURE], "See\n[image, image/png: not shown as text]"),
        ({"type": "resource", "resource": {"uri": "file:///a", "text": "Words"}}, "Words"),
        (
            {"type": "resource", "resource": {"uri": "file:///a", "blob": "aGk="}},
            "[resource, file:///a: not shown as text]",
        ),
        (
            {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
            "[image_url: not shown as text]",
        ),
    ],
)
def test_the_parts_of_a_message_are_read_and_kept(content: Any, text: str) -> None:
    """Texts are joined, what is none is named in brackets, and the message keeps its shape."""
    given = {"role": "assistant", "content": content, "name": "guide"}
    (message,) = read_prompt(given, where="env.py:1").messages
    assert (message.role, message.text, message.original) == ("assistant", text, given)


def test_a_message_of_the_sdk_keeps_its_shape_on_the_wire() -> None:
    """As a plain one of HUD's does: the names are those of the protocol."""
    made = types.PromptMessage(
        role="user", content=types.ImageContent(data="aGk=", mime_type="image/png")
    )
    (message,) = read_prompt([made], where="env.py:1").messages
    assert message.original == {"role": "user", "content": PICTURE}


def test_a_system_message_says_that_it_is_an_instruction() -> None:
    """Where only users and assistants are known; it keeps its role and its text."""
    prompt = read_prompt(
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}],
        where="env.py:1",
    )
    assert [(m.role, m.text, m.original) for m in prompt.messages] == [
        ("system", "Be brief.", None),
        ("user", "Why?", None),
    ]
    assert prompt.text == "Instructions for this task:\nBe brief.\n\nWhy?"


@each_of(
    ("value", "says"),
    [
        ({"role": "tool", "content": "Hello"}, "role 'tool'; a role is one of user, assistant"),
        ({"role": 7, "content": "Hello"}, "a message of the role 7"),
        ([{"role": "user", "content": [{"type": "image", "data": ""}]}], "a part {'type': 'image'"),
        ({"role": "user", "content": [5]}, "a part 5; a part is a text"),
    ],
)
def test_an_unknown_role_or_part_is_named(value: Any, says: str) -> None:
    """With the template's line, and what may be."""
    with pytest.raises(InvalidTemplate, match=r"^env.py:1: the template's prompt has a ") as caught:
        read_prompt(value, where="env.py:1")
    assert says in str(caught.value)


@each_of(
    "value",
    [
        None,
        5,
        [],
        {},
        {"text": "Hello"},
        {"prompt": None},
        ["Hello", 5],
    ],
)
def test_what_is_no_prompt_is_refused_with_the_template_s_line(value: Any) -> None:
    """The text shows what was yielded and what may be."""
    with pytest.raises(InvalidTemplate) as caught:
        read_prompt(value, where="env.py:1")
    assert str(caught.value).startswith(f"env.py:1: the template yielded {str(value)[:5]}")
    assert "yield text, a list of messages" in str(caught.value)
