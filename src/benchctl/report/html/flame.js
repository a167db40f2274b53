"use strict";
(() => {
  const ROW = 18, LEAST_PX = 0.4;
  const data = JSON.parse(document.getElementById("profile").textContent);
  const graph = document.getElementById("graph"), said = document.getElementById("said");
  const search = document.getElementById("search"), reset = document.getElementById("reset");
  const two = data.totals.length === 2;

  // Nodes come parents first, each with its depth: that is all it takes to find parents and children again.
  const nodes = data.nodes.map(([depth, frame, ...samples], at) => ({
    at, depth, name: data.frames[frame], samples, children: [], parent: null, x: 0, width: 0, element: null,
  }));
  const open = [];
  for (const node of nodes) {
    node.parent = node.depth ? open[node.depth - 1] : null;
    if (node.parent) node.parent.children.push(node);
    open[node.depth] = node;
  }
  const shareOf = (node, side) => data.totals[side] ? node.samples[side] / data.totals[side] : 0;
  const weight = (node) => two ? (shareOf(node, 0) + shareOf(node, 1)) / 2 : shareOf(node, 0);
  const root = nodes[0];
  let top = root, wanted = null;

  const percent = (share) => `${(100 * share).toFixed(2)}%`;
  const signed = (share) => `${share < 0 ? "" : "+"}${(100 * share).toFixed(2)} points`;
  function describe(node) {
    const sides = node.samples.map((count, side) =>
      `${two ? data.names[side] + " " : ""}${percent(shareOf(node, side))} (${count.toLocaleString("en")} samples)`);
    const difference = two ? `, ${signed(shareOf(node, 1) - shareOf(node, 0))}` : "";
    return `${node.name}: ${sides.join(", ")}${difference}`;
  }

  function kind(name) {
    if (name.startsWith("org.apache.lucene.")) return "lucene";
    if (/^org\.(elasticsearch|opensearch|<engine>)\./.test(name)) return "engine";
    return /^(java|javax|jdk|sun|com\.sun)\./.test(name) ? "java" : "other";
  }

  // Packages would fill every box; the colour stands for them, and the line above the graph has the whole name.
  const short = (name) => /^[[(]/.test(name) ? name : name.split(".").slice(-2).join(".");

  function colour(element, node) {
    if (!two) { element.classList.add(kind(node.name)); return; }
    const [less, more] = [shareOf(node, 0), shareOf(node, 1)];
    const part = less + more ? (more - less) / (less + more) : 0;
    const strength = Math.round(Math.min(Math.abs(part), 1) * 100);
    element.style.background = `color-mix(in oklab, var(${part > 0 ? "--more" : "--less"}) ${strength}%, var(--alike))`;
  }

  function make(node) {
    const element = document.createElement("button");
    element.type = "button";
    element.tabIndex = -1;
    element.textContent = short(node.name);
    element.setAttribute("aria-label", describe(node));
    element.dataset.at = node.at;
    colour(element, node);
    return element;
  }

  function place(node, x, width, above) {
    node.x = x; node.width = width;
    const px = width * graph.clientWidth;
    if (px < LEAST_PX) { node.element = null; return 0; }
    const element = node.element = make(node);
    element.style.left = `${x * 100}%`;
    element.style.width = `${width * 100}%`;
    element.style.top = `${node.depth * ROW}px`;
    if (above) element.classList.add("above");
    if (wanted && wanted(node.name)) element.classList.add("found");
    graph.append(element);
    return node.depth + 1;
  }

  function draw() {
    graph.replaceChildren();
    for (const node of nodes) node.element = null;
    for (let node = top.parent; node; node = node.parent) place(node, 0, 1, true);
    const whole = weight(top) || 1;
    let deepest = 0;
    const waiting = [[top, 0]];
    while (waiting.length) {
      const [node, x] = waiting.pop();
      const depth = place(node, x, weight(node) / whole, false);
      if (!depth) continue;
      deepest = Math.max(deepest, depth);
      let left = x;
      for (const child of node.children) { waiting.push([child, left]); left += weight(child) / whole; }
    }
    graph.style.height = `${deepest * ROW}px`;
    if (top.element) top.element.tabIndex = 0;
    tell();
  }

  function tell(node) {
    if (node) { said.textContent = describe(node); return; }
    if (!wanted) { said.textContent = describe(top); return; }
    // A match below a match is in it already.
    const outer = nodes.filter((one) => wanted(one.name) && !above(one));
    const sides = data.totals.map((total, side) =>
      `${two ? data.names[side] + " " : ""}${percent(outer.reduce((sum, one) => sum + one.samples[side], 0) / (total || 1))}`);
    said.textContent = `Found in stacks with ${sides.join(", ")} of all samples`;
  }
  function above(node) {
    for (let one = node.parent; one; one = one.parent) if (wanted(one.name)) return true;
    return false;
  }

  const nodeOf = (event) => {
    const element = event.target.closest("button[data-at]");
    return element ? nodes[Number(element.dataset.at)] : null;
  };
  function zoom(node) { top = node; draw(); if (top.element) top.element.focus(); }
  function move(node) { if (node && node.element) node.element.focus(); }

  graph.addEventListener("click", (event) => { const node = nodeOf(event); if (node) zoom(node); });
  graph.addEventListener("mouseover", (event) => { const node = nodeOf(event); if (node) tell(node); });
  graph.addEventListener("mouseleave", () => tell());
  graph.addEventListener("focusin", (event) => { const node = nodeOf(event); if (node) tell(node); });
  graph.addEventListener("keydown", (event) => {
    const node = nodeOf(event);
    if (!node) return;
    const beside = node.parent ? node.parent.children : [node], at = beside.indexOf(node);
    const widest = [...node.children].sort((one, other) => weight(other) - weight(one))[0];
    const next = { ArrowUp: node.parent, ArrowDown: widest, ArrowLeft: beside[at - 1], ArrowRight: beside[at + 1] };
    if (!(event.key in next)) return;
    event.preventDefault();
    move(next[event.key]);
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") zoom(root); });
  reset.addEventListener("click", () => { search.value = ""; wanted = null; zoom(root); });
  search.addEventListener("input", () => {
    const text = search.value.trim().toLowerCase();
    wanted = text ? (name) => name.toLowerCase().includes(text) : null;
    draw();
  });
  addEventListener("resize", draw);
  draw();
})();
