"""A page's source is taken apart into what is shown, what is not, and the addresses in it."""

from tables import each_of

from hud_mcp.rollout.checking.pages import HtmlSource, named_addresses, parts_of_text


@each_of(
    ("text", "kind", "said"),
    [
        ("<p>Bela</p>", None, ""),
        ("<img alt=Bela>", None, ""),
        ("<input value=Bela>", None, ""),
        ("<title>Bela</title>", None, ""),
        ("<p class=Bela style='color: Bela'>", None, ""),
        ("<!-- Bela -->", "hidden", "line 1: a comment"),
        ("<p>\n\n<!--\nBela -->", "hidden", "line 4: a comment"),
        ("<p data-town='Bela'>", "hidden", "data-town of a <p>"),
        ("<p id='Bela'>", "hidden", "id of a <p>"),
        ("<town-row key='Bela'>", "hidden", "key of a <town-row>"),
        ("<meta name=town content=Bela>", "hidden", "content of a <meta>"),
        ("<input type=HIDDEN name=town value=Bela>", "hidden", "the hidden input 'town'"),
        ("<input type=radio value=Bela>", "open", "the value of a <input>"),
        ("<a href='/towns/Bela'>one</a>", "open", "href of a <a>"),
        ("<p onclick=\"go('Bela')\">", "open", "onclick of a <p>"),
        ("<script>\nlet x = 'Bela'</script>", "open", "line 2: a <script>"),
        ("<p hidden>not <b>Bela</b></p>", "open", "the hidden text of a <b>"),
        ("<div style='display: none'><br><p>Bela", "open", "the hidden text of a <p>"),
        ("<template><p>Bela</p></template>", "open", "the hidden text of a <p>"),
        ("<p hidden>one</p>Bela", None, ""),
    ],
)
def test_a_text_is_shown_or_has_a_place_in_the_source(
    text: str, kind: str | None, said: str
) -> None:
    """Whatever holds it."""
    source = HtmlSource(text, "the page")
    found = [each for each in source.parts if "Bela" in each.text]
    assert [each.kind for each in found] == ([] if kind is None else [kind])
    assert all(said in each.place for each in found)
    layout = "class" in text
    assert any("Bela" in each for each in source.visible) is (kind is None and not layout)


@each_of(
    ("text", "addresses"),
    [
        ("<a href='/a'>", ["/a"]),
        ("<script src=app.js></script>", ["app.js"]),
        ("<form action='/api/vote'><input name=for value=lamp><input></form>",
         ["/api/vote", "/api/vote?for=lamp"]),
        ("<form method=POST action='/api/vote'><input name=for></form>", ["/api/vote"]),
        ("<b onclick=\"go('/api/x')\">", ["/api/x"]),
        ("<script>fetch('/api/answer.json'); x = `data/a.csv`; 'a b', '1.5'</script>",
         ["/api/answer.json", "data/a.csv"]),
    ],
)  # fmt: skip
def test_the_addresses_of_a_page_are_those_that_elements_and_scripts_name(
    text: str, addresses: list[str]
) -> None:
    """As they are written; a form that is sent by GET, with its fields as they are filled."""
    assert HtmlSource(text, "the page").addresses == addresses


def test_data_is_taken_apart_by_its_fields_and_other_text_by_its_lines() -> None:
    """Each with its place, and what its author calls it."""
    [one] = parts_of_text('{"order": {"answer": 3}}', "GET /api/x", "/api/x")
    assert (one.text, one.kind) == ("3", "open")
    assert one.place == "GET /api/x.order: answer"
    assert "answer" in one.named
    assert [each.place for each in parts_of_text("a\nb", "GET /x.js", "/x.js")] == [
        "GET /x.js, line 1",
        "GET /x.js, line 2",
    ]
    assert named_addresses("`/api/${id}`, '/x', \"./y.json\"") == ["/x", "./y.json"]
