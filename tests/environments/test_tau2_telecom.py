"""tau2's carrier: its user has a phone of its own, and what one side does reaches the other."""

import json
import sys
import tomllib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from peers import raw_stdio
from provider_server import Call, Says, provider_server
from slate import registry
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp import Agent, Task
from hud_mcp.agents.agent import Reply
from hud_mcp.agents.baselines import OracleAgent
from hud_mcp.errors import ActionFailed
from hud_mcp.loading.public import import_set
from hud_mcp.loading.source import load_environments, shipped_environments
from hud_mcp.plugins.models.requests import need_libraries
from hud_mcp.server.app import build_server

sys.path.insert(0, str(shipped_environments()["tau2"].parent))

from tau2_desk import DOMAINS, Books
from tau2_rows import read_case

NUMBER = "555-0101"
MINE = {"customer_id": "C1", "line_id": "L1"}
CARRIER = f"""
[[plans]]
plan_id = "P1"
name = "Small"
data_limit_gb = 5.0
price_per_month = 40.0
data_refueling_price_per_gb = 2.0

[[lines]]
line_id = "L1"
phone_number = "{NUMBER}"
status = "Active"
plan_id = "P1"
data_used_gb = 1.0
data_refueling_gb = 0.0
roaming_enabled = false

[[lines]]
line_id = "L2"
phone_number = "555-0102"
status = "Suspended"
plan_id = "P1"
data_used_gb = 0.0
data_refueling_gb = 0.0
roaming_enabled = false

[[customers]]
customer_id = "C1"
full_name = "Ana Ruiz"
date_of_birth = "1990-01-02"
phone_number = "555-0100"
line_ids = ["L1"]
bill_ids = ["B1"]

[[customers]]
customer_id = "C2"
full_name = "Tom Field"
date_of_birth = "1980-01-02"
phone_number = "555-0200"
line_ids = ["L2"]
bill_ids = []

[[bills]]
bill_id = "B1"
customer_id = "C1"
issue_date = "2025-01-01"
total_due = 40.0
line_items = []
status = "Paid"
"""
PHONE = """
[device]
battery_level = 70

[device.app_statuses.messaging.permissions]
sms = true
storage = true
"""
POLICY = "Ask the user to use toggle_airplane_mode, make_payment, reboot_device or can_send_mms."
NEW_BILL = {**MINE, "new_bill_id": "B9", "contract_ended": False}
SERVICE = ("user", "assert_service_status", {"expected_status": "connected"})
DATA = ("user", "assert_mobile_data_status", {"expected_status": True})
FAST = ("user", "assert_internet_speed", {"expected_speed": 200, "expected_desc": "excellent"})
MMS = ("user", "assert_can_send_mms", {"expected_status": True})
PAID = ("assistant", "assert_no_overdue_bill", {"overdue_bill_id": "B9"})


def call(side: str, name: str, arguments: dict[str, Any], key: str = "func_name") -> dict[str, Any]:
    """A call in the form of the benchmark's."""
    whose = "env_type" if key == "func_name" else "requestor"
    return {whose: side, key: name, "arguments": arguments}


def task(key: str, begins: list[Any], actions: list[Any], asserts: list[Any]) -> dict[str, Any]:
    """One row in the form of the benchmark's."""
    user = call("user", "set_user_info", {"name": "Ana Ruiz", "phone_number": NUMBER})
    return {
        "id": key,
        "user_scenario": {
            "instructions": {
                "reason_for_call": "Your phone has no service.",
                "known_info": f"You are Ana Ruiz with phone number {NUMBER}.",
                "task_instructions": "You are brief.",
            }
        },
        "initial_state": {"initialization_actions": [user, *(call(*each) for each in begins)]},
        "evaluation_criteria": {
            "actions": [call(*each, "name") for each in actions],
            "env_assertions": [{**call(*each), "assert_value": True} for each in asserts],
            "reward_basis": ["ENV_ASSERTION"],
        },
    }


