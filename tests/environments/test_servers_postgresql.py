"""Rows over PostgreSQL: wrong solutions get nothing, and sessions go on over their cluster."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from peers import Peer, stdio_peer
from phoenix import phoenix

from hud_mcp import Taskset
from hud_mcp.loading.sets import find_taskset

SOURCE = "servers:servers-postgresql"
FOLDER = Path(__file__).resolve().parents[2] / "environments" / "servers"
IS_THERE = any(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
ROWS = Taskset.load(find_taskset("servers"))

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]
over_postgresql = pytest.mark.skipif(not IS_THERE, reason="not on this machine: PostgreSQL")

WRONG = {
    "rows of a cancelled order": (
        "split_events",
        """CREATE TABLE sold AS SELECT (body->>'order')::int AS order_id, l->>'product' AS product,
        n AS quantity, n * (l->>'cents')::int AS cents FROM events
        CROSS JOIN jsonb_array_elements(CASE jsonb_typeof(body->'lines') WHEN 'array'
        THEN body->'lines' ELSE jsonb_build_array(body->'lines') END) AS l
        CROSS JOIN LATERAL (SELECT coalesce((l->>'quantity')::int, 1)) AS p(n)
        WHERE body->>'kind' = 'order'""",
    ),
    "a view of right rows": (
        "move_track",
        """{solution}; ALTER TABLE tracks RENAME TO hidden;
        CREATE VIEW tracks AS SELECT * FROM hidden""",
    ),
    "places that are no longer unique": (
        "move_track",
        "ALTER TABLE tracks DROP CONSTRAINT tracks_place_key; {solution}",
    ),
    "a row behind a policy": (
        "move_track",
        """{solution}; INSERT INTO tracks VALUES ('hidden', 99);
        ALTER TABLE tracks ENABLE ROW LEVEL SECURITY; ALTER TABLE tracks FORCE ROW LEVEL SECURITY;
        CREATE POLICY hides ON tracks USING (place < 99)""",
    ),
    "a row behind a search path": (
        "move_track",
        """{solution}; INSERT INTO tracks VALUES ('hidden', 99); CREATE SCHEMA mine;
        CREATE VIEW mine.tracks AS SELECT * FROM public.tracks WHERE place < 99;
        ALTER ROLE shop SET search_path = mine, pg_catalog""",
    ),
    "a constraint of other stays": (
        "forbid_overlaps",
        """{solution}; ALTER TABLE stays DROP CONSTRAINT one_guest;
        ALTER TABLE stays ADD EXCLUDE USING gist (int4range(room, room, '[]') WITH &&,
        daterange(arrives, leaves) WITH &&) WHERE (status = 'Booked')""",
    ),
    "a policy for the clerks of today": (
        "let_clerks",
        """REVOKE ALL ON customers, salaries FROM PUBLIC, clerks;
        GRANT SELECT (id, name, region, phone), UPDATE (phone) ON customers TO clerks;
        ALTER TABLE customers ENABLE ROW LEVEL SECURITY;
        CREATE POLICY n ON customers TO clerk_north USING (region = 'north');
        CREATE POLICY s ON customers TO clerk_south USING (region = 'south')""",
    ),
    "salaries that everybody reads": (
        "let_clerks",
        """REVOKE ALL ON customers, salaries FROM clerks;
        GRANT SELECT (id, name, region, phone), UPDATE (phone) ON customers TO clerks;
        ALTER TABLE customers ENABLE ROW LEVEL SECURITY;
        CREATE POLICY own ON customers TO clerks USING ('clerk_' || region = current_user)""",
    ),
    "a history of all statements": (
        "keep_history",
        """CREATE FUNCTION w() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO price_history VALUES (coalesce(NEW.product, OLD.product), OLD.cents, NEW.cents);
        RETURN NULL; END $$;
        CREATE TRIGGER w AFTER INSERT OR UPDATE OR DELETE ON prices
        FOR EACH ROW EXECUTE FUNCTION w()""",
    ),
    "a plan for want of another": (
        "find_visits",
        """CREATE INDEX ON visits (mail); CREATE INDEX ON visits (id) WHERE seconds IS NULL;
        ALTER ROLE shop SET enable_seqscan = off""",
    ),
    "a plan by a setting of the role in the database": (
        "find_visits",
        """ALTER ROLE shop IN DATABASE shop SET enable_seqscan = off;
        CREATE INDEX ON visits (id, day, lower(mail));
        CREATE INDEX ON visits (id, day) WHERE seconds IS NULL""",
    ),
    "an index led by another column": (
        "find_visits",
        """CREATE INDEX ON visits (lower(mail));
        CREATE INDEX ON visits (id, day) WHERE seconds IS NULL; ANALYZE visits""",
    ),
}
"""Solutions that look right, by their fault; `{solution}` is the oracle's own."""


