#include "headshare/compare/html_page.h"

namespace headshare {

// Ten colours, s0 to s9, one set for each scheme of light: every colour has a contrast of at least 3 to
// the page, and any two differ by at least 0.067 (OKLab) also as people without one of the three kinds of
// cones see them (tests/cli/test_report_page.py computes both).
const char* const kPageStyle = R"css(
:root {
  color-scheme: light dark;
  --page: #ffffff; --panel: #f5f6f8; --ink: #1a1e26; --muted: #59616e; --line: #dfe2e7; --grid: #eceef1;
  --tint: #eef3fb; --link: #1d4f9e; --focus: #1d4f9e; --warn: #9a5b00;
  --s0: #1f2430; --s1: #1d318c; --s2: #2394de; --s3: #868e9d; --s4: #185d53;
  --s5: #4e6700; --s6: #747d4f; --s7: #c07e1e; --s8: #e04c6f; --s9: #944dbc;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #15181d; --panel: #1d2128; --ink: #e9ebef; --muted: #a6aebb; --line: #343a45; --grid: #262b33;
    --tint: #1e2836; --link: #8fb7f3; --focus: #8fb7f3; --warn: #e5ac55;
    --s0: #f2f4f8; --s1: #426cd8; --s2: #5daeda; --s3: #767471; --s4: #28dbb9;
    --s5: #b5e220; --s6: #cdb14d; --s7: #ee5604; --s8: #de7a9c; --s9: #a07efd;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif;
}
main, .foot { max-width: 1120px; margin: 0 auto; padding: 0 24px; }
main { padding-top: 44px; }
h1, h2, h3, h4, p, figure, dl, dd, pre, ul { margin: 0; padding: 0; }
h1, h2 { font-size: 32px; line-height: 1.2; font-weight: 680; letter-spacing: -.015em; overflow-wrap: anywhere; }
h3 { font-size: 20px; font-weight: 650; letter-spacing: -.005em; margin: 52px 0 14px; }
h4 { font-size: 16px; font-weight: 650; }
a { color: var(--link); }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; border-radius: 3px; }
.skip { position: absolute; left: -999px; }
.skip:focus { left: 24px; top: 8px; background: var(--page); padding: 4px 8px; }
.vh {
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap;
}
.eyebrow { color: var(--muted); font-size: 14px; margin-bottom: 6px; overflow-wrap: anywhere; }
.partial { color: var(--warn); font-weight: 650; }
nav.sections { margin: 14px 0 40px; padding: 0; }
nav.sections li { margin: 2px 0 2px 20px; overflow-wrap: anywhere; }
section + section { border-top: 1px solid var(--line); margin-top: 72px; padding-top: 56px; }
.asks { color: var(--muted); margin-top: 10px; max-width: 76ch; overflow-wrap: anywhere; }
.finding {
  font-size: 20px; line-height: 1.5; margin-top: 22px; max-width: 68ch; overflow-wrap: anywhere; text-wrap: pretty;
}
.care { margin-top: 22px; padding: 14px 18px; background: var(--panel); border-left: 3px solid var(--warn);
  border-radius: 0 6px 6px 0; max-width: 86ch; overflow-wrap: anywhere; }
.care strong { display: block; font-size: 14px; color: var(--warn); }
.care ul { list-style: none; }
.care li { margin-top: 4px; font-size: 15px; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 126px), 1fr)); gap: 14px 24px;
  margin-top: 28px; padding: 18px 0; border-top: 1px solid var(--line); border-bottom: 1px solid var(--line); }
.facts dt { color: var(--muted); font-size: 13px; }
.facts dd { font-size: 15px; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.facts .wide { grid-column: span 2; }
.scroll { overflow-x: auto; max-width: 100%; position: relative; }
table { border-collapse: collapse; width: 100%; font-size: 14px; line-height: 1.35; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--muted); font-size: 14px; padding: 0 0 8px; }
th, td { padding: 7px 0 7px 18px; text-align: left; vertical-align: baseline; white-space: nowrap; }
th:first-child, td:first-child { padding-left: 8px; }
th:last-child, td:last-child { padding-right: 8px; }
.n { text-align: right; }
thead th { vertical-align: bottom; font-weight: 600; color: var(--muted); font-size: 13px;
  border-bottom: 1.5px solid var(--ink); white-space: normal; min-width: 5.2em; }