LONG = "|".join(f"fault_number_{n}" for n in range(20))
OVERDUE = [
    ("assistant", "send_payment_request", {"customer_id": "C1", "bill_id": "B9"}),
    ("user", "make_payment", {}),
    ("assistant", "resume_line", MINE),
    ("user", "toggle_airplane_mode", {}),
    ("user", "reboot_device", {}),
]
ROWS = [
    task(
        "[service_issue]airplane|overdue[PERSONA:Easy]",
        [
            ("user", "turn_airplane_mode_on", {}),
            ("assistant", "suspend_line_for_overdue_bill", NEW_BILL),
        ],
        OVERDUE,
        [SERVICE, PAID],
    ),
    task(f"[mms_issue]{LONG}[PERSONA:None]", [], [], [MMS]),
    task(f"[mms_issue]{LONG}[PERSONA:Hard]", [], [], [MMS]),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the carrier's files in the benchmark's form, and a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = tmp_path / "files" / "telecom"
    place.mkdir(parents=True)
    keys = [row["id"] for row in ROWS]
    for name, text in {
        "db.toml": CARRIER,
        "user_db.toml": PHONE,
        "main_policy.md": "Be kind.",
        "tech_support_manual.md": POLICY,
        "tasks.json": json.dumps(ROWS),
        "split_tasks.json": json.dumps({"base": keys[:1], "test": keys[:1], "full": keys}),
    }.items():
        (place / name).write_text(text)
    return place.parent


def carrier(*begins: tuple[str, str, dict[str, Any]]) -> Books:
    """Both databases, after some calls."""
    books = Books(DOMAINS["telecom"], tomllib.loads(CARRIER), tomllib.loads(PHONE))
    user = ("user", "set_user_info", {"name": "Ana", "phone_number": NUMBER})
    for each in (user, *begins):
        books.call(*each)
    return books


def holds(books: Books, assertion: tuple[str, str, dict[str, Any]]) -> bool:
    """Whether an assertion holds."""
    return books.holds(call(*assertion))


def test_rows_outside_the_base_split_are_read_by_the_name_of_their_own(folder: Path) -> None:
    """Tables in TOML are read; ids have no brackets, and long ones differ still."""
    base = import_set("tau2-telecom", place=folder).tasks
    assert [each.id for each in base] == [
        "tau2-telecom-service_issue-airplane-overdue-PERSONA-Easy"
    ]
    assert base[0].metadata["split"] == "test"
    full = import_set("tau2-full", place=folder).tasks
    assert len({each.id for each in full}) == len(ROWS)
    policy = read_case(DOMAINS["telecom"], **base[0].args).policy
    assert "Be kind." in policy
    assert POLICY in policy


FAULTS: dict[str, tuple[list[Any], list[Any], Any]] = {
    "airplane mode": (
        [("user", "turn_airplane_mode_on", {})], [("user", "toggle_airplane_mode", {})], SERVICE,
    ),
    "no SIM card": ([("user", "unseat_sim_card", {})], [("user", "reseat_sim_card", {})], SERVICE),
    "a wrong APN": (
        [("user", "break_apn_settings", {})],
        [("user", "reset_apn_settings", {}), ("user", "reboot_device", {})], SERVICE,
    ),
    "a suspended line": (
        [("assistant", "suspend_line", {**MINE, "reason": "x"}), ("user", "reboot_device", {})],
        [("assistant", "resume_line", MINE), ("user", "reboot_device", {})], SERVICE,
    ),
    "data off": ([("user", "turn_data_off", {})], [("user", "toggle_data", {})], DATA),
    "used up data": (
        [("assistant", "set_data_usage", {**MINE, "data_used_gb": 5.5})],
        [("assistant", "refuel_data", {**MINE, "gb_amount": 2.0})], DATA,
    ),
    "abroad": (
        [("user", "set_user_location", {"abroad": True})],
        [("user", "toggle_roaming", {}), ("assistant", "enable_roaming", MINE)], DATA,
    ),
    "data saver": (
        [("user", "turn_data_saver_mode_on", {})], [("user", "toggle_data_saver_mode", {})], FAST,
    ),
    "a slow VPN": ([("user", "break_vpn", {})], [("user", "disconnect_vpn", {})], FAST),
    "an old network": (
        [("user", "set_network_mode_preference", {"mode": "2g_only"})],
        [("user", "set_network_mode_preference", {"mode": "4g_5g_preferred"})], MMS,
    ),
    "no MMSC": (
        [("user", "break_apn_mms_setting", {})],
        [("user", "reset_apn_settings", {}), ("user", "reboot_device", {})], MMS,
    ),
    "no permission": (
        [("user", "remove_app_permission", {"app_name": "messaging", "permission": "sms"})],
        [("user", "grant_app_permission", {"app_name": "messaging", "permission": "sms"})], MMS,
    ),
    "MMS over Wi-Fi": (
        [("user", "set_wifi_calling", {"enabled": True, "mms_over_wifi": True})],
        [("user", "toggle_wifi_calling", {})], MMS,
    ),
}  # fmt: skip


@each_of("fault", FAULTS)
def test_a_fault_of_the_phone_or_the_line_is_there_until_all_of_it_is_mended(fault: str) -> None:
    """Each step of the repair is needed, and the last one mends it."""
    begins, repair, assertion = FAULTS[fault]
    assert holds(carrier(), assertion)
    books = carrier(*begins)
    for step in repair:
        assert not holds(books, assertion)
        books.call(*step)
    assert holds(books, assertion)


def test_a_slow_vpn_is_slow_when_it_is_connected_again() -> None:
    """Its server is the same; without it the phone is fast."""
    books = carrier(("user", "break_vpn", {}))
    assert not holds(books, FAST)
    books.call("user", "disconnect_vpn", {})
    assert holds(books, FAST)
    books.call("user", "connect_vpn", {})
    assert not holds(books, FAST)


def test_a_payment_of_the_users_reaches_the_carrier() -> None:
    """The request is there once it is sent; the bill is paid, and the request gone, once it is."""
    books = carrier(("assistant", "suspend_line_for_overdue_bill", NEW_BILL))
    assert not holds(books, PAID)
    assert "no request" in books.call("user", "make_payment", {})
    books.call("assistant", "send_payment_request", {"customer_id": "C1", "bill_id": "B9"})
    assert "B9" in books.call("user", "check_payment_request", {})
    with pytest.raises(ActionFailed, match="awaits"):
        books.call("assistant", "send_payment_request", {"customer_id": "C1", "bill_id": "B9"})
    books.call("user", "make_payment", {})
    assert books.desk["bills"]["B9"]["status"] == "Paid"
    assert "no request" in books.call("user", "check_payment_request", {})


def test_data_is_charged_on_the_next_bill() -> None:
    """Two charges are on one draft, and equal calls lead to equal databases."""
    ways = [carrier(), carrier()]
    for books in ways:
        for _ in range(2):
            books.call("assistant", "refuel_data", {**MINE, "gb_amount": 1.0})
    bill, _ = ways[0].call("assistant", "get_bills_for_customer", {"customer_id": "C1"})
    assert (bill["status"], bill["total_due"], len(bill["line_items"])) == ("Draft", 4.0, 2)
    assert ways[0].digests == ways[1].digests != carrier().digests


@each_of(
    "side, name, arguments, why",
    [
        ("assistant", "refuel_data", {**MINE, "gb_amount": 0}, "More than 0"),
        ("assistant", "refuel_data", {**MINE, "gb_amount": float("nan")}, "More than 0"),
        ("assistant", "enable_roaming", {"customer_id": "C1", "line_id": "L2"}, "not found"),
        ("assistant", "resume_line", MINE, "suspended"),
        ("assistant", "get_details_by_id", {"id": "X1"}, "no id"),
        ("assistant", "toggle_airplane_mode", {}, "cannot be called"),
        ("assistant", "make_payment", {}, "cannot be called"),
        ("user", "enable_roaming", MINE, "cannot be called"),
        ("user", "grant_app_permission", {"app_name": "x", "permission": "sms"}, "no app"),
        ("user", "grant_app_permission", {"app_name": "messaging", "permission": "x"}, "sms"),
        ("user", "set_network_mode_preference", {"mode": "6g"}, "4g_only"),
        ("user", "set_apn_settings", {"apn_settings": {"x": 1}}, "apn_name"),
    ],
)
def test_a_call_of_the_wrong_side_or_with_wrong_values_changes_nothing(
    side: str, name: str, arguments: Any, why: str
) -> None:
    """Each refusal names its reason."""
    books = carrier()
    with pytest.raises(ActionFailed, match=why):
        books.call(side, name, arguments)
    assert books.digests == carrier().digests


@asynccontextmanager
async def talking(row: Task, store: Path) -> AsyncGenerator[tuple[Agent, Client]]:
    """An agent in a session of a row, through an MCP client."""
    env = next(each for each in load_environments(["tau2"]) if each.name == row.env)
    async with registry(store, env) as sessions, Client(build_server(sessions)) as client:

        async def ask(name: str, arguments: dict[str, Any], **_: Any) -> Reply:
            with anyio.fail_after(PATIENCE_S):
                return Reply.of(await client.call_tool(name, arguments))

        begun = await ask("start_task", {"template": row.template, "arguments": row.args})
        assert not begun.is_error, begun.text
        started = begun.structured
        agent = Agent(ask, session=started["session"], prompt=started["prompt"], started=started)
        yield agent, client


@pytest.mark.anyio
async def test_the_scripted_user_does_with_its_phone_what_the_agent_names(folder: Path) -> None:
    """The oracle mends line and phone together with it, and neither has the other's tools."""
    row = import_set("tau2-telecom", place=folder).tasks[0]
    async with talking(row, folder / "store.sqlite3") as (agent, client):
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"resume_line", "message_user"} <= tools
        assert not tools & {"toggle_airplane_mode", "make_payment", "set_data_usage"}
        shown = await agent.ask("message_user", {"text": "Please use can_send_mms."})
        assert "cannot send" in shown.text
        await OracleAgent(load_environments(["tau2"])).solve(agent, row)
        last = await agent.ask("response", {"answer": ""})
        assert last.structured["reward"] == 1.0


