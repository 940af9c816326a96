"use strict";
// The page is complete without this script: it filters and copies. It reads text and writes text,
// never markup.
(() => {
  const root = document.documentElement;

  document.addEventListener("DOMContentLoaded", () => {
    setUpCopying();
    if (document.getElementById("filters")) setUpFilters();
    setUpPrinting();
  });

  function setUpCopying() {
    const announcement = document.getElementById("announcement");
    for (const button of document.querySelectorAll("[data-copy]")) {
      let pending = 0;
      button.addEventListener("click", async () => {
        const isCopied = await copy(document.getElementById(button.dataset.copy).textContent);
        clearTimeout(pending);
        button.textContent = isCopied ? "Copied" : "Not copied";
        announcement.textContent = isCopied ? `The ${button.dataset.copies} is copied.` : `The browser refused to copy the ${button.dataset.copies}.`;
        pending = setTimeout(() => {
          button.textContent = "Copy";
          announcement.textContent = "";
        }, 2000);
        button.focus();
      });
    }
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return copyFromField(text);
    }
  }

  // Browsers without navigator.clipboard, or where it is refused, still copy what is selected.
  function copyFromField(text) {
    const field = document.createElement("textarea");
    field.className = "unseen";
    field.value = text;
    document.body.append(field);
    field.select();
    try {
      return document.execCommand("copy");
    } catch {
      return false;
    } finally {
      field.remove();
    }
  }

  function setUpFilters() {
    const form = document.getElementById("filters");
    const search = document.getElementById("search");
    const kind = document.getElementById("kind");
    const clear = document.getElementById("clear");
    const shown = document.getElementById("shown");
    const nothing = document.getElementById("nothing-matches");
    const chips = [...form.querySelectorAll("[data-filter]")];
    const holders = [...document.querySelectorAll("[data-holder]")];
    const items = [...document.querySelectorAll("[data-item]")].map(readItem);
    const names = { finding: ["finding", "findings"], pending: ["pending change", "pending changes"], ignored: ["ignored", "ignored"] };

    const pressed = (filter) =>
      chips.filter((chip) => chip.dataset.filter === filter && chip.getAttribute("aria-pressed") === "true").map((chip) => chip.value);

    function apply() {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const severities = pressed("severity");
      const statuses = pressed("status");
      const filled = new Set();
      for (const item of items) {
        item.isShown =
          (!severities.length || severities.includes(item.severity)) &&
          (!statuses.length || statuses.includes(item.status)) &&
          (!kind.value || kind.value === item.kind) &&
          (!words.length || words.every((word) => text(item).includes(word)));
        item.element.hidden = !item.isShown;
        if (item.isShown) for (const holder of item.holders) filled.add(holder);
      }
      for (const holder of holders) holder.hidden = !filled.has(holder);
      const isFiltered = Boolean(words.length || severities.length || statuses.length || kind.value);
      clear.hidden = !isFiltered;
      root.classList.toggle("filtered", isFiltered);
      nothing.hidden = items.some((item) => item.isShown);
      shown.textContent = Object.keys(names).map(describe).filter(Boolean).join(" · ");
    }

    function describe(group) {
      const all = items.filter((item) => item.group === group);
      if (!all.length) return "";
      const visible = all.filter((item) => item.isShown).length;
      return `${visible} of ${all.length} ${names[group][all.length === 1 ? 0 : 1]}`;
    }

    function reset() {
      search.value = "";
      kind.value = "";
      for (const chip of chips) chip.setAttribute("aria-pressed", "false");
      apply();
    }

    for (const chip of chips) {
      chip.addEventListener("click", () => {
        chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
        apply();
      });
    }
    search.addEventListener("input", apply);
    kind.addEventListener("change", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", (event) => {
      event.preventDefault();
      reset();
      search.focus();
    });
    for (const link of document.querySelectorAll("nav a")) {
      link.addEventListener("click", () => {
        if (document.getElementById(link.hash.slice(1)).hidden) reset();
      });
    }
    reset();
  }

  function readItem(element) {
    const { item: group, severity, status, kind } = element.dataset;
    const holders = [];
    for (let at = element.parentElement.closest("[data-holder]"); at; at = at.parentElement.closest("[data-holder]")) holders.push(at);
    return { element, group, severity, status, kind, holders, isShown: true, text: null };
  }

  // What can be searched for, read when it is needed first.
  function text(item) {
    if (item.text === null) {
      const table = item.element.closest("article").querySelector("h3");
      const needles = [table, ...item.element.querySelectorAll(".needle")];
      item.text = needles.map((needle) => needle.textContent).join("\n").toLowerCase();
    }
    return item.text;
  }

  function setUpPrinting() {
    let opened = [];
    addEventListener("beforeprint", () => {
      opened = [...document.querySelectorAll("details:not([open])")];
      for (const details of opened) details.open = true;
    });
    addEventListener("afterprint", () => {
      for (const details of opened) details.open = false;
    });
  }
})();