thead th:first-child { min-width: 8em; }
thead .unit { display: block; font-weight: 400; }
tbody th { font-weight: 550; white-space: normal; overflow-wrap: anywhere; min-width: 10.9em; max-width: 20em; }
tbody tr { border-bottom: 1px solid var(--grid); }
tbody tr:last-child { border-bottom: 1px solid var(--line); }
tbody tr:hover { background: var(--panel); }
tr.best { background: var(--tint); }
tr.best th, td strong { font-weight: 700; }
/* Behind the marker, where names stand. */
th .sub { padding-left: 23px; }
.sub { display: block; color: var(--muted); font-weight: 400; font-size: 12.5px; }
.none { color: var(--muted); }
.badge { display: inline-block; margin-left: 8px; padding: 0 7px; border: 1px solid currentColor; border-radius: 9px;
  font-size: 11.5px; font-weight: 600; line-height: 17px; color: var(--link); vertical-align: 1px; }
th button { all: unset; cursor: pointer; color: inherit; font: inherit; }
th button:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; border-radius: 3px; }
th button::after { content: "\00a0\2195"; color: var(--muted); opacity: .65; }
th[aria-sort="ascending"] button::after { content: "\00a0\2191"; opacity: 1; }
th[aria-sort="descending"] button::after { content: "\00a0\2193"; opacity: 1; }
.key { width: 16px; height: 16px; vertical-align: -3px; margin-right: 7px; }
table + table, .scroll + .scroll { margin-top: 28px; }
.notes { margin-top: 14px; color: var(--muted); font-size: 13.5px; max-width: 104ch; }
.notes li { list-style: none; margin-top: 4px; overflow-wrap: anywhere; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); column-gap: 40px; }
figcaption p { color: var(--muted); font-size: 14px; max-width: 62ch; margin: 2px 0 8px; overflow-wrap: anywhere; }
/* Three rows of the grid each, so that plots side by side begin at the same height. */
figure { min-width: 0; display: grid; grid-row: span 3; grid-template-rows: subgrid; row-gap: 0; }
figure > * { min-width: 0; }
figure > details { margin-bottom: 40px; }
.plot { display: block; width: 100%; min-width: 420px; height: auto; }
details { margin-top: 4px; font-size: 14px; }
summary { cursor: pointer; color: var(--muted); width: fit-content; padding: 2px 0; }
details table { width: auto; font-size: 13px; }
details caption, .bare caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
details .scroll { max-height: 340px; overflow-y: auto; margin-top: 6px; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--panel); border-radius: 6px; padding: 12px 16px;
  font: 13.5px/1.5 ui-monospace, "SFMono-Regular", Menlo, "DejaVu Sans Mono", "Liberation Mono", monospace; }
.pairs { display: grid; grid-template-columns: minmax(0, max-content) minmax(0, 1fr); gap: 3px 22px; font-size: 14px;
  margin: 14px 0; }