def solutions() -> dict[str, str]:
    """The statements of oracles, by the template."""
    text = (FOLDER / "servers_postgresql.py").read_text()
    stays = re.search(r'^STAYS = """(.*?);"""', text, re.DOTALL | re.MULTILINE)
    assert stays is not None
    moved = (
        "DELETE FROM tracks WHERE title = (SELECT title FROM tracks WHERE place = {gone});"
        " UPDATE tracks SET place = -place; UPDATE tracks SET place = n FROM (SELECT title AS t,"
        " row_number() OVER (ORDER BY CASE WHEN place = -{mover} THEN 1.5 ELSE -place END) AS n"
        " FROM tracks) AS o WHERE title = t"
    )
    return {"forbid_overlaps": stays[1], "move_track": moved}


async def started(peer: Peer, template: str) -> tuple[str, dict[str, str]]:
    """A session of a row, and the solution of its template."""
    (row,) = [row for row in ROWS if row.env == "servers-postgresql" and row.template == template]
    held = await peer.start(template, **row.args)
    known = solutions().get(template, "")
    if template == "move_track":
        listed = (await peer.ok("query", session=held.session, sql="TABLE tracks")).text
        places = dict(line.split(",") for line in listed.splitlines()[1:] if "," in line)
        gone, mover = re.findall(r"track '(\w+)'", held.prompt)
        known = known.format(gone=places[gone], mover=places[mover])
    return held.session, {"solution": known}


@over_postgresql
@pytest.mark.long
@pytest.mark.parametrize("fault", WRONG)
async def test_a_solution_that_looks_right_gets_nothing(fault: str, tmp_path: Path) -> None:
    """The agent's own policies, paths, settings and functions change nothing of the grade."""
    template, sql = WRONG[fault]
    async with stdio_peer(tmp_path, (SOURCE,)) as peer:
        session, known = await started(peer, template)
        text = sql.replace("{solution}", known["solution"])
        await peer.ok("execute", session=session, sql=text)
        graded = await peer.ok("response", session=session, answer="done")
        assert graded.structured["reward"] == 0.0, graded.text


def changed(tmp_path: Path, **names: str) -> str:
    """A source whose statements get a second, and whose names have other values."""
    folder = tmp_path / "environments"
    shutil.copytree(FOLDER, folder)
    for file in ("postgresql.py", "servers_postgresql.py"):
        text = (folder / file).read_text().replace('"20s"', '"1s"')
        for name, value in names.items():
            text = re.sub(rf"(?m)^{name} = .*$", f"{name} = {value!r}", text)
        (folder / file).write_text(text)
    return f"{folder / 'env.py'}:servers-postgresql"


SLOW = """CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_sleep(9); RETURN NEW; END $$;
CREATE TRIGGER slow BEFORE INSERT ON stays FOR EACH ROW EXECUTE FUNCTION slow()"""


@over_postgresql
@pytest.mark.long
@pytest.mark.parametrize("is_machines", [False, True], ids=["the-agents", "the-machines"])
async def test_a_statement_that_is_not_answered_in_time_is_a_result_of_the_agent_alone(
    tmp_path: Path, *, is_machines: bool
) -> None:
    """The reward is 0 with a reason, and there is none where it lasts as long at the beginning."""
    slow = {"_NO_SETTINGS": "SELECT pg_sleep(9)"} if is_machines else {}
    async with stdio_peer(tmp_path, (changed(tmp_path, **slow),)) as peer:
        session, known = await started(peer, "forbid_overlaps")
        sql = known["solution"] if is_machines else f"{known['solution']}; {SLOW}"
        await peer.ok("execute", session=session, sql=sql)
        if is_machines:
            said = await peer.error("response", session=session, answer="done")
            assert "statement timeout" in said, said
            status = await peer.ended(session)
            assert (status["outcome"], status["cause"]) == ("grading_failed", "machine"), status
            assert status.get("reward") is None, status
        else:
            graded = await peer.ok("response", session=session, answer="done")
            assert graded.structured["reward"] == 0.0, graded.text
            assert "statement timeout" in graded.text, graded.text


FILLS = """DO $$ DECLARE n integer := 50000; made integer := 0; BEGIN
WHILE n > 0 LOOP
  BEGIN
    EXECUTE format('CREATE TABLE big%s AS SELECT repeat(md5(i::text), 60) FROM
      generate_series(1, %s) i', made, n);
    made := made + 1;
  EXCEPTION WHEN disk_full THEN n := n / 3;
  END;
END LOOP; END $$"""


