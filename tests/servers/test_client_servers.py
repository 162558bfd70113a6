"""The servers of the known clients, by their names, in the formats that each client documents."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from running_servers import HERE, listening, plain
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp.environment.spec import Opening
from hud_mcp.errors import InvalidConfiguration, InvalidEnvironment, SourceNotFound
from hud_mcp.loading.source import Source, lasting_source
from hud_mcp.plugins.install.client import CLIENTS, Machine
from hud_mcp.plugins.servers.world import Tools

pytestmark = pytest.mark.anyio

SECRET = "a-token-of-theirs-4711"
PYTHON = "/usr/bin/python3"
SERVER = f"[{str(HERE / 'plain_server.py')!r}]".replace("'", '"')
HERE_TOO = '["${workspaceFolder}/server.py"]'
OWN = f'"env": {{"TOKEN": "{SECRET}", "LEVEL": "info"}}'
NAMED = '"env": {"TOKEN": "${MINE}", "LEVEL": "${LEVEL:-info}"}'
OF_EDITOR = '"env": {"TOKEN": "${env:MINE}", "LEVEL": "info"}'
OF_FILE = '"envFile": "${workspaceFolder}/.env", "env": {"LEVEL": "info"}'
LOCAL = '{"mcpServers": {}, "projects": {"PROJECT": {"mcpServers": {"ours": ENTRY}}}}'


def started(args: str, more: str, kind: str = "") -> str:
    """An entry of JSON that starts a program."""
    return f'{{{kind}"command": "{PYTHON}", "args": {args}, {more}}}'


STDIO = '"type": "stdio", '
SERVERS = '{"mcpServers": {"ours": ENTRY}}'
OF_ZED = '{"context_servers": {"ours": ENTRY,}}'
TABLE = f'[mcp_servers.ours]\ncommand = "{PYTHON}"\n'
LEVEL = '[mcp_servers.ours.env]\nLEVEL = "info"\n'
STARTED = [
    ("claude-desktop", "", SERVERS, started(SERVER, OWN)),
    ("claude-code", "", SERVERS, started(SERVER, NAMED, STDIO)),
    ("claude-code", "", LOCAL, started('["server.py"]', OWN, STDIO)),
    ("claude-code", ".mcp.json", SERVERS, started('["server.py"]', NAMED)),
    ("cursor", "", f"// mine\n{SERVERS}", started(SERVER, OF_EDITOR)),
    ("cursor", ".cursor/mcp.json", SERVERS, started(HERE_TOO, OF_FILE, STDIO)),
    ("vscode", "", '{"inputs": [], "servers": {"ours": ENTRY}}', started(SERVER, OF_EDITOR, STDIO)),
    ("vscode", ".vscode/mcp.json", '{"servers": {"ours": ENTRY},}', started(HERE_TOO, OF_FILE)),
    (
        "codex",
        "",
        f'model = "x"\n{TABLE}args = {SERVER}\n{LEVEL}TOKEN = "{SECRET}"\n',
        "",
    ),
    (
        "codex",
        ".codex/config.toml",
        f'{TABLE}args = ["server.py"]\nenv_vars = ["TOKEN"]\n{LEVEL}',
        "",
    ),
    ("gemini", "", SERVERS, started(SERVER, NAMED.replace("${MINE}", "$MINE"))),
    ("gemini", ".gemini/settings.json", SERVERS, started('["server.py"]', f'"cwd": ".", {OWN}')),
    ("windsurf", "", SERVERS, started(SERVER, f'"disabled": false, {OF_EDITOR}')),
    ("zed", "", OF_ZED, started(SERVER, f'"source": "custom", {OWN}')),
    ("zed", ".zed/settings.json", OF_ZED, started('["server.py"]', OWN)),
]
"""A client, the project's file or "" for the person's own, its text, and the entry in it."""

SENT = f'"headers": {{"Authorization": "Bearer {SECRET}"}}'
NAMED_TOO = SENT.replace(SECRET, "${MINE}")
OF_EDITOR_TOO = SENT.replace(SECRET, "${env:MINE}")
REACHED = [
    ("claude-code", SERVERS, f'{{"type": "http", "url": "ADDRESS", {NAMED_TOO}}}'),
    ("cursor", SERVERS, f'{{"url": "ADDRESS", {OF_EDITOR_TOO}}}'),
    ("vscode", '{"servers": {"ours": ENTRY}}', f'{{"type": "http", "url": "ADDRESS", {SENT}}}'),
    ("codex", '[mcp_servers.ours]\nurl = "ADDRESS"\nbearer_token_env_var = "MINE"', ""),
    (
        "codex",
        '[mcp_servers.ours]\nurl = "ADDRESS"\nenv_http_headers = {Authorization = "WHOLE"}',
        "",
    ),
    ("gemini", SERVERS, f'{{"httpUrl": "ADDRESS", {SENT}}}'),
    ("windsurf", SERVERS, f'{{"serverUrl": "ADDRESS", {OF_EDITOR_TOO}}}'),
    ("zed", OF_ZED, f'{{"url": "ADDRESS", {SENT}}}'),
]
"""The same for servers that run elsewhere."""


@pytest.fixture
def person(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a person with some variables, on this machine."""
    for name, value in (("TOKEN", SECRET), ("MINE", SECRET), ("WHOLE", f"Bearer {SECRET}")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Machine, "here", lambda: Machine("linux", home, {}))
    return home


