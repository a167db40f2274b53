// benchctl report: draws plots when they come into view, in the colours of the page, and switches those.
"use strict";

(() => {
  const root = document.documentElement;
  const STORED = "benchctl-theme";
  const CONFIG = { displayModeBar: false, displaylogo: false, responsive: true, scrollZoom: false };
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  root.classList.add("scripted");

  // Storage can be forbidden for pages from a disk; then a choice lasts as long as the page.
  const remembered = () => {
    try { return window.localStorage.getItem(STORED); } catch { return null; }
  };
  const remember = (theme) => {
    try { window.localStorage.setItem(STORED, theme); } catch { /* see above */ }
  };
  const theme = () => root.dataset.theme || (dark.matches ? "dark" : "light");

  if (["dark", "light"].includes(remembered())) root.dataset.theme = remembered();

  const palette = () => JSON.parse(document.getElementById("palette").textContent);

  // Figures have the colours of light pages; on dark ones each variant has a lighter one.
  const figureOf = (plot) => {
    let text = document.getElementById(plot.dataset.figure).textContent;
    if (theme() === "dark") {
      for (const [light, onDark] of palette()) text = text.replaceAll(light, onDark);
    }
    return JSON.parse(text);
  };

  const colours = (plot) => {
    const style = window.getComputedStyle(plot);
    return { ink: style.color, grid: style.borderTopColor, paper: style.outlineColor, font: style.fontFamily };
  };

  // The title of an axis does not wrap by itself.
  const wrapped = (title, plot) => {
    const most = Math.floor(plot.clientWidth / 7.5);
    const lines = [""];
    for (const word of (title?.text || "").split(" ")) {
      if (lines.at(-1) && lines.at(-1).length + word.length >= most) lines.push("");
      lines.push(`${lines.pop()} ${word}`.trimStart());
    }
    return { ...title, text: lines.join("<br>") };
  };

  // What all plots have in common, in the colours of the page; figures have the rest.
  const look = ({ ink, grid, paper, font }) => {
    const axis = {
      automargin: true, zeroline: false, ticks: "outside", gridcolor: grid, linecolor: grid, tickcolor: grid,
      hoverformat: ",.5~r", title: { standoff: 8, font: { size: 12.5 } },
    };
    return {
      font: { size: 12.5, color: ink, family: font },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 8, r: 12 },
      hovermode: "closest", dragmode: false,
      hoverlabel: { bgcolor: paper, bordercolor: grid, font: { color: ink, family: font } },
      legend: { orientation: "h", x: 0, y: 1, xanchor: "left", yanchor: "bottom" },
      xaxis: axis, yaxis: axis,
    };
  };

  const themed = (plot, layout) => {
    const changed = { ...layout, autosize: true, template: { layout: look(colours(plot)) } };
    for (const axis of Object.keys(layout)) {
      if (/^xaxis\d*$/.test(axis)) changed[axis] = { ...layout[axis], title: wrapped(layout[axis].title, plot) };
    }
    return changed;
  };

  const drawn = new Set();

  const paint = (plot) => {
    const { data, layout = {} } = figureOf(plot);
    return Plotly.react(plot, data, themed(plot, layout), CONFIG).then(() => {
      plot.dataset.drawn = theme();
    });
  };

  const draw = (plot) => {
    if (drawn.has(plot)) return;
    drawn.add(plot);
    paint(plot);
  };

  const start = () => {
    const button = document.getElementById("theme");
    const say = () => button.setAttribute("aria-pressed", String(theme() === "dark"));
    const changed = () => { say(); drawn.forEach(paint); };
    say();
    button.addEventListener("click", () => {
      root.dataset.theme = theme() === "dark" ? "light" : "dark";
      remember(root.dataset.theme);
      changed();
    });
    dark.addEventListener("change", changed);

    const plots = [...document.querySelectorAll(".plot")];
    if (typeof Plotly === "undefined") return;
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries.filter((one) => one.isIntersecting)) {
        seen.unobserve(entry.target);
        draw(entry.target);
      }
    }, { rootMargin: "400px" });
    plots.forEach((plot) => seen.observe(plot));
    window.addEventListener("beforeprint", () => plots.forEach(draw));
  };

  document.addEventListener("DOMContentLoaded", start);
})();
