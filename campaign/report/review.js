"use strict";
// Sorting and finding rows. Without this the tables are plain tables in the ledger's order.
(() => {
  const FEW = 10; // rows that need no finding
  const value = (cell, number) => {
    const said = cell.dataset.value;
    if (said === undefined) return null;
    return number ? Number(said) : said;
  };
  const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));

  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    const told = document.createElement("p");
    told.className = "told";
    told.setAttribute("role", "status");

    const sort = (place, down) => {
      const number = heads[place].dataset.kind === "number";
      const keyed = rows.map((row, index) => ({ row, index, key: value(row.cells[place], number) }));
      keyed.sort((a, b) => {
        if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.index - b.index;
        return (down ? -1 : 1) * compare(a.key, b.key) || a.index - b.index;
      });
      body.append(...keyed.map((one) => one.row));
      heads.forEach((head, index) => {
        if (index === place) head.setAttribute("aria-sort", down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      told.textContent = `Sorted by ${heads[place].textContent.trim()}, ${down ? "descending" : "ascending"}.`;
    };

    heads.forEach((head, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent || "row";
      head.replaceChildren(button);
      button.addEventListener("click", () => sort(place, head.getAttribute("aria-sort") === "ascending"));
    });
    heads[0].setAttribute("aria-sort", "ascending");

    const find = document.createElement("input");
    find.type = "search";
    find.autocomplete = "off";
    const show = () => {
      const wanted = find.value.trim().toLowerCase();
      let shown = 0;
      for (const row of rows) {
        row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
        if (!row.hidden) shown += 1;
      }
      told.textContent = wanted === "" ? "" : `${shown} of ${rows.length} rows.`;
    };
    find.addEventListener("input", show);
    const label = document.createElement("label");
    label.append("Find rows ", find);
    const tools = document.createElement("div");
    tools.className = "tools";
    tools.append(...(rows.length > FEW ? [label] : []), told);
    table.parentElement.before(tools);

    // A figure's link to a row must not lead to one that is out of sight.
    const reveal = () => {
      const row = document.getElementById(location.hash.slice(1));
      if (row && body.contains(row)) {
        if (row.hidden) {
          find.value = "";
          show();
        }
        row.scrollIntoView({ block: "center", inline: "start" });
      }
    };
    window.addEventListener("hashchange", reveal);
    if (location.hash) reveal();
  }
})();