def write(person: Path, client: str, file: str, text: str) -> str:
    """Write a client's only configuration, for a new project or all; the source of its server."""
    project = Path(tempfile.mkdtemp(dir=person))
    shutil.copy(HERE / "plain_server.py", project / "server.py")
    (project / ".env").write_text(f"# theirs\nexport TOKEN='{SECRET}'\n")
    own = CLIENTS[client].file(Machine.here())
    own.unlink(missing_ok=True)
    path = project / file if file else own
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace("PROJECT", str(project)))
    return f"mcp:at={project} {client}/ours"


@asynccontextmanager
async def opened(source: str) -> AsyncIterator[Tools]:
    """The tools of a source's server, without an agent."""
    (environment,) = Source(source).load()
    assert SECRET not in environment.made_of
    spec: Any = environment.world
    with anyio.fail_after(PATIENCE_S):
        world = await spec.open(Opening(folder=environment.folder))
        try:
            async with world.second() as tools:
                yield tools
        finally:
            with anyio.CancelScope(shield=True):
                await world.close()


async def serves(person: Path, client: str, file: str, text: str) -> None:
    """The server has the entry's variables, and says none of the secret ones."""
    async with opened(write(person, client, file, text)) as tools:
        assert (await tools.call("variable", name="TOKEN")).text == "[masked]"
        assert (await tools.call("variable", name="LEVEL")).text == "info"


def test_every_known_client_has_an_entry_here() -> None:
    """For all projects, and for one where it has such a file."""
    found = {(client, file) for client, file, _, _ in STARTED}
    wanted = {(name, file) for name, each in CLIENTS.items() for file in {"", each.project}}
    assert found == wanted


@pytest.mark.sandbox
@pytest.mark.usefixtures("machine")
async def test_a_servers_variables_are_those_of_its_entry(person: Path) -> None:
    """Relative paths are of the project; a default of Claude Code is one."""
    client, file, text, entry = STARTED[3]
    await serves(person, client, file, text.replace("ENTRY", entry))


@pytest.mark.long
@pytest.mark.sandbox
@pytest.mark.usefixtures("machine")
@each_of("client, file, text, entry", STARTED)
async def test_the_server_of_each_client_starts(
    person: Path, client: str, file: str, text: str, entry: str
) -> None:
    """From the person's file and from the project's."""
    await serves(person, client, file, text.replace("ENTRY", entry))


async def test_a_server_elsewhere_gets_the_headers_of_its_entry(
    person: Path, tmp_path: Path
) -> None:
    """It may print its token: that is masked without its scheme too."""
    with listening(tmp_path / "theirs", plain(), HTTP_TOKEN=SECRET) as url:
        for client, text, entry in REACHED:
            filled = text.replace("ENTRY", entry).replace("ADDRESS", url)
            async with opened(write(person, client, "", filled)) as tools:
                assert (await tools.call("variable", name="HTTP_TOKEN")).text == "[masked]", client


async def test_a_server_of_the_older_http_is_spoken_to(person: Path, tmp_path: Path) -> None:
    """By its type, or by its address where the client tries both."""
    words = [str(HERE / "sdk_server.py"), "sse"]
    with listening(tmp_path / "theirs", words) as url:
        for entry in ('{"type": "sse", "url": "ADDRESS"}', '{"url": "ADDRESS"}'):
            text = SERVERS.replace("ENTRY", entry.replace("ADDRESS", url.replace("/mcp", "/sse")))
            async with opened(write(person, "cursor", "", text)) as tools:
                assert (await tools.call("add", text="tea")).text.endswith(" notes")


