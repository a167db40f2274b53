// benchctl report: draws plots when they come into view, in the colours of the page, and switches those.
"use strict";

// Histories: figures of the compact arrays of a nightly page.
const histories = (() => {
  const SPANS = [60, 365];
  const MARKERS_UP_TO = 150;
  const LINES_UP_TO = 60;
  const NARROW_PX = 600;
  // As in charts of runs: from which ratio on, and which steps of a decade are marked up to so many decades.
  const LOG_FROM = 3;
  const TICKS = [[0.8, [1, 1.5, 2, 3, 4, 5, 6, 8]], [2.5, [1, 2, 5]], [99, [1]]];
  const TAP_MS = 1000;
  const KINDS = {
    alarm: { name: "alarm", colour: "--slower", symbol: "diamond", dash: "solid", size: 10, y: 0.97 },
    "change-point": { name: "change point", colour: "--link", symbol: "circle", dash: "dash", size: 8, y: 0.91 },
    annotation: { name: "annotation", colour: "--different", symbol: "square", dash: "dot", size: 8, y: 0.85 },
    change: { name: "automatic change", colour: "--faint", symbol: "triangle-up", dash: "dot", size: 7, y: 0.02, faint: true },
    era: { name: "not comparable before", colour: "--ink", symbol: "line-ns-open", dash: "solid", size: 9, y: 0.79 },
  };

  let nights = null;
  let places = null;
  let shown = 0;
  let touched = -Infinity;

  // Plotly reads tags in texts, and names come from outside.
  const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

  const load = () => {
    if (nights) return;
    nights = JSON.parse(document.getElementById("nights").textContent);
    places = new Map(nights.numbers.map((number, place) => [number, place]));
  };

  // A fact stands where it became what it is: the last one up to a night holds.
  const factAt = (facts, place) => {
    let low = 0;
    let high = (facts || []).length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (facts[middle][0] <= place) low = middle + 1; else high = middle;
    }
    return low ? facts[low - 1][1] : "";
  };

  const resolved = (name) => {
    const probe = document.createElement("span");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const colour = getComputedStyle(probe).color;
    probe.remove();
    return colour;
  };

  const number = (value) => value.toLocaleString("en", { maximumSignificantDigits: 4 });

  const hover = (variant, unit, at) => {
    const place = places.get(variant.numbers[at]);
    const forks = Array.isArray(variant.forks) ? variant.forks[at] : variant.forks;
    const lines = [
      `<b>${plain(variant.name)}</b>, night ${variant.numbers[at]}${place === undefined ? "" : `, ${plain(nights.when[place])}`}`,
      `${number(variant.means[at])} ${plain(unit)}, ${forks === 1 ? "one fork" : `${forks} forks: ${number(variant.lows[at])} to ${number(variant.highs[at])}`}`,
    ];
    if (place !== undefined) {
      lines.push(plain(factAt(nights.facts[variant.label], place)), plain(factAt(nights.host, place)), plain(nights.marks[place] || ""));
    }
    return lines.filter(Boolean).join("<br>");
  };

  // A line ends where a night is missing, and where nights are not comparable with those before.
  const ends = (variant, at, eras) => {
    const [before, after] = [variant.numbers[at - 1], variant.numbers[at]];
    return after - before > 1 || eras.has(after);
  };

  const tracesOf = (variant, data, eras, narrow) => {
    const line = { x: [], y: [], text: [], customdata: [] };
    const range = { x: [], y: [] };
    variant.numbers.forEach((night, at) => {
      if (at && ends(variant, at, eras)) {
        line.x.push(night); line.y.push(null); line.text.push(""); line.customdata.push(null);
      }
      line.x.push(night);
      line.y.push(variant.means[at]);
      line.text.push(hover(variant, data.unit, at));
      line.customdata.push(night);
      range.x.push(night, night, null);
      range.y.push(variant.lows[at], variant.highs[at], null);
    });
    const many = variant.numbers.length > (narrow ? MARKERS_UP_TO / 3 : MARKERS_UP_TO);
    return [
      {
        ...range, type: "scatter", mode: "lines", line: { color: variant.range, width: many ? 2 : 4 },
        legendgroup: variant.label, showlegend: false, hoverinfo: "skip",
      },
      {
        ...line, type: "scatter", mode: "lines+markers", name: plain(variant.name), legendgroup: variant.label,
        connectgaps: false, hovertemplate: "%{text}<extra></extra>",
        line: { color: variant.colour, width: 1.6 },
        marker: { color: variant.colour, symbol: variant.symbol, size: many ? 3 : 7 },
      },
    ];
  };

  const wrapped = (text) => {
    const lines = [""];
    for (const word of text.split(" ")) {
      if (lines.at(-1).length + word.length > 70 && lines.at(-1)) lines.push("");
      lines.push(`${lines.pop()} ${word}`.trimStart());
    }
    return lines.map(plain).join("<br>");
  };

  // From the bottom to the top with a mark at its head; where there are many of a kind, only the marks.
  const marksOf = (kind, marks, narrow) => {
    const look = KINDS[kind];
    const colour = resolved(look.colour);
    const long = marks.length <= LINES_UP_TO;
    const [lines, heads] = [{ x: [], y: [] }, { x: [], y: [], text: [] }];
    for (const [night, , text] of marks) {
      const place = places.get(night);
      lines.x.push(night, night, null);
      lines.y.push(...(long ? [0, 1, null] : [null, null, null]));
      heads.x.push(night);
      heads.y.push(look.y);
      heads.text.push(`<b>${look.name}</b>, night ${night}${place === undefined ? "" : `, ${plain(nights.when[place])}`}<br>${wrapped(text)}`);
    }
    const common = { yaxis: "y2", type: "scatter", legendgroup: kind, name: look.name };
    return [
      {
        ...common, ...lines, mode: "lines", hoverinfo: "skip", showlegend: false, connectgaps: false,
        opacity: look.faint ? 0.4 : 1, line: { color: colour, width: 1, dash: look.dash },
      },
      {
        ...common, ...heads, mode: "markers", hovertemplate: "%{text}<extra></extra>", showlegend: !narrow,
        cliponaxis: false, marker: { color: colour, symbol: look.symbol, size: look.size, line: { color: colour, width: 1.2 } },
      },
    ];
  };

  const extent = (data) => {
    const every = data.variants.flatMap((variant) => [variant.numbers[0], variant.numbers.at(-1)]);
    const first = Math.min(nights.numbers[0] ?? Infinity, ...every.filter((one) => one !== undefined));
    const last = Math.max(nights.numbers.at(-1) ?? -Infinity, ...every.filter((one) => one !== undefined));
    return shown ? [Math.max(first, last - shown + 1), last] : [first, last];
  };

  const decades = (low, high) => {
    const [, steps] = TICKS.find(([most]) => Math.log10(high / low) < most);
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high) + 1; power += 1) {
      found.push(...steps.map((step) => step * 10 ** power));
    }
    return { tickvals: found, ticktext: found.map(number) };
  };

  // Variants that lie far apart would flatten each other's changes.
  const heights = (data, [first, last]) => {
    let [low, high] = [Infinity, -Infinity];
    for (const variant of data.variants) {
      variant.numbers.forEach((night, at) => {
        if (night < first || night > last) return;
        low = Math.min(low, variant.lows[at]);
        high = Math.max(high, variant.highs[at]);
      });
    }
    if (low > high) return {};
    if (low > 0 && high > LOG_FROM * low) {
      const pad = Math.log10(high / low) * 0.06;
      return { type: "log", range: [Math.log10(low) - pad, Math.log10(high) + 2 * pad], tickmode: "array", ...decades(low, high) };
    }
    const pad = Math.max((high - low) * 0.06, high * 0.02);
    return { type: "linear", tickmode: "auto", range: [Math.max(0, low - pad), high + 2 * pad || 1] };
  };

  const ticks = ([first, last], width) => {
    const count = Math.max(2, Math.min(9, Math.floor(width / 105), last - first + 1));
    const step = Math.max(1, Math.ceil((last - first) / (count - 1 || 1)));
    const found = [];
    for (let night = last; night >= first; night -= step) found.push(night);
    const name = (night) => `${night}<br>${plain((nights.when[places.get(night)] || "").slice(0, 10))}`;
    return { tickmode: "array", tickvals: found.reverse(), ticktext: found.map(name) };
  };

  const axes = (data, plot) => {
    const span = extent(data);
    const pad = Math.max(0.5, (span[1] - span[0]) * 0.012);
    return {
      x: { range: [span[0] - pad, span[1] + pad], ...ticks(span, plot.clientWidth) },
      y: heights(data, span),
    };
  };

  const figure = (data, plot) => {
    if (!data.variants) return undefined;
    load();
    const narrow = plot.clientWidth < NARROW_PX;
    const eras = new Set(data.marks.filter(([, kind]) => kind === "era").map(([night]) => night));
    const traces = data.variants.flatMap((variant) => tracesOf(variant, data, eras, narrow));
    for (const kind of Object.keys(KINDS).reverse()) {
      const own = data.marks.filter((mark) => mark[1] === kind);
      if (own.length) traces.push(...marksOf(kind, own, narrow));
    }
    const { x, y } = axes(data, plot);
    const layout = {
      height: plot.clientHeight || 380,
      margin: { r: 40, t: 40, b: 62 },
      hoverdistance: 30,
      showlegend: true,
      legend: { y: 1.02 },
      hoverlabel: { align: "left" },
      xaxis: { ...x, title: { text: "night" }, showgrid: false },
      yaxis: { ...y, title: { text: plain(data.unit) } },
      yaxis2: { range: [0, 1], overlaying: "y", visible: false, fixedrange: true },
    };
    return { data: traces, layout };
  };

  const dataOf = (plot) => JSON.parse(document.getElementById(plot.dataset.figure).textContent);

  // A point leads to the page of its night's run, or of the night where that has none. A tap only shows
  // what hovering would.
  const follow = (event) => {
    if (performance.now() - touched < TAP_MS) return;
    const night = event.points[0]?.customdata;
    const place = places.get(night);
    if (place === undefined) return;
    const run = nights.runs[place];
    window.location.href = run ? `../runs/${encodeURIComponent(run)}.html` : `../nights/${encodeURIComponent(nights.ids[place])}.html`;
  };

  const drawn = (plot) => {
    if (plot.dataset.linked || !nights) return;
    plot.dataset.linked = "yes";
    plot.addEventListener("touchstart", () => { touched = performance.now(); }, { passive: true });
    plot.on("plotly_click", follow);
  };

  const show = (count, buttons) => {
    shown = count;
    for (const button of buttons) button.setAttribute("aria-pressed", String(Number(button.value) === count));
    for (const plot of document.querySelectorAll(".plot[data-drawn]")) {
      const { x, y } = axes(dataOf(plot), plot);
      Plotly.relayout(plot, {
        "xaxis.range": x.range, "xaxis.tickvals": x.tickvals, "xaxis.ticktext": x.ticktext, ...Object.fromEntries(Object.entries(y).map(([name, value]) => [`yaxis.${name}`, value])),
      });
    }
  };

  const start = () => {
    const group = document.querySelector(".spans");
    if (!group || typeof Plotly === "undefined") return;
    load();
    const fitting = SPANS.filter((count) => count < nights.numbers.length);
    if (!fitting.length) return;
    const buttons = [...fitting, 0].map((count) => {
      const button = document.createElement("button");
      button.type = "button";
      button.value = count;
      button.textContent = count ? `last ${count} nights` : "all nights";
      button.setAttribute("aria-pressed", String(count === 0));
      button.addEventListener("click", () => show(count, buttons));
      return button;
    });
    group.append(...buttons);
  };

  document.addEventListener("DOMContentLoaded", start);
  return { figure, drawn };
})();

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

  // Figures have the colours of light pages; on dark ones each variant has a lighter one. Histories, whose
  // data would be large as a figure, are made of less.
  const figureOf = (plot) => {
    let text = document.getElementById(plot.dataset.figure).textContent;
    if (theme() === "dark") {
      for (const [light, onDark] of palette()) text = text.replaceAll(light, onDark);
    }
    const figure = JSON.parse(text);
    return histories.figure(figure, plot) ?? figure;
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
      histories.drawn(plot);
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
    if (typeof Plotly === "undefined") {
      root.classList.remove("scripted");
      root.classList.add("without-plots");
      return;
    }
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
