"use strict";
// What the pages share: the theme, and the mark by which their styles know that scripts run.
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  root.classList.add("js");

  // Storage is refused in some frames and private windows: the theme then lasts as long as the page.
  const stored = {
    read() {
      try { return localStorage.getItem("delta-engine-theme"); } catch { return null; }
    },
    write(theme) {
      try { localStorage.setItem("delta-engine-theme", theme); } catch { /* see above */ }
    },
  };
  const chosen = stored.read();
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;

  document.addEventListener("DOMContentLoaded", setUpTheme);

  function setUpTheme() {
    const button = document.getElementById("theme");
    const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
    const show = () => button.setAttribute("aria-pressed", String(isDark()));
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      stored.write(root.dataset.theme);
      show();
    });
    dark.addEventListener("change", show);
    show();
  }
})();
