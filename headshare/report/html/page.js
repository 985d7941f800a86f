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
