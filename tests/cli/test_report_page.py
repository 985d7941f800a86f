"""report.html in headless Chromium: nothing is loaded, nothing goes wrong, everybody can read it."""

import itertools

import pytest
import report_cases as cases
from browser import page  # noqa: F401 (a fixture)

pytestmark = pytest.mark.slow
TAB, ENTER = "\ue004", "\ue007"

WIDTHS = [400, 1280]


@pytest.fixture(scope="module")
def reports(run, tmp_path_factory):
    """The path of report.html for each case."""
    folder = tmp_path_factory.mktemp("reports")
    offsets = cases.results(cases.grid(accuracy=True), accuracy=True)
    made = {
        "plain": [cases.results(cases.grid())],
        "sweep": [cases.sweep()],
        "hostile": [cases.hostile()],
        "partial": [cases.results(cases.grid(["mha"], seeds=[0]), missing=[("sha", "", 0)])],
        "nothing": [cases.results([], missing=[("mha", "", 0)])],
        "two": [cases.sweep(), offsets],
        "benchmark": [cases.benchmark()],
        "benchmarks": [cases.benchmark(name=name) for name in ("glue", "superglue", "squad-v1.1", "squad-v2.0")],
    }
    paths = {}
    for case, results in made.items():
        runs = [cases.save(folder / case / str(i), one) for i, one in enumerate(results)]
        run("report", *runs, "--out", folder / case)
        paths[case] = folder / case / "report.html"
    return paths


CASES = ["plain", "sweep", "hostile", "partial", "nothing", "two", "benchmark", "benchmarks"]


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
        "mha has the best test perplexity of 9 schemes",
        "Read with care",
        "Predict the next token",
        "Quality, and what it is worth against mha and sha",
        "Cost",
        "PRR = 100",
        "PEoP = ",
        "intervals hold (Bonferroni)",
        "Models that failed",
        "out of memory <script>",
        "headshare compare --text book.txt",
        "Example 9000",
    ]:
        assert part in text, part
    titles = page.run("return [...document.querySelectorAll('figure h4')].map(e => e.textContent)")
    assert titles == [
        "Learning curves",
        "Differences to mha",
        "Quality against attention parameters",
        "Quality against cache",
        "Every seed",
        "Settings of the sweep",
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


def test_two_comparisons_are_two_sections(page, reports):  # noqa: F811
    page.open(reports["two"])
    assert page.run("return [...document.querySelectorAll('section h2')].map(e => e.textContent)") == [
        "Language model",
        "Offsets",
    ]
    targets = page.run("return [...document.querySelectorAll('nav a')].map(a => !!document.querySelector(a.hash))")
    assert targets == [True, True]


def test_names_do_not_cover_one_another(page, reports):  # noqa: F811
    page.open(reports["plain"])
    boxes = page.run(
        "return [...document.querySelectorAll('svg.plot')].map(s => [...s.querySelectorAll('text.name')].map("
        "t => { const b = t.getBoundingClientRect(); return [b.left, b.top + 2, b.right, b.bottom - 2]; }))"
    )
    assert [len(names) for names in boxes] == [9, 8, 10, 10, 10]
    for names in boxes:
        for a, b in itertools.combinations(names, 2):
            assert min(a[2], b[2]) <= max(a[0], b[0]) + 1 or min(a[3], b[3]) <= max(a[1], b[1]) + 1


def test_everything_is_reached_by_keyboard(page, reports):  # noqa: F811
    page.open(reports["plain"])
    wanted = page.run("return document.querySelectorAll('a, button, summary, .scroll').length") - page.run(
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


# How people without one kind of cones see linear RGB: Machado, Oliveira and Fernandes 2009, severity 1.
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


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_colours_are_told_apart(page, reports, dark):  # noqa: F811
    page.open(reports["plain"], dark=dark)
    value = "return getComputedStyle(document.documentElement).getPropertyValue(arguments[0]).trim()"
    ground, *colours = [page.run(value, name) for name in ["--page", *(f"--s{i}" for i in range(10))]]

    def luminance(colour):
        return sum(a * b for a, b in zip([0.2126, 0.7152, 0.0722], linear(colour)))

    for colour in colours:
        light, dim = sorted([luminance(colour), luminance(ground)], reverse=True)
        assert (light + 0.05) / (dim + 0.05) >= 3, colour
    for sight, matrix in SIGHTS.items():
        seen = [oklab([min(1.0, c) for c in times(matrix, linear(colour))]) for colour in colours]
        for (i, a), (j, b) in itertools.combinations(enumerate(seen), 2):
            assert sum((x - y) ** 2 for x, y in zip(a, b)) ** 0.5 >= 0.067, (sight, colours[i], colours[j])


def test_prints(page, reports):  # noqa: F811
    page.open(reports["two"], dark=True)
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF") and len(pdf) > 20_000
    # On A4 less its margins nothing is cut off, and the page is light whatever the screen is.
    page.open(reports["two"], dark=True, media="print", width=695)
    assert page.run("return document.documentElement.scrollWidth") <= 695
    assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_four_benchmarks_print_side_by_side(page, reports):  # noqa: F811
    """On a landscape page: A4's 297 mm less its margins of 10."""
    page.open(reports["benchmarks"], media="print", width=1046)
    assert page.run("return getComputedStyle(document.querySelector('#benchmarks')).page") == "wide"
    assert page.run("return document.querySelector('#benchmarks').scrollWidth") <= 1046