def test_the_entry_of_a_project_comes_before_that_of_all(person: Path) -> None:
    """Of two of one name, and the person's own before the one that the project shares."""
    source = write(person, "claude-code", "", SERVERS.replace("ENTRY", '{"command": "no-such-1"}'))
    project = Path(source.split()[0].removeprefix("mcp:at="))
    with pytest.raises(InvalidEnvironment, match="no-such-1"):
        Source(source).load()
    (project / ".mcp.json").write_text(SERVERS.replace("ENTRY", '{"command": "no-such-2"}'))
    with pytest.raises(InvalidEnvironment, match="no-such-2"):
        Source(source).load()
    text = LOCAL.replace("ENTRY", '{"command": "no-such-3"}').replace("PROJECT", str(project))
    (person / ".claude.json").write_text(text)
    with pytest.raises(InvalidEnvironment, match="no-such-3"):
        Source(source).load()


@each_of(
    "entry, told",
    [
        ('{"type": "ws", "url": "wss://example.com"}', "URL of HTTP"),
        ('{"source": "extension", "settings": {}}', "mcp:npx"),
        ('{"command": "x", "env": {"KEY": "${input:key}"}}', "input:key.*TOKEN"),
        ('{"command": "x", "args": ["${env:UNSET_THERE}"]}', "UNSET_THERE"),
        ('{"command": "x", "envFile": "${workspaceFolder}/no-such-file"}', "no-such-file"),
        ('{"command": "x", "env": ["TOKEN"]}', "vscode/ours"),
        ('{"command": ["x"]}', "mcp:npx"),
    ],
)
def test_an_entry_that_its_client_alone_can_start_is_told(
    person: Path, entry: str, told: str
) -> None:
    """With a hint of how to write it."""
    text = '{"servers": {"ours": ENTRY}}'.replace("ENTRY", entry)
    with pytest.raises(InvalidEnvironment, match=told):
        Source(write(person, "vscode", "", text)).load()


def test_a_wrong_name_is_told_with_those_of_the_project(
    person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And with both files; the source means that project from any folder."""
    source = write(person, "zed", ".zed/settings.json", '{"context_servers": {"ours": {}}}')
    project = Path(source.split()[0].removeprefix("mcp:at="))
    monkeypatch.chdir(project)
    with pytest.raises(SourceNotFound, match=r"zed/settings\.json and .*Did you mean 'ours'"):
        Source("mcp:zed/our").load()
    lasting = lasting_source("mcp:zed/ours")
    monkeypatch.chdir(person)
    assert lasting_source(lasting) == lasting == source
    with pytest.raises(SourceNotFound):
        Source("mcp:zed/ours").load()


def test_the_sources_own_words_come_before_those_of_the_entry(person: Path) -> None:
    """A value that a client asks its person for is given so."""
    entry = f'{{"command": "{PYTHON}", "args": {SERVER}, "env": {{"KEY": "${{input:key}}"}}}}'
    source = write(person, "vscode", "", '{"servers": {"ours": ENTRY}}'.replace("ENTRY", entry))
    (found,) = Source(source.replace("mcp:", "mcp:KEY=$MINE ")).load()
    assert found.name == "ours"


async def test_all_servers_of_a_client_are_one_environment(person: Path) -> None:
    """Under its name; values of variables are not in its text, and one of no server is refused."""
    entry = started(SERVER, OWN)
    two = f'{{"mcpServers": {{"my.notes": {entry}, "other_one": {entry}}}}}'
    source = write(person, "cursor", "", two).removesuffix("/ours")
    (environment,) = Source(source).load()
    assert (environment.name, SECRET in environment.made_of) == ("cursor", False)
    members: Any = environment.world
    assert list(members.members) == ["my-notes", "other-one"]
    (again,) = Source(source.replace("mcp:", "mcp:LEVEL=debug ")).load()
    assert again.made_of != environment.made_of
    with pytest.raises(InvalidEnvironment, match=r"'LEVL'.*TOKEN, LEVEL"):
        Source(source.replace("mcp:", "mcp:LEVL=debug ")).load()


@each_of(
    "text, told",
    [
        ('{"mcpServers": {}}', "has no server.*mcp:"),
        ('{"mcpServers": {"a": {"command": "x", "disabled": true}}}', "has no server.*mcp:"),
        ('{"mcpServers": {"a": 5}}', "'a'"),
        ('{"mcpServers": {"a": {"command": "x", "args": 5}}}', "a: "),
        ('{"mcpServers": {"a": {"command": "x", "env": ["TOKEN"]}}}', "a: "),
        ('{"mcpServers": {"a": {"command": "x", "cwd": null}}}', "'a'.*cwd"),
    ],
)
def test_a_file_that_has_nothing_to_serve_is_told(tmp_path: Path, text: str, told: str) -> None:
    """With its path and the entry, or the next step."""
    file = tmp_path / "bad.json"
    file.write_text(text)
    with pytest.raises((InvalidEnvironment, InvalidConfiguration), match=rf"(?s)bad\.json.*{told}"):
        Source(f"mcp:{file}").load()
