"use strict";
// The pages are complete without this script: it searches, filters and zooms. It writes text,
// never markup. Pages from files can load nothing but scripts, so the search index is one.
(() => {
  const root = document.documentElement;
  const most = 100;
  const mostColumns = 8;
  let index = null;
  let loading = false;

  document.addEventListener("DOMContentLoaded", () => {
    setUpSearch();
    setUpChips();
    if (document.querySelector(".canvas")) setUpDiagram();
  });

  function setUpChips() {
    const chips = [...document.querySelectorAll(".chip")];
    if (!chips.length) return;
    const items = [...document.querySelectorAll("#schemas [data-status]")];
    const shown = document.getElementById("shown");
    for (const chip of chips) {
      chip.addEventListener("click", () => {
        chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
        const wanted = chips.filter((one) => one.getAttribute("aria-pressed") === "true").map((one) => one.value);
        let count = 0;
        for (const item of items) {
          item.hidden = wanted.length > 0 && !wanted.includes(item.dataset.status);
          if (!item.hidden) count += 1;
        }
        shown.textContent = wanted.length ? `${count} of ${items.length}` : "";
      });
    }
  }

  function setUpSearch() {
    const box = document.getElementById("search");
    const form = document.getElementById("search-form");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const first = document.querySelector("#hits a");
      if (first) first.click();
    });
    box.addEventListener("focus", loadIndex);
    box.addEventListener("input", () => { loadIndex(); search(); });
    box.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") move(event, null, 1);
      if (event.key === "Escape") { box.value = ""; search(); box.blur(); }
    });
    document.getElementById("hits").addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") move(event, document.activeElement, 1);
      if (event.key === "ArrowUp") move(event, document.activeElement, -1);
      if (event.key === "Escape") { box.value = ""; search(); box.focus(); }
    });
    document.addEventListener("keydown", (event) => {
      const isTyping = event.target.matches("input, textarea, select");
      if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        box.focus();
        box.select();
      }
    });
    if (box.value) { loadIndex(); }  // the browser kept it on the way back
  }

  function move(event, from, step) {
    const links = [...document.querySelectorAll("#hits a")];
    const at = links.indexOf(from) + step;
    const target = at < 0 ? document.getElementById("search") : links[at];
    if (!target) return;
    event.preventDefault();
    target.focus();
  }

  function loadIndex() {
    if (index || loading) return;
    loading = true;
    const script = document.createElement("script");
    script.src = `${root.dataset.root}assets/search-index.js`;
    script.addEventListener("error", () => {
      document.getElementById("found").textContent = "The search index cannot be loaded.";
    });
    document.head.append(script);
  }

  window.deltaEngineSearch = (rows) => {
    index = rows.map(([path, name, schema, comment, tags, columns, kind]) => ({
      path, name, schema, comment, tags, columns, kind,
      lowerName: name.toLowerCase(),
      text: [`${schema}.${name}`, comment, tags, ...columns].join("\n").toLowerCase(),
    }));
    search();
  };

  function search() {
    const box = document.getElementById("search");
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const results = document.getElementById("results");
    results.hidden = !words.length;
    document.getElementById("page").hidden = words.length > 0;
    if (!words.length) return;
    if (!index) {
      document.getElementById("found").textContent = "Loading the search index …";
      return;
    }
    const found = index.filter((one) => words.every((word) => one.text.includes(word)));
    const ranked = found.map((one) => [rank(one, words), one]).sort((one, other) => one[0] - other[0]);
    const shown = ranked.slice(0, most).map(([, one]) => one);
    const rest = found.length > shown.length ? `; the best ${shown.length} are shown` : "";
    document.getElementById("found").textContent = found.length
      ? `${found.length} ${found.length === 1 ? "result" : "results"}${rest}`
      : "Nothing matches.";
    document.getElementById("hits").replaceChildren(...shown.map((one) => hit(one, words)));
    scrollTo({ top: 0, behavior: "instant" });
  }

  function rank(one, words) {
    if (words.every((word) => one.lowerName === word)) return 0;
    if (words.every((word) => one.lowerName.startsWith(word))) return 1;
    if (words.every((word) => `${one.schema}.${one.name}`.toLowerCase().includes(word))) return 2;
    return one.columns.some((text, at) => at % 2 === 0 && words.includes(text.toLowerCase())) ? 3 : 4;
  }

  function hit(one, words) {
    const item = document.createElement("li");
    const link = element("a", "hit");
    link.href = root.dataset.root + one.path;
    const path = element("span", "path");
    path.append(...marked(`${one.schema}.`, words));
    link.append(path, ...marked(one.name, words));
    item.append(link);
    if (one.kind !== "table") {
      const kind = element("span", "soft");
      kind.textContent = ` ${one.kind}`;
      item.append(kind);
    }
    if (one.comment) {
      const comment = element("p");
      comment.append(...marked(one.comment, words));
      item.append(comment);
    }
    const columns = [];
    for (let at = 0; at < one.columns.length && columns.length < mostColumns; at += 2) {
      const text = `${one.columns[at]}\n${one.columns[at + 1]}`.toLowerCase();
      if (words.some((word) => text.includes(word))) columns.push(at);
    }
    if (columns.length) item.append(columnList(one, columns, words));
    return item;
  }

  function columnList(one, columns, words) {
    const list = document.createElement("ul");
    for (const at of columns) {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = `${root.dataset.root}${one.path}#column-${encodeURIComponent(one.columns[at])}`;
      link.append(...marked(one.columns[at], words));
      item.append(link);
      if (words.some((word) => one.columns[at + 1].toLowerCase().includes(word))) {
        item.append(" ", ...marked(one.columns[at + 1], words));
      }
      list.append(item);
    }
    return list;
  }

  function element(name, className = "") {
    const made = document.createElement(name);
    made.className = className;
    return made;
  }

  // A text as nodes, with the words marked. Lower case may have another length in a few scripts: no marks there.
  function marked(text, words) {
    const lowered = text.toLowerCase();
    if (lowered.length !== text.length) return [text];
    const nodes = [];
    let at = 0;
    while (at < text.length) {
      let next = text.length;
      let length = 0;
      for (const word of words) {
        const place = lowered.indexOf(word, at);
        if (place >= 0 && (place < next || (place === next && word.length > length))) {
          next = place;
          length = word.length;
        }
      }
      if (next > at) nodes.push(text.slice(at, next));
      if (!length) break;
      const mark = document.createElement("mark");
      mark.textContent = text.slice(next, next + length);
      nodes.push(mark);
      at = next + length;
    }
    return nodes;
  }

  function setUpDiagram() {
    const canvas = document.querySelector(".canvas");
    const svg = canvas.querySelector("svg");
    const width = svg.viewBox.baseVal.width;
    const output = document.getElementById("zoom");
    const readable = 0.7;
    const least = 0.38;  // smaller names are specks
    let scale = 1;

    function zoom(wanted) {
      const middle = [canvas.scrollLeft + canvas.clientWidth / 2, canvas.scrollTop + canvas.clientHeight / 2];
      const factor = Math.min(3, Math.max(0.1, wanted)) / scale;
      scale *= factor;
      svg.style.width = `${Math.round(width * scale)}px`;
      canvas.scrollTo(middle[0] * factor - canvas.clientWidth / 2, middle[1] * factor - canvas.clientHeight / 2);
      output.textContent = `${Math.round(scale * 100)} %`;
    }
    const fitting = () => Math.min(1, Math.max(least, canvas.clientWidth / width));
    document.getElementById("zoom-in").addEventListener("click", () => zoom(scale * 1.25));
    document.getElementById("zoom-out").addEventListener("click", () => zoom(scale / 1.25));
    document.getElementById("zoom-full").addEventListener("click", () => zoom(1));
    document.getElementById("zoom-fit").addEventListener("click", () => zoom(fitting()));
    zoom(fitting() >= readable ? fitting() : 1);
    showFirst(canvas, svg);
    setUpDragging(canvas);
    setUpNeighbours(svg);
  }

  // The first column has the tables that reference no other: a diagram opens there.
  function showFirst(canvas, svg) {
    const boxes = [...svg.querySelectorAll(".box rect")].map((rect) => rect.getBoundingClientRect());
    const first = boxes.reduce((one, other) => (other.left < one.left ? other : one));
    const middle = first.top + first.height / 2 - canvas.getBoundingClientRect().top + canvas.scrollTop;
    canvas.scrollTo({ left: 0, top: middle - canvas.clientHeight / 2, behavior: "instant" });
  }

  function setUpDragging(canvas) {
    let start = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button === 0) {
        start = { x: event.clientX, y: event.clientY, left: canvas.scrollLeft, top: canvas.scrollTop, isDrag: false };
      }
    });
    addEventListener("pointermove", (event) => {
      if (!start) return;
      const moved = [event.clientX - start.x, event.clientY - start.y];
      if (Math.hypot(...moved) > 4) start.isDrag = true;
      if (!start.isDrag) return;
      canvas.classList.add("dragged");
      canvas.scrollTo({ left: start.left - moved[0], top: start.top - moved[1], behavior: "instant" });
    });
    addEventListener("pointerup", () => {
      setTimeout(() => { start = null; canvas.classList.remove("dragged"); });
    });
    canvas.addEventListener("click", (event) => { if (start && start.isDrag) event.preventDefault(); }, true);
    canvas.addEventListener("dragstart", (event) => event.preventDefault());
  }

  // The lines of the table under the pointer stand out, and so do the tables at their other ends.
  function setUpNeighbours(svg) {
    const lines = [...svg.querySelectorAll(".line")];
    const boxes = new Map([...svg.querySelectorAll(".box")].map((box) => [box.dataset.box, box]));
    for (const [number, box] of boxes) {
      const near = lines.filter((line) => line.dataset.child === number || line.dataset.parent === number);
      const show = (isNear) => {
        for (const line of near) {
          line.classList.toggle("near", isNear);
          boxes.get(line.dataset.child).classList.toggle("near", isNear);
          boxes.get(line.dataset.parent).classList.toggle("near", isNear);
        }
      };
      box.addEventListener("pointerenter", () => show(true));
      box.addEventListener("pointerleave", () => show(false));
    }
  }
})();
