"""HUD's options for workspaces: done, or refused with a sentence that says what to use."""

from pathlib import Path
from typing import Any

import pytest
from tables import each_of

import hud_mcp.environment as declared
from hud_mcp import Environment, ShellWorld
from hud_mcp.environment import (
    DEFAULT_SYSTEM_MOUNTS,
    Mount,
    Peer,
    Workspace,
    WorkspaceRoute,
)
from hud_mcp.errors import InvalidEnvironment


def made(root: Any, **options: Any) -> Workspace:
    """A workspace with some options."""
    return Environment("tried").workspace(root, **options)


def test_the_names_of_hud_are_there() -> None:
    """Each that a file of HUD's may import for its workspace."""
    names = ("Mount", "MountKind", "DEFAULT_SYSTEM_MOUNTS", "Peer", "WorkspaceRoute", "Workspace")
    for name in names:
        assert getattr(declared, name) is not None
        assert name in declared.__all__
    assert Peer("db", 5432).address == ("127.0.0.1", 5432)
    assert Peer("db", 5432, ("10.0.0.1", 1)).address == ("10.0.0.1", 1)
    assert WorkspaceRoute.from_url("shell", "https://example.com/x").port == 443
    assert WorkspaceRoute("shell", "example.com", 80).to_wire() == {
        "capability": "shell", "host": "example.com", "port": 80,
    }  # fmt: skip
    with pytest.raises(InvalidEnvironment, match=r"host='10\.0\.0\.1' is not a host's name"):
        WorkspaceRoute("shell", "10.0.0.1", 80)


def test_what_a_workspace_says_of_itself(tmp_path: Path) -> None:
    """HUD's attributes, of what it was given; nothing is made by declaring it."""
    world = made(
        tmp_path / "x", env={"A": "b"}, allowed_hosts={"example.com"}, track_files=True,
        mounts=[Mount("ro", "/usr/share", "/data"), Mount("ro", "/no/such", "/n", optional=True)],
        system_mounts=DEFAULT_SYSTEM_MOUNTS, host="127.0.0.1", port=0, user="agent",
        guest_path="/workspace", peers=(), ports=(), local_aliases=set(), credentials_dir=None,
        hosts_path=None, hand_over_root=True, shell_uid=1000, shell_gid=1000,
        require_isolation=True, network=False,
    )  # fmt: skip
    assert world.root == tmp_path / "x"
    assert not world.root.exists()
    assert world.env == {"A": "b"}
    assert world.allowed_hosts == frozenset({"example.com"})
    assert world.tracks_files
    assert not world.network
    assert len(world.mounts) == 2
    assert str(world.options.hosts) == "example.com"
    assert dict(world.options.readonly) == {"/data": Path("/usr/share")}


def test_the_network_of_hud_is_the_public_web(tmp_path: Path) -> None:
    """By its proxy; a set of hosts says which, also where the network is on."""
    assert str(made(tmp_path, network=True).options.hosts) == "*"
    assert (
        str(made(tmp_path, network=True, allowed_hosts={"a.example"}).options.hosts) == "a.example"
    )
    assert str(made(tmp_path, network=True, allowed_hosts=set()).options.hosts) == "empty"
    assert str(made(tmp_path).options.hosts) == "empty"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"peers": [Peer("db", 5432)]}, "publish the service as a Capability"),
        ({"local_aliases": {"db"}}, "localhost is the sandbox's own"),
        ({"ports": [8080]}, "a loopback of its own"),
        ({"host": "0.0.0.0"}, "through the channel's own address"),
        ({"port": 2222}, "through the channel's own port"),
        ({"user": "me"}, "commands run as 'agent'"),
        ({"credentials_dir": "/keys"}, "kept in memory"),
        ({"host_key_path": "/key"}, "kept in memory"),
        ({"hosts_path": "/etc/hosts"}, "by the proxy of allow="),
        ({"system_mounts": []}, "readonly="),
        ({"mounts": [Mount("rw", "/data", "/data")]}, "nothing of the machine can be written"),
        ({"mounts": [Mount("tmpfs", dst="/x")]}, "a mount of kind 'tmpfs' is not supported"),
        ({"guest_path": "/home/agent"}, "inside, the folder is /workspace"),
        ({"allowed_hosts": "example.com"}, "expected a set of hosts"),
        ({"netwrok": True}, "Did you mean 'network'"),
        ({"alow": ["x.example"]}, "Did you mean 'allow'"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_use(
    tmp_path: Path, options: dict[str, Any], told: str
) -> None:
    """When the file is loaded, before anything runs."""
    with pytest.raises(InvalidEnvironment) as refused:
        made(tmp_path, **options)
    assert told in str(refused.value)
    assert not isinstance(refused.value.__cause__, TypeError)


@each_of("root", ["/", "/usr", "/tmp", Path(declared.__file__).parents[1]])
def test_a_root_with_programs_in_it_is_refused(root: Any) -> None:
    """An agent would write what this server runs."""
    with pytest.raises(InvalidEnvironment, match="Name a folder that has only"):
        made(root)


def test_a_second_workspace_is_refused(tmp_path: Path) -> None:
    """A session has one world."""
    env = Environment("two")
    env.workspace(tmp_path)
    with pytest.raises(InvalidEnvironment, match="has a world already"):
        env.workspace(tmp_path, name="other")


def test_only_templates_without_a_world_run_apart(tmp_path: Path) -> None:
    """Those that take a shell keep the server's process; so do all without a root."""
    env, rootless = Environment("both"), Environment("none")
    world, nowhere = env.workspace(tmp_path), rootless.workspace()

    @env.template()
    async def plain() -> Any:
        yield "?"
        yield 1.0

    @env.template()
    async def shelled(shell: ShellWorld) -> Any:
        yield shell.root
        yield 1.0

    assert world.runs_apart(plain)
    assert not world.runs_apart(shelled)
    assert not nowhere.runs_apart(plain)


def test_a_relative_root_is_beside_the_file_or_where_the_server_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the file where it is there; else HUD's, which it makes."""
    monkeypatch.chdir(tmp_path)
    world = Workspace("work", folder=tmp_path / "beside")
    assert world.root == tmp_path / "work"
    (tmp_path / "beside" / "work").mkdir(parents=True)
    assert world.root == tmp_path / "beside" / "work"