@pytest.mark.anyio
async def test_a_tool_whose_name_begins_as_anothers_is_not_taken_for_it(folder: Path) -> None:
    """An agent that says that all is well, or names one tool, has not moved another."""
    row = import_set("tau2-telecom", place=folder).tasks[0]
    async with talking(row, folder / "store.sqlite3") as (agent, _):
        said = await agent.ask("message_user", {"text": "Airplane mode is off, and all is paid."})
        assert "Done" not in said.text
        done = await agent.ask("response", {"answer": "Your phone works."})
        assert done.structured["reward"] == 0.0


@pytest.mark.long
@pytest.mark.anyio
async def test_a_model_in_the_users_place_has_the_phone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told its aim, uses the tools of the user alone, and ends the conversation."""
    need_libraries()
    says = [Says("I have no service.")]
    for name in ("toggle_airplane_mode", "make_payment", "reboot_device"):
        says += [Says(calls=(Call(name), Call("resume_line", MINE))), Says("Done.")]
    row = import_set("tau2-telecom", place=folder).tasks[0]
    with provider_server(lambda asked: says[asked.number]) as server:
        monkeypatch.setenv("HUD_MCP_USER_URL", server.base_url("openai-chat"))
        monkeypatch.setenv("HUD_MCP_USER_MODEL", "openai-compatible:m")
        async with talking(row, folder / "store.sqlite3") as (agent, _):
            assert "I have no service." in agent.prompt
            await agent.ask("message_user", {"text": "Turn airplane mode off."})
            await agent.tool("send_payment_request", customer_id="C1", bill_id="B9")
            await agent.ask("message_user", {"text": "Pay the bill."})
            await agent.tool("resume_line", **MINE)
            await agent.ask("message_user", {"text": "Restart."})
            last = await agent.ask("response", {"answer": ""})
    assert last.structured["reward"] == 1.0
    assert "You are brief." in server.asked[0].heard.system
    assert "no tool 'resume_line'" in server.asked[2].heard.results[1]


@pytest.mark.long
@pytest.mark.anyio
async def test_the_phone_survives_its_server(folder: Path) -> None:
    """After a kill, the record's calls of the user and the agent lead to the same phone."""
    row = import_set("tau2-telecom", place=folder).tasks[0]
    source = [f"{shipped_environments()['tau2']}:tau2-telecom"]
    async with raw_stdio(folder, source) as first:
        await first.hello()
        begun = await first.call("start_task", template=row.template, arguments=row.args)
        session = begun["structuredContent"]["session"]
        said = await first.call("message_user", session=session, text="Use toggle_airplane_mode.")
        assert "Airplane mode is off" in said["structuredContent"]["reply"]
        bill = {"customer_id": "C1", "bill_id": "B9"}
        await first.call("send_payment_request", session=session, **bill)
        await first.call("message_user", session=session, text="Now use make_payment.")
        first.process.kill()
    async with raw_stdio(folder, source) as second:
        await second.hello()
        paid = await second.call("get_details_by_id", session=session, id="B9")
        assert "Paid" in json.dumps(paid)
        await second.call("resume_line", session=session, **MINE)
        await second.call("message_user", session=session, text="Then use reboot_device.")
        last = await second.call("response", session=session, answer="")
        assert last["structuredContent"]["reward"] == 1.0


