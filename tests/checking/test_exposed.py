"""What may not be in a file, in a page's source, or at an address of a site."""

from tables import each_of

from hud_mcp.rollout.checking.leaks import Candidate, Exposure, Trail
from hud_mcp.rollout.checking.surface import Seen, SeenKind

PROMPT = "Which town in towns.csv has the highest number? The secret is in the numbers."


@each_of(
    ("value", "certain", "kind", "named", "text", "fails"),
    [
        ("Bela", True, "file", "k", "Bela", True),
        ("Bela", True, "file", "notes.txt", "it is Bela", False),
        ("Bela", True, "file", "answers.txt", "it is Bela", True),
        ("Bela", True, "file", "goldTowns.txt", "it is Bela", True),
        ("Bela", True, "file", "notes.txt", "answer = Bela", True),
        ("Bela", True, "file", "notes.txt", "secret = Bela", False),
        ("Bela", True, "file", "data/towns.csv", "Bela", False),
        ("Bela", True, "file", "logs/2.log", "Bela", False),
        ("Bela", False, "file", "answers.txt", "Bela", False),
        ("Bela", True, "outside", "/tmp/x", "it is Bela", True),  # of a sandbox
        (12, True, "file", "k", "12", None),
        (12, True, "outside", "/etc/x", "12", None),
        (12, True, "file", "meta.json", '{"rows": 3, "answer": 12}', True),
        (12, True, "file", "meta.json", '{"rows": 12, "answer": 3}', None),
        (12, True, "hidden", "data-id", "12", None),
        (12, True, "hidden", "data-answer", "12", True),
        (12, True, "open", "/api/answer.json : value", "12", True),
        ("Bela", True, "hidden", "", "Bela", True),
        ("Cora", True, "hidden", "", "Cora", False),
        ("Bela", True, "open", "/app.js", "let towns = ['Bela']", True),
        ("Dora", True, "open", "/app.js", "let towns = ['Dora']", False),
        ("Dora", True, "open", "/app.js", "let answer = 'Dora'", True),
        ("Dora", True, "hidden", "", "Dora", True),
    ],
)
def test_an_answer_fails_where_it_calls_itself_one_and_the_way_does_not_lead_there(  # noqa: PLR0917  # a table's columns
    value: str | float,
    certain: bool,  # noqa: FBT001  # a column
    kind: SeenKind,
    named: str,
    text: str,
    fails: bool | None,  # noqa: FBT001  # a column
) -> None:
    """A page shows Cora, the oracle saw Dora, and it read the log."""
    exposure = Exposure(
        PROMPT, [PROMPT, "Cora lies north."], Trail(said='["cat logs/2.log"]', saw="Dora, 7")
    )
    candidate = Candidate(value, "town", "the oracle's answer", certain=certain)
    seen = Seen(place="somewhere", kind=kind, text=text, own=True, named=named)
    assert exposure.fails(candidate, seen) is fails