@over_postgresql
@pytest.mark.long
async def test_a_full_disk_is_an_error_of_the_tool(tmp_path: Path) -> None:
    """It tells no file of ours, and once there is room again, the database goes on."""
    async with stdio_peer(tmp_path, (SOURCE,)) as peer:
        session, _ = await started(peer, "move_track")
        said = (await peer.call("execute", session=session, sql=FILLS)).text
        for n in range(40):
            if "cannot write its files" in said:
                break
            sql = f"CREATE TABLE more{n} AS SELECT repeat('x', 1900)"
            said = (await peer.call("execute", session=session, sql=sql)).text
        assert "cannot write its files" in said, said
        assert "Traceback" not in said, said
        await peer.ok("execute", session=session, sql="DROP TABLE big0, big1")
        left = await peer.ok("query", session=session, sql="SELECT count(*) FROM tracks")
        assert left.text == "count\n9\n"


@over_postgresql
@pytest.mark.long
async def test_the_agents_role_reaches_no_file_and_no_program(tmp_path: Path) -> None:
    """A refused call changes nothing, and a connection that the agent ends is its own alone."""
    async with stdio_peer(tmp_path, (SOURCE,)) as peer:
        session, known = await started(peer, "move_track")
        for sql in (
            "COPY tracks FROM PROGRAM 'id'", "COPY tracks TO '/workspace/x'",
            "SELECT pg_read_file('/etc/passwd')", "SELECT lo_import('/etc/passwd')",
            "SET ROLE postgres", "ALTER SYSTEM SET port = 1", "CREATE ROLE other",
            "ALTER DATABASE shop SET search_path = x", "CREATE EXTENSION file_fdw",
            "LOAD '/workspace/x.so'", "DELETE FROM tracks; SELECT 1 / 0", "SELECT '\0'; oops",
        ):  # fmt: skip
            assert "Nothing was changed" in await peer.error("execute", session=session, sql=sql)
        for sql in ("DELETE FROM tracks", "COMMIT; DELETE FROM tracks", "TABLE tracks; SELECT 1"):
            await peer.error("query", session=session, sql=sql)
        end = "SELECT pg_terminate_backend(pg_backend_pid())"
        assert "terminating connection" in await peer.error("execute", session=session, sql=end)
        assert (await peer.ok("query", session=session, sql="TABLE tracks")).text.count("\n") == 10
        await peer.ok("execute", session=session, sql=known["solution"])
        graded = await peer.ok("response", session=session, answer="done")
        assert graded.structured["reward"] == 1.0, graded.text


@over_postgresql
@pytest.mark.long
async def test_a_session_goes_on_over_its_cluster_after_the_death_of_our_server(
    tmp_path: Path,
) -> None:
    """The snapshot is a copy of the running cluster's files, with each change that was told."""
    async with phoenix(tmp_path, (SOURCE,)) as bird:
        began = await bird.call("start_task", template="move_track", arguments={"seed": 56})
        session = began["structuredContent"]["session"]
        listed = await bird.call("query", session=session, sql="TABLE tracks")
        places = dict(
            line.split(",") for line in listed["content"][0]["text"].splitlines()[1:] if line
        )
        gone, mover = re.findall(r"track '(\w+)'", str(began["content"]))[:2]
        solution = solutions()["move_track"].format(gone=places[gone], mover=places[mover])
        removes, _, moves = solution.partition(";")
        await bird.call("execute", session=session, sql=removes)
        await bird.kill_and_start()
        left = await bird.call("query", session=session, sql="SELECT count(*) FROM tracks")
        assert left["content"][0]["text"] == "count\n8\n", left
        await bird.call("execute", session=session, sql=moves)
        await bird.kill_and_start()
        graded = await bird.call("response", session=session, answer="done")
        assert graded["structuredContent"]["reward"] == 1.0, graded


@pytest.mark.long
def test_a_row_without_postgresql_says_so_before_it_starts(tmp_path: Path) -> None:
    """The job names what to install, and plays the other rows."""
    folder = tmp_path / "environments"
    shutil.copytree(FOLDER, folder)
    code = (folder / "postgresql.py").read_text()
    assert "/usr/lib/postgresql/*/bin" in code
    places = re.sub(r"(?m)^_PLACES = .*$", "_PLACES = ()", code)
    (folder / "postgresql.py").write_text(places)
    for others in (["servers-sql-stock"], []):
        chosen = [row for row in ROWS if row.id in ("servers-postgresql-tracks", *others)]
        Taskset(chosen, name="some").save(tmp_path / "some.jsonl")
        words = ["eval", "some.jsonl", "--agent", "oracle", "--env", str(folder / "env.py")]
        done = subprocess.run(
            [sys.executable, "-m", "hud_mcp", *words, "--store", str(tmp_path / "store.sqlite3")],
            capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path,
        )  # fmt: skip
        assert (done.returncode == 0) == bool(others), done.stdout + done.stderr
        assert "apt-get install postgresql" in done.stdout + done.stderr