.pairs dt { color: var(--muted); overflow-wrap: anywhere; }
.pairs dd { overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
td.reason, .reason { white-space: normal; overflow-wrap: anywhere; min-width: 16em; }
.foot { color: var(--muted); font-size: 13px; padding-top: 56px; padding-bottom: 40px; }

.plot text { font-size: 12.5px; fill: var(--muted); font-variant-numeric: tabular-nums; }
.plot .label { font-size: 12.5px; fill: var(--muted); }
.plot .name { font-size: 13px; fill: var(--ink); }
.plot .figure { font-size: 12.5px; fill: var(--ink); }
.grid { stroke: var(--grid); }
.axis { stroke: var(--line); stroke-width: 1.5; }
.lane { stroke: var(--grid); }
.zero { stroke: var(--muted); stroke-dasharray: 3 3; }
.mean { stroke: var(--ink); stroke-width: 1.5; }
.leader { stroke: var(--muted); stroke-width: .7; opacity: .7; }
.blocks { stroke: var(--muted); stroke-width: 9; opacity: .38; }
.seeds { stroke: var(--ink); stroke-width: 1.4; }
.l { fill: none; stroke: var(--c); stroke-width: 2.1; stroke-linejoin: round; stroke-linecap: round; }
.l.faint { stroke-width: 1; opacity: .28; }
.e { fill: none; stroke: var(--c); stroke-width: 1.4; opacity: .75; }
.m { fill: var(--c); stroke: var(--page); stroke-width: 1; }
.m.h { fill: var(--page); stroke: var(--c); stroke-width: 2; }
.m.h.s6 { fill: none; }  /* el_lossless often stands on mha */
.m.x { fill: none; stroke: var(--c); stroke-width: 2.8; stroke-linecap: round; }
.s0 { --c: var(--s0); } .s1 { --c: var(--s1); } .s2 { --c: var(--s2); } .s3 { --c: var(--s3); }
.s4 { --c: var(--s4); } .s5 { --c: var(--s5); } .s6 { --c: var(--s6); } .s7 { --c: var(--s7); }
.s8 { --c: var(--s8); } .s9 { --c: var(--s9); }

@media (max-width: 640px) {
  main, .foot { padding-left: 16px; padding-right: 16px; }
  main { padding-top: 24px; }
  h1, h2 { font-size: 26px; }
  .finding { font-size: 18px; }
  .facts .wide { grid-column: auto; }
  th, td { padding-left: 14px; }
  tbody th:first-child, thead th:first-child { position: sticky; left: 0; background: var(--page); z-index: 1; }
  .pairs { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .pairs dd { margin-bottom: 6px; }
}
@page { margin: 13mm; }
@page wide { size: landscape; margin: 10mm; }
@media print {
  :root {
    color-scheme: light;
    --page: #ffffff; --panel: #f5f6f8; --ink: #000000; --muted: #444b57; --line: #c9ced6; --grid: #e4e6ea;
    --tint: #eef3fb; --link: #1d4f9e; --warn: #7d4a00;
    --s0: #1f2430; --s1: #1d318c; --s2: #2394de; --s3: #868e9d; --s4: #185d53;
    --s5: #4e6700; --s6: #747d4f; --s7: #c07e1e; --s8: #e04c6f; --s9: #944dbc;
  }
  body { font-size: 10.5pt; -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  main, .foot { max-width: none; padding: 0; }
  h3 { margin-top: 24px; break-after: avoid; }
  .scroll { overflow: visible; break-inside: avoid; }
  table { font-size: 7.6pt; }
  th, td { padding: 4px 0 4px 8px; }
  thead th { font-size: 7.6pt; min-width: 0; }
  .sub { font-size: 6.8pt; }
  .figures { grid-template-columns: 1fr 1fr; column-gap: 22px; }
  figure { margin-bottom: 16px; }
  .plot { min-width: 0; }
  figure, tr, .care { break-inside: avoid; }
  figure details, .skip, th button::after { display: none; }
  section + section { break-before: page; border: 0; }
  #benchmarks { page: wide; }
}
)css";

const char* const kPageScript = R"js(
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const planned = [...body.rows];
  const headings = [...table.tHead.rows[0].cells];
  const value = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
    return cell.classList.contains("n") ? NaN : cell.textContent;
  };
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(heading.firstChild);
    heading.prepend(button);
    button.addEventListener("click", () => {
      const before = heading.getAttribute("aria-sort");
      const sign = before === "ascending" ? -1 : before === "descending" ? 0 : 1;
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      if (sign !== 0) heading.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
      const rows = [...planned];
      if (sign !== 0) {
        rows.sort((a, b) => {
          const x = value(a, column), y = value(b, column);
          if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
          return sign * (typeof x === "string" ? x.localeCompare(y) : x - y);
        });
      }
      body.append(...rows);
    });
  });
}
)js";

const char* const kPageScriptHash = "b1rLmqJWJF4xFIWY/DgjEyNHFny8v0Z29ul8DerQ3IU=";

}  // namespace headshare
