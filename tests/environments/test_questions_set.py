"""The questions: their files are real, say what they should, and give nothing away."""

import email
import email.policy
import hashlib
import io
import json
import os
import random
import re
import subprocess
import sys
import wave
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import Any, get_args
from xml.etree import ElementTree as ET

import pytest
from PIL import Image
from plays import environment_of, playing
from pypdf import PdfReader
from waiting import PATIENCE_S

from hud_mcp import Task, Taskset, gaia_match
from hud_mcp.loading.source import shipped_folder
from hud_mcp.world import Shared

pytestmark = pytest.mark.anyio

ROWS = Taskset.load(shipped_folder("taskset_data") / "questions.jsonl")
ENVIRONMENT = environment_of("questions")
KINDS = {name: import_module(f"questions_{name}") for name in ENVIRONMENT.templates}
ASKED = [(name, ask) for name, kind in KINDS.items() for ask in get_args(kind.Ask)]
SEEDS = range(25)

each_question = pytest.mark.parametrize(("name", "ask"), ASKED, ids=["-".join(a) for a in ASKED])


def case_of(row: Task) -> Any:
    """What a row asks, with its files."""
    return KINDS[row.template].draw(row.args["seed"], row.args["ask"])


def files_of(row: Task) -> Mapping[str, bytes]:
    """The files of a row."""
    return case_of(row).paint()


def picture_of(kind: ModuleType, seed: int, ask: str) -> Image.Image:
    """The one picture of a question."""
    (data,) = (d for n, d in kind.draw(seed, ask).paint().items() if n.endswith(".png"))
    return Image.open(io.BytesIO(data)).convert("RGB")


@pytest.mark.sampled(12)
@each_question
def test_a_question_of_any_seed_has_one_right_answer(name: str, ask: str) -> None:
    """The truth is in GAIA's form and not in the question; hasty answers and lists of all fail."""
    truths: set[str] = set()
    for seed in SEEDS:
        case = KINDS[name].draw(seed, ask)
        truths.add(case.truth)
        assert gaia_match(case.truth, case.truth) == 1.0
        assert gaia_match(f" {case.truth.upper()} ", case.truth) == 1.0
        assert len(case.careless) >= 2, (seed, case)
        every = ", ".join([case.truth, *case.careless])
        hedged = (every, f"{case.truth} or {case.careless[0]}", f"about {case.truth} euros")
        for wrong in ("", "nan", "inf", "0", *case.careless, *hedged):
            assert gaia_match(wrong, case.truth) == 0.0, (seed, wrong, case.truth)
        bare = rf"(?<![\w.]){re.escape(case.truth)}(?![\w.])"
        assert not re.search(bare, case.question), (seed, case)
    assert len(truths) >= 4, truths


def test_rows_have_a_level_and_the_hasty_answers_of_their_seed() -> None:
    """Levels are those of GAIA; every kind of question is asked, and traps are told to nobody."""
    assert len(ROWS) == 40
    assert {row.metadata["level"] for row in ROWS} == {1, 2, 3}
    assert {(row.template, row.args["ask"]) for row in ROWS} == set(ASKED)
    for row in ROWS:
        assert row.validation is not None
        assert tuple(row.validation.wrong) == case_of(row).careless


FILES_ELSEWHERE = """
import hashlib, json, sys
sys.path.insert(0, sys.argv[1])
from importlib import import_module
for name, ask, seed in json.load(sys.stdin):
    files = import_module(f"questions_{name}").draw(seed, ask).paint()
    print(json.dumps({n: hashlib.sha256(d).hexdigest() for n, d in files.items()}))
"""


