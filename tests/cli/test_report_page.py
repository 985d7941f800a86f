"""Tests report.html in headless Chromium: nothing is loaded, nothing goes wrong, everybody can read it."""

import itertools
import math
import re

import pytest
import report_cases as cases
from browser import page  # noqa: F401 (a fixture)
from conftest import ROOT

pytestmark = pytest.mark.slow
TAB, ENTER, ESCAPE, LEFT, RIGHT = "\ue004", "\ue007", "\ue00c", "\ue012", "\ue014"

WIDTHS = [400, 1280]
SHOWN = "const t = document.querySelector('.tip'); return t.hidden ? '' : t.textContent"


@pytest.fixture(scope="module")
def reports(run, tmp_path_factory):
    """Returns the path of report.html for each case."""
    folder = tmp_path_factory.mktemp("reports")
    offsets = cases.results(cases.grid(accuracy=True), accuracy=True)
    made = {
        "plain": [cases.results(cases.grid())],
        "sweep": [cases.sweep()],
        "hostile": [cases.hostile()],
        "one seed": [cases.results(cases.grid(seeds=[0]))],
        "partial": [cases.results(cases.grid(["mha"], seeds=[0]), missing=[("sha", "", 0)])],
        "nothing": [cases.results([], missing=[("mha", "", 0)])],
        "two": [cases.sweep(), offsets],
        "decided": [cases.results(cases.grid(["mha", "sha", "mhe_add"]))],
        "grey": [cases.grey()],
        "benchmark": [cases.benchmark()],
        "benchmarks": [cases.benchmark(name=name) for name in ("glue", "superglue", "squad-v1.1", "squad-v2.0")],
    }
    paths = {}
    for case, results in made.items():
        runs = [cases.save(folder / case / str(i), one) for i, one in enumerate(results)]
        run("report", *runs, "--out", folder / case)
        paths[case] = folder / case / "report.html"
    return paths


CASES = ["plain", "sweep", "hostile", "one seed", "partial", "nothing", "two", "decided", "grey", "benchmark", "benchmarks"]


@pytest.mark.parametrize("case", CASES)
def test_opens_offline_without_a_word(page, reports, case):  # noqa: F811
    page.open(reports[case])
    assert page.logs("browser") == []
    assert page.requests() == [reports[case].resolve().as_uri()]
    assert page.run("return document.querySelectorAll('script, img, link, iframe, object').length") == 1
    assert page.run("return [...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
                    ".filter(name => name.startsWith('on'))") == []  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("case", CASES)
def test_is_never_wider_than_the_window(page, reports, case, width):  # noqa: F811
    page.open(reports[case], width=width)
    assert page.run("return document.documentElement.scrollWidth") <= width


