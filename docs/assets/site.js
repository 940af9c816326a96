// The theme's search is a dialog without a name, which screen readers need.
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");

// Tables that scroll sideways scroll by keyboard too.
const reachTables = () => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) {
    table.tabIndex = table.scrollWidth > table.clientWidth ? 0 : -1;
  }
};
addEventListener("load", reachTables);
addEventListener("resize", reachTables);