MOCK: dict[str, Any] = {
    "db.json": {
        "tasks": {"task_1": {"task_id": "task_1", "title": "Tidy", "status": "pending"}},
        "users": {"user_1": {"user_id": "user_1", "name": "Ana", "tasks": ["task_1"]}},
    },
    "tasks.json": [
        {
            "id": "history",
            "user_scenario": {"instructions": "You want task_1 to be completed."},
            "initial_state": {
                "message_history": [
                    {"role": "user", "content": "I have done it."},
                    {"role": "assistant", "content": "Well done."},
                ]
            },
            "evaluation_criteria": {
                "env_assertions": [
                    call(
                        "assistant",
                        "assert_task_status",
                        {"task_id": "task_1", "expected_status": "completed"},
                    )
                ],
                "reward_basis": ["ENV_ASSERTION"],
            },
        },
        {
            "id": "notified",
            "user_scenario": {"instructions": "You want task_1 to be completed."},
            "initial_state": {
                "initialization_actions": [
                    call("user", "add_notification", {"notification_id": "n1", "message": "Do it."})
                ]
            },
            "evaluation_criteria": {
                "actions": [
                    {
                        "name": "update_task_status",
                        "arguments": {"task_id": "task_1", "status": "completed"},
                    }
                ],
                "env_assertions": [
                    call(
                        "user",
                        "assert_notification_status",
                        {"notification_id": "n1", "expected_status": "read"},
                    )
                ],
                "reward_basis": ["DB", "ACTION", "ENV_ASSERTION"],
            },
        },
    ],
}


@pytest.mark.anyio
@each_of("number", [0, 1])
async def test_an_assertion_that_the_reference_leaves_unmet_is_met_by_a_call(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the agent's where there is no reference, and of the user's once it has agreed to all."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = tmp_path / "mock"
    place.mkdir(exist_ok=True)
    (place / "policy.md").write_text("Tasks have titles.")
    for name, content in MOCK.items():
        (place / name).write_text(json.dumps(content))
    row = import_set("tau2-mock", place=tmp_path).tasks[number]
    async with talking(row, tmp_path / "store.sqlite3") as (agent, _):
        await OracleAgent(load_environments(["tau2"])).solve(agent, row)
        last = await agent.ask("response", {"answer": ""})
        assert last.structured["reward"] == 1.0
