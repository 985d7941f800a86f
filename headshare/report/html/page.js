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

// The value of what is pointed at or focused in a figure, in a box beside it. Without this the browser shows titles.
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
tip.setAttribute("aria-hidden", "true");
document.body.append(tip);
for (const title of document.querySelectorAll(".mark > title")) title.remove();
// Beside the first of the marks, at its point where it has one; each mark has a line of text.
const show = (marks) => {
  tip.hidden = marks.length === 0;
  if (tip.hidden) return;
  tip.textContent = marks.map((mark) => mark.getAttribute("aria-label")).join("\n");
  const at = (marks[0].querySelector(":scope > .m, :scope > .dot") ?? marks[0]).getBoundingClientRect();
  const wide = document.documentElement.clientWidth;
  const left = Math.min(Math.max(8, (at.left + at.right - tip.offsetWidth) / 2), wide - tip.offsetWidth - 8);
  const above = at.top - tip.offsetHeight - 8;
  tip.style.left = `${left + scrollX}px`;
  tip.style.top = `${(above < 0 ? at.bottom + 8 : above) + scrollY}px`;
};
const markOf = (element) => element.closest?.(".mark");
const focused = () => [markOf(document.activeElement)].filter(Boolean);
// Points at one place hide one another: all of them are told. A mark inside another one tells more than that one.
const pointed = (event) => {
  const marks = [...new Set(document.elementsFromPoint(event.clientX, event.clientY).map(markOf).filter(Boolean))];
  return marks.filter((mark) => !marks.some((other) => other !== mark && mark.contains(other)));
};
for (const moved of ["pointerover", "pointermove"]) {
  document.addEventListener(moved, (event) => {
    const marks = pointed(event).slice(0, 8);
    show(marks.length ? marks : focused());
  });
}
document.addEventListener("focusin", () => show(focused()));
document.addEventListener("focusout", () => show([]));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") show([]);
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const outer = document.activeElement.closest(".mark[tabindex='0']");
  if (!step || !outer) return;
  const marks = [outer, ...outer.querySelectorAll(".mark")];
  if (marks.length === 1) return;
  event.preventDefault();
  marks[(marks.indexOf(document.activeElement) + step + marks.length) % marks.length].focus();
});
