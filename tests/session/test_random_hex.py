"""Random digits are each given out once."""

import os

from hud_mcp.session.random_hex import random_hex


def test_nothing_is_given_out_twice() -> None:
    """Neither across reads of the source, nor where more is asked for than one of them gives."""
    drawn = [random_hex(16) for _ in range(2000)]
    assert len(set(drawn)) == 2000
    assert {len(each) for each in drawn} == {32}
    assert len(random_hex(10_000)) == 20_000


def test_a_forked_process_draws_its_own() -> None:
    """What its parent gives out next is no secret of the child's, nor the reverse."""
    reading, writing = os.pipe()
    random_hex(16)
    child = os.fork()
    if child == 0:
        os.write(writing, random_hex(16).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 32).decode() != random_hex(16)
    os.close(reading)
    os.close(writing)