@pytest.mark.long
def test_files_of_a_seed_are_the_same_in_another_process() -> None:
    """Bytes depend on nothing but the seed: not on the time, nor on the order of sets."""
    asked = [[row.template, row.args["ask"], row.args["seed"]] for row in ROWS]
    done = subprocess.run(
        [sys.executable, "-c", FILES_ELSEWHERE, str(ENVIRONMENT.folder)],
        input=json.dumps(asked), capture_output=True, text=True, check=True, timeout=PATIENCE_S,
        env={**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"},
    )  # fmt: skip
    for row, line in zip(ROWS, done.stdout.splitlines(), strict=True):
        here = {n: hashlib.sha256(d).hexdigest() for n, d in files_of(row).items()}
        assert here == json.loads(line), row.id


def test_neither_names_nor_metadata_of_files_tell_the_answer() -> None:
    """Pictures have no chunk beside their pixels, and no packed file has the answer bare."""
    for row in ROWS:
        case = case_of(row)
        truth = case.truth.encode()
        for name, data in case.paint().items():
            assert case.truth not in name
            if name.endswith((".png", ".wav", ".pdf", ".xlsx", ".eml")):
                assert truth not in data or len(truth) < 4, (row.id, name)
            if name.endswith(".png"):
                kinds = set(re.findall(rb"[a-z]{4}|[A-Z]{4}", data[:64]))
                assert Image.open(io.BytesIO(data)).info == {}, row.id
                assert kinds == {b"IHDR", b"IDAT"}, row.id
            if name.endswith(".wav"):
                with wave.open(io.BytesIO(data)) as sound:
                    told = (sound.getnchannels(), sound.getsampwidth(), sound.getframerate())
                    assert told == (1, 2, 8000)
                    assert len(data) == 44 + 2 * sound.getnframes(), "nothing beside the samples"


@pytest.mark.parametrize("seed", [3, 13])
def test_another_program_reads_the_invoice(seed: int) -> None:
    """Pypdf finds two pages; one line is wrong, and the sums follow what is printed."""
    kind = KINDS["invoice"]
    data = kind.draw(seed, "net").paint()["invoice.pdf"]
    first, second = (page.extract_text() for page in PdfReader(io.BytesIO(data), strict=True).pages)
    found = re.findall(r"([BKMT]-\d{4}) .+ (\d+) (\d+)\.00 (\d+)\.00", first)
    rows = [(article, *map(int, numbers)) for article, *numbers in found]
    assert len(rows) == 7
    wrong = [article for article, count, price, amount in rows if count * price != amount]
    assert wrong == [kind.draw(seed, "line").truth]
    assert sum(count * price for _, count, price, _ in rows) == float(kind.draw(seed, "net").truth)
    assert f"Net total {sum(row[3] for row in rows)}.00" in first
    assert "within 10 days may deduct 2 %" in second


def test_the_workbook_has_what_spreadsheets_read() -> None:
    """Each part is XML and declared; cells are merged, a sheet and rows are hidden."""
    data = KINDS["workbook"].draw(5, "net").paint()["sales.xlsx"]
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        assert book.testzip() is None
        parts = {name: ET.fromstring(book.read(name)) for name in book.namelist()}
    declared = {each.get("PartName") for each in parts["[Content_Types].xml"]}
    assert {f"/{name}" for name in parts if name.startswith("xl/") and "_rels" not in name} == (
        declared - {None}
    )
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    states = [each.get("state") for each in parts["xl/workbook.xml"].iter(f"{space}sheet")]
    assert states == [None, None, "hidden"]
    sheet = parts["xl/worksheets/sheet1.xml"]
    merged = [each.get("ref") for each in sheet.iter(f"{space}mergeCell")]
    assert {"A1:H1", "C2:E2", "F2:H2"} <= set(merged)
    assert sum(row.get("hidden") == "1" for row in sheet.iter(f"{space}row")) == 4


def test_a_mail_program_reads_the_order() -> None:
    """Its words, its encoded names and its archive come out as they were written."""
    data = KINDS["parcel"].draw(5, "price").paint()["order.eml"]
    message = email.message_from_bytes(data, policy=email.policy.default)
    assert "Zoë Núñez" in message["From"]
    body = message.get_body()
    assert body is not None
    assert "café" in body.get_content()
    (attached,) = message.iter_attachments()
    with zipfile.ZipFile(io.BytesIO(attached.get_content())) as archive:
        assert archive.namelist() == ["order.csv", "prices.json"]


@pytest.mark.parametrize("ask", ["difference", "ratio", "ahead"])
def test_bars_are_as_high_as_their_values(ask: str) -> None:
    """Each bar's colour ends where its own axis has the value."""
    kind = KINDS["chart"]
    chart, _ = kind.charted(4, ask)
    image = picture_of(kind, 4, ask)
    for series, values in enumerate(chart.series):
        for month, value in enumerate(values):
            left, right = kind.bar_place(month, series, len(chart.series))
            column = [
                image.getpixel(((left + right) // 2, y)) for y in range(kind.TOP, kind.BOTTOM)
            ]
            top = kind.TOP + column.index(kind.COLOURS[series])
            axis = chart.axes[series]
            per_px = (axis.high - axis.low) / (kind.BOTTOM - kind.TOP)
            assert axis.high - (top - kind.TOP) * per_px == pytest.approx(value, abs=per_px)


@pytest.mark.parametrize("seed", [2, 43])
def test_the_map_shows_its_roads_and_its_scale(seed: int) -> None:
    """A road's colour is where there is one and nowhere else; crosses and the bar are in place."""
    kind = KINDS["map"]
    made, image = kind.mapped(seed, "round"), picture_of(kind, seed, "round")
    for x in range(10):
        for y in range(7):
            for node in ((x + 1, y), (x, y + 1)):
                if node[0] > 9 or node[1] > 6:
                    continue
                road = frozenset(((x, y), node))
                (x1, y1), (x2, y2) = kind.pixel((x, y)), kind.pixel(node)
                middle = image.getpixel(((x1 + x2) // 2, (y1 + y2) // 2))
                wanted = kind.CLOSED if road in made.closed else kind.ROAD
                assert (middle == wanted) == (road in made.roads), road
    bottom = kind.pixel((0, 6))[1] + 88 + 4
    inks = ((38, 42, 48), (255, 255, 255))
    bar = [x for x in range(image.width // 2) if image.getpixel((x, bottom)) in inks]
    assert bar[-1] - bar[0] == made.bar_cells * kind.CELL_PX
    assert made.bar_m == made.cell_m * made.bar_cells


@pytest.mark.parametrize("seed", [1, 52])
def test_the_plan_is_drawn_to_its_dimensions(seed: int) -> None:
    """Walls stand where the lengths on the plan put them."""
    kind = KINDS["plan"]
    plan, image = kind.planned(seed), picture_of(kind, seed, "area")
    dark = (38, 42, 48)
    low = [x for x in range(image.width) if image.getpixel((x, kind.TOP + 14)) == dark]
    edges = [0, plan.left, plan.width - plan.bath_width, plan.width]
    for edge in edges:
        assert any(abs(x - kind.LEFT - edge * kind.SCALE_PX) <= 3 for x in low), edge
    column = kind.LEFT + (plan.width - 3) * kind.SCALE_PX
    down = [y for y in range(image.height) if image.getpixel((column, y)) == dark]
    for edge in (0, plan.bath_height, plan.height):
        assert any(abs(y - kind.TOP - edge * kind.SCALE_PX) <= 3 for y in down), edge


@pytest.mark.parametrize("ask", ["moves", "captures", "safe"])
def test_the_board_shows_every_piece_and_rock(ask: str) -> None:
    """The colour of each square's disc or hexagon is that of what stands there."""
    kind = KINDS["game"]
    made, image = kind.placed(6, ask), picture_of(kind, 6, ask)
    for x in range(8):
        for y in range(8):
            cx, cy = kind.middle((x, y))
            seen = image.getpixel((cx - 17, cy))
            piece = made.pieces.get((x, y))
            assert (seen == kind.ROCK) == ((x, y) in made.rocks)
            assert (seen == kind.WHITE_PIECE) == (piece is not None and piece[0] == "w")
            assert (seen == kind.BLACK_PIECE) == (piece is not None and piece[0] == "b")


def test_the_stain_hides_the_total_and_nothing_else() -> None:
    """With another total, the picture is the same to the last pixel."""
    kind = KINDS["receipt"]
    made = kind.received(7)
    assert kind.paint(replace(made, total=8888)) == kind.paint(made)
    (name, amount), *rest = made.lines
    other = ((name, "1.11"), *rest)
    assert amount != "1.11"
    assert kind.paint(replace(made, lines=other)) != kind.paint(made)


@pytest.mark.sampled(1)
@pytest.mark.sandbox
@pytest.mark.parametrize("template", ["dial", "melody", "cipher"])
async def test_sounds_are_heard_right_for_other_seeds_too(template: str, machine: None) -> None:
    """Solutions that hear get full marks for seeds that are in no row."""
    shared = Shared()
    asks = get_args(KINDS[template].Ask)
    for seed in random.Random(f"seeds of {template}").sample(range(1_000_000), 2):
        task = Task(env="questions", template=template, args={"seed": seed, "ask": asks[-1]})
        async with playing(task, shared) as play:
            await play.solve(task)
        assert play.grade is not None
        assert play.grade.reward == 1.0, (seed, play.tools.answer)