def test_has_every_part(page, reports):  # noqa: F811
    page.open(reports["sweep"])
    text = page.run("return document.body.innerText")
    for part in [
        "Language model: 4 schemes lose about 4% to 10% against mha; undecided: three seeds cannot tell gqa, mqa, skv and"
        " collaborative apart from mha",
        "mha has the best test perplexity of 9 schemes",
        "Read with care",
        "Predict the next token",
        "No Pareto frontier is drawn",
        "Quality, with differences to mha and sha",
        "Cost",
        "PRR = 100",
        "PEoP = ",
        "intervals hold (Bonferroni)",
        "Models that failed",
        "out of memory <script>",
        "headshare compare --text book.txt",
        "It ran headshare 0.1.0 with libtorch 2.13.0+cpu.",
        "Example 9000",
    ]:
        assert part in text, part
    titles = page.run("return [...document.querySelectorAll('figure h4')].map(e => e.textContent)")
    assert titles == [
        "Undecided: three seeds cannot tell which schemes lie on the Pareto frontier against cache",
        "Undecided: three seeds cannot tell which schemes lie on the Pareto frontier against attention parameters",
        "4 schemes are significantly worse than mha; 4 schemes are not significantly different",
        "All 9 schemes have their lowest validation loss at the end",
        "Test perplexity differs by up to 5.60 between seeds of one scheme and by up to 9.58 between schemes",
        "All 9 schemes have their lowest validation loss with learning rate 0.001",
    ]
    # Each figure is named and described, and its data stand in a table.
    assert page.run(
        "return [...document.querySelectorAll('figure')].every(f => f.querySelector('svg.plot > title').textContent"
        " && f.querySelector('svg.plot > desc').textContent && f.querySelector('details tbody tr'))"
    )
    ids = page.run("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    levels = page.run("return [...document.querySelectorAll('h1,h2,h3,h4')].map(e => +e.tagName[1])")
    assert levels[0] == 1 and levels.count(1) == 1


def test_no_key_of_a_file_is_left(page, reports):  # noqa: F811
    """Words tell what was written for programs."""
    page.open(reports["sweep"])
    page.run("for (const details of document.querySelectorAll('details')) details.open = true")
    names = page.run("return [...document.querySelectorAll('dt, summary, h3, h4, thead th')].map(e => e.textContent)")
    assert "Model width" in names and "Blocked" in names
    keys = [name for name in names if re.search(r"[_\[]|[a-z]\.[a-z]", name)]
    assert [name for name in keys if not any(scheme in name for scheme in cases.SCHEMES)] == []


def test_key_figures_follow_the_headline(page, reports):  # noqa: F811
    page.open(reports["decided"])
    order = page.run(
        "return [...document.querySelectorAll('h1, .finding, .care, figure, dl.facts, table.sortable')]"
        ".map(e => e.id || e.className || e.tagName)"
    )
    assert order[:5] == ["c1-h", "finding", "c1-cache", "c1-parameters", "facts"]
    # Members of the frontier are ringed, and the line steps from one to the next.
    for figure in ("c1-cache", "c1-parameters"):
        rings = page.run(
            "return [...document.querySelectorAll(arguments[0] + ' .ring')].map(r => [r.cx.baseVal.value,"
            " r.cy.baseVal.value])", f"#{figure}"
        )  # fmt: skip
        line = page.run("return document.querySelector(arguments[0] + ' .frontier').getAttribute('d')", f"#{figure}")
        assert rings and all(f"{x:.1f} {y:.1f}" in line for x, y in rings)


def test_two_comparisons_are_two_sections(page, reports):  # noqa: F811
    page.open(reports["two"])
    assert [
        heading.split(":")[0]
        for heading in page.run("return [...document.querySelectorAll('section h2')].map(e => e.textContent)")
    ] == ["Language model", "Offsets"]
    targets = page.run("return [...document.querySelectorAll('nav a')].map(a => !!document.querySelector(a.hash))")
    assert targets == [True, True]


@pytest.mark.parametrize("width", WIDTHS)
def test_names_do_not_cover_one_another(page, reports, width):  # noqa: F811
    page.open(reports["plain"], width=width)
    boxes = page.run(
        "return [...document.querySelectorAll('svg.plot')].map(s => [...s.querySelectorAll('text.name')].map("
        "t => { const b = t.getBoundingClientRect(); return [b.left, b.top + 2, b.right, b.bottom - 2]; }))"
    )
    assert [len(names) for names in boxes] == [10, 10, 8, 9, 10]
    for names in boxes:
        for a, b in itertools.combinations(names, 2):
            assert min(a[2], b[2]) <= max(a[0], b[0]) + 1 or min(a[3], b[3]) <= max(a[1], b[1]) + 1


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("case", CASES)
def test_nothing_in_a_figure_is_cut(page, reports, case, width):  # noqa: F811
    page.open(reports[case], width=width)
    outside = page.run(
        "return [...document.querySelectorAll('svg.plot')].flatMap(s => { const f = s.getBoundingClientRect();"
        " return [...s.querySelectorAll('text')].filter(t => { const b = t.getBoundingClientRect();"
        "  return b.left < f.left - 1 || b.right > f.right + 1 || b.top < f.top - 1 || b.bottom > f.bottom + 1; })"
        " .map(t => t.textContent); })"
    )
    assert outside == []
    smallest = page.run(
        "return Math.min(99, ...[...document.querySelectorAll('svg.plot text')].map(t =>"
        " parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a))"
    )
    assert smallest >= 9.5


def test_no_curve_leaves_its_figure_below(page, reports):  # noqa: F811
    page.open(reports["plain"])
    below = page.run(
        "return [...document.querySelectorAll('#c1-curves polyline')].filter(line => {"
        " const frame = line.ownerSVGElement; const end = frame.y.baseVal.value + frame.height.baseVal.value;"
        " return [...line.points].some(point => point.y > end); }).length"
    )
    assert page.run("return document.querySelectorAll('#c1-curves polyline').length") == 9 * 4 and below == 0


def test_the_same_cost_is_the_same_place(page, reports):  # noqa: F811
    """mqa, sha, mhe_add and mhe_mul have one cache; bars that overlap end in caps of different widths."""
    page.open(reports["plain"])
    bars = page.run(
        "return Object.fromEntries([...document.querySelectorAll('#c1-cache .mark')].map(m => {"
        " const b = m.querySelector('.e').getBBox();"
        " return [m.getAttribute('aria-label').split(':')[0], [b.x + b.width / 2, b.y, b.y + b.height, b.width]]; }))"
    )
    assert len(bars) == 10
    assert len({round(bars[name][0], 1) for name in ("mqa", "sha", "mhe_add", "mhe_mul")}) == 1
    assert len({round(bars[name][0], 1) for name in ("skv", "el_shared", "el_lossless")}) == 1
    assert len({round(place, 1) for place, *_ in bars.values()}) == len({128, 384, 256, 64, 192} & {64, 128, 192, 384})
    for a, b in itertools.combinations(bars.values(), 2):
        assert abs(a[0] - b[0]) > 1 or min(a[2], b[2]) <= max(a[1], b[1]) or a[3] != b[3]


def test_points_at_one_place_are_all_told(page, run, tmp_path):  # noqa: F811
    """el_lossless is mha with another cache: against parameters the two stand on one another."""
    what = cases.results(cases.grid(["mha", "el_lossless", "sha"]))
    run("report", cases.save(tmp_path, what))
    page.open(tmp_path / "report.html")
    page.run("document.querySelector('#c1-parameters').scrollIntoView()")
    page.point_at("#c1-parameters .mark:nth-last-of-type(1) .m")
    shown = page.run(SHOWN).split("\n")
    assert sorted(line.split(":")[0] for line in shown) == ["el_lossless", "mha"]
    page.point_at("h1")
    assert page.run(SHOWN) == ""


def test_what_is_not_to_be_relied_on_is_grey(page, reports):  # noqa: F811
    """Two of three seeds, and speeds of a busy machine, are told where they stand, and still to be read."""
    for dark in (False, True):
        page.open(reports["grey"], dark=dark)
        muted, ink = page.run(
            "const style = (css) => getComputedStyle(document.querySelector(css)).color;"
            " return [style('.eyebrow'), style('body')]"
        )
        colours = page.run(
            "return [...document.querySelectorAll('table.sortable tbody tr')].map(r =>"
            " [r.cells[0].querySelector('.scheme').textContent, getComputedStyle(r).color])"
        )
        assert {colour for name, colour in colours if name == "mqa"} == {muted}
        assert {colour for name, colour in colours if name != "mqa"} == {ink}
        busy = page.run("return [...document.querySelectorAll('.busy')].map(e => [getComputedStyle(e).color, e.parentElement.innerText])")
        assert len(busy) == 4 and all(colour == muted and "busy machine" in text for colour, text in busy)
        assert {name: value for name, value in page.run(CONTRASTS).items() if value < 4.5} == {}
    marker = "return getComputedStyle(document.querySelector(arguments[0])).fill"
    names = page.run("return [...document.querySelectorAll('svg.plot .name')].map(e => e.textContent).filter(n => n.startsWith('mqa'))")
    assert "mqa, 2 of 3 seeds" in names and "mqa 2/3" in names and "mqa" not in names
    assert page.run(marker, "#c1-cache .m.s2") == muted != page.run(marker, "#c1-cache .m.s0")
    assert "Fewer seeds than planned: mqa (2 of 3)." in page.run("return document.querySelector('.care').innerText")


def test_no_signature_in_a_figure(page, reports):  # noqa: F811
    for case in ("plain", "sweep", "benchmark"):
        page.open(reports[case])
        shown = page.run("return [...document.querySelectorAll('svg.plot text, .facts dd, th, figcaption')].map(e => e.textContent)")
        assert [text for text in shown if "|" in text] == []
        assert page.run("return document.querySelector('#c1-origin ~ p code').textContent").count("|") > 0


def test_every_value_shows_when_pointed_at_and_focused(page, reports):  # noqa: F811
    page.open(reports["sweep"])
    marks = page.run("return document.querySelectorAll('.mark').length")
    assert marks > 100
    for i in range(marks):
        wanted = page.run("return document.querySelectorAll('.mark')[arguments[0]].getAttribute('aria-label')", i)
        assert any(character.isdigit() for character in wanted)
        page.run("document.querySelectorAll('.mark')[arguments[0]].focus()", i)
        assert page.run(SHOWN) == wanted
    page.press(ESCAPE)
    assert page.run(SHOWN) == ""
    # The arrow keys go through the points of a line and back to it; the pointer shows what it is over.
    page.run("document.querySelector('#c1-curves .mark').focus()")
    page.press(RIGHT)
    assert re.fullmatch(r"mha, seed 0: validation loss \d\.\d{4} at step \d+", page.run(SHOWN))
    page.press(LEFT)
    assert page.run(SHOWN) == page.run("return document.querySelector('#c1-curves .mark').getAttribute('aria-label')")
    page.run("document.activeElement.blur(); document.querySelector('#c1-cache').scrollIntoView()")
    page.point_at("#c1-cache .mark .m")
    assert page.run(SHOWN).startswith("mqa: test perplexity")
    page.point_at("h1")
    assert page.run(SHOWN) == ""
    for width in WIDTHS:
        page.open(reports["sweep"], width=width)
        for i in range(0, marks, 7):
            page.run("document.querySelectorAll('.mark')[arguments[0]].focus()", i)
            left, right = page.run(
                "const b = document.querySelector('.tip').getBoundingClientRect(); return [b.left, b.right]"
            )
            assert left >= 0 and right <= width


def test_intervals_beyond_the_axis_have_their_numbers(page, run, tmp_path):  # noqa: F811
    what = cases.results(cases.grid(["mha", "mqa", "sha"]))
    for one in what["cells"]:
        if one["variant"] == "sha":
            one["test_loss"] += 3 * (one["seed"] - 1)
    run("report", cases.save(tmp_path, what))
    page.open(tmp_path / "report.html")
    text = page.run("return document.querySelector('#c1-differences').textContent")
    assert "An arrow marks an interval that goes on beyond the axis" in text
    numbers = page.run("return [...document.querySelectorAll('#c1-differences .small')].map(e => e.textContent)")
    assert len(numbers) == 2 and all(number.startswith("[−") and ", +" in number for number in numbers)


def test_everything_is_reached_by_keyboard(page, reports):  # noqa: F811
    page.open(reports["plain"])
    wanted = page.run("return document.querySelectorAll('a, button, summary, .scroll, .mark[tabindex=\"0\"]').length") - page.run(
        "return document.querySelectorAll('details:not([open]) .scroll').length"  # closed: not to be reached
    )
    page.run(
        "window.reached = new Set();"
        "document.addEventListener('focusin', e => { window.reached.add(e.target);"
        " window.visible = getComputedStyle(e.target).outlineStyle !== 'none'; })"
    )
    for _ in range(wanted):
        page.press(TAB)
        assert page.run("return window.visible"), page.run("return document.activeElement.outerHTML.slice(0, 80)")
    assert page.run("return window.reached.size") == wanted

    # Enter opens the data of a figure, and sorts a table: up, down, as it was.
    page.run("document.querySelector('figure summary').focus()")
    page.press(ENTER)
    assert page.run("return document.querySelector('figure details').open")
    column = "[...document.querySelectorAll('table.sortable tbody tr')].slice(0, 10).map(r => r.cells[0].innerText)"
    planned = page.run(f"return {column}")
    page.run("document.querySelectorAll('table.sortable thead th')[3].querySelector('button').focus()")
    orders = []
    for state in ["ascending", "descending", None]:
        page.press(ENTER)
        heading = "document.querySelectorAll('table.sortable thead th')[3]"
        assert page.run(f"return {heading}.getAttribute('aria-sort')") == state
        orders.append([name.split("\n")[0] for name in page.run(f"return {column}")])
    up, down, before = orders
    assert up[0].startswith("mha") and up[-1] == "sha" and down[0] == "sha"
    assert before == [name.split("\n")[0] for name in planned]


CONTRASTS = """
const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const parse = (css) => css.match(/[\\d.]+/g).map(Number);
const background = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const colour = parse(getComputedStyle(e).backgroundColor);
    if (colour.length < 4 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
for (const details of document.querySelectorAll('details')) details.open = true;
const found = {};
for (const element of document.querySelectorAll('body *')) {
  const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  if (!own || element.closest('script, title, desc')) continue;
  const style = getComputedStyle(element);
  const colour = parse(element.closest('svg') ? style.fill : style.color);
  const a = luminance(colour), b = luminance(background(element));
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const name = element.tagName + '.' + (element.getAttribute('class') || '');
  found[name] = Math.min(found[name] ?? 99, contrast);
}
return found;
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_stands_out(page, reports, dark):  # noqa: F811
    page.open(reports["two"], dark=dark)
    contrasts = page.run(CONTRASTS)
    assert len(contrasts) > 20
    assert {name: value for name, value in contrasts.items() if value < 4.5} == {}
    assert (page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)") is not dark


# These matrices give how people without one kind of cones see linear RGB: Machado, Oliveira and Fernandes 2009,
# severity 1.
SIGHTS = {
    "all cones": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


def linear(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def oklab(rgb):
    lms = times(
        [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
         [0.0883024619, 0.2817188376, 0.6299787005]],
        [max(0.0, channel) for channel in rgb],
    )  # fmt: skip
    return times(
        [[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099],
         [0.0259040371, 0.7827717662, -0.808675766]],
        [channel ** (1 / 3) for channel in lms],
    )  # fmt: skip


def distance(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b)) ** 0.5


@pytest.mark.parametrize("look", [{}, {"dark": True}, {"media": "print"}], ids=["light", "dark", "print"])
def test_colours_are_told_apart(page, reports, look):  # noqa: F811
    page.open(reports["plain"], **look)
    value = "return getComputedStyle(document.documentElement).getPropertyValue(arguments[0]).trim()"
    names = ["--page", "--muted", *(f"--s{i}" for i in range(10))]
    ground, muted, *colours = [page.run(value, name) for name in names]
    # Grey says that a number is not to be relied on, so no scheme is grey; the first has the colour of the text.
    assert [one for one in colours[1:] if math.hypot(*oklab(linear(one))[1:]) < 0.05] == []
    assert [one for one in colours if distance(oklab(linear(one)), oklab(linear(muted))) < 0.067] == []

    def luminance(colour):
        return sum(a * b for a, b in zip([0.2126, 0.7152, 0.0722], linear(colour)))

    for colour in colours:
        light, dim = sorted([luminance(colour), luminance(ground)], reverse=True)
        assert (light + 0.05) / (dim + 0.05) >= 3, colour
    for sight, matrix in SIGHTS.items():
        seen = [oklab([min(1.0, c) for c in times(matrix, linear(colour))]) for colour in colours]
        for (i, a), (j, b) in itertools.combinations(enumerate(seen), 2):
            assert distance(a, b) >= 0.067, (sight, colours[i], colours[j])


def test_prints(page, reports):  # noqa: F811
    page.open(reports["two"], dark=True)
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF") and len(pdf) > 20_000
    # On A4 less its margins nothing is cut off, and the page is light whatever the screen is.
    page.open(reports["two"], dark=True, media="print", width=695)
    assert page.run("return document.documentElement.scrollWidth") <= 695
    assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    # A heading stays with what follows it; figures, rows and notes are not broken.
    style = "return [...document.querySelectorAll(arguments[0])].map(e => getComputedStyle(e)[arguments[1]])"
    assert set(page.run(style, "h1, h2, h3, h4, caption, figcaption", "breakAfter")) == {"avoid"}
    assert set(page.run(style, "figure, tr, .care, .notes li, pre", "breakInside")) == {"avoid"}


@pytest.mark.parametrize("case", CASES)
def test_no_printed_page_is_nearly_empty(page, reports, case):  # noqa: F811
    """Paper cannot open what is closed, and a footer alone is no page."""
    page.open(reports[case], media="print", width=695)
    hidden = "return [...document.querySelectorAll('details:not([open]), .foot')].map(e => e.getBoundingClientRect().height)"
    assert set(page.run(hidden)) == {0}
    page.open(reports[case])
    characters = page.printed()
    assert len(characters) > (1 if case != "nothing" else 0)
    assert min(characters[0], characters[-1]) > 100, characters


@pytest.mark.parametrize("name", ["finetune-glue", "finetune-wic"])
def test_the_last_printed_page_is_no_footer(page, run, tmp_path, name):  # noqa: F811
    """Benchmarks had 23 words there: the names of closed details, and the footer."""
    run("report", ROOT / f"docs/results/compare/{name}.json", "--out", tmp_path / "report.html")
    characters = page.open(tmp_path / "report.html").printed()
    assert len(characters) > 1 and characters[-1] > 150, characters


def test_four_benchmarks_print_side_by_side(page, reports):  # noqa: F811
    """A landscape page has room for them: A4's 297 mm less its margins of 10."""
    page.open(reports["benchmarks"], media="print", width=1046)
    assert page.run("return getComputedStyle(document.querySelector('#benchmarks')).page") == "wide"
    assert page.run("return document.querySelector('#benchmarks').scrollWidth") <= 1046
