"use strict";
(() => {
  // Tables: a click on a heading sorts by that column, a second click turns the order round.
  for (const button of document.querySelectorAll("th button")) {
    button.addEventListener("click", () => {
      const head = button.closest("th"), table = head.closest("table"), column = head.cellIndex;
      const descending = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const value = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
      const compare = (a, b) => {
        const x = value(a), y = value(b);
        if (x === "" || y === "") return (x === "") - (y === "");
        const order = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
        return descending ? -order : order;
      };
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort(compare));
    });
  }

  const copy = document.getElementById("copy");
  if (copy && navigator.clipboard) {
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById("command").textContent);
      copy.textContent = "Copied";
    });
  }

  // The 3-D view: drag or use the arrow keys to turn it.
  const svg = document.getElementById("scene"), source = document.getElementById("scene-data");
  if (!svg || !source) return;
  const scene = JSON.parse(source.textContent), elements = svg.querySelector("g").children;
  const [width, tall, margin] = scene.view;
  let azimuth = scene.azimuth, elevation = scene.elevation;

  const draw = () => {
    const ca = Math.cos(azimuth), sa = Math.sin(azimuth), ce = Math.cos(elevation), se = Math.sin(elevation);
    const flat = scene.points.map((p) => {
      const out = [];
      for (let i = 0; i < p.length; i += 3) {
        const right = p[i + 1] * ca - p[i] * sa, depth = p[i] * ca + p[i + 1] * sa;
        out.push([right, p[i + 2] * ce - depth * se]);
      }
      return out;
    });
    const low = [Infinity, Infinity], high = [-Infinity, -Infinity];
    for (const line of flat) for (const q of line) for (const k of [0, 1]) {
      low[k] = Math.min(low[k], q[k]);
      high[k] = Math.max(high[k], q[k]);
    }
    const scale = Math.min((width - 2 * margin) / Math.max(high[0] - low[0], 1), (tall - 2 * margin) / Math.max(high[1] - low[1], 1));
    const place = (q) => [width / 2 + scale * (q[0] - (low[0] + high[0]) / 2), tall / 2 - scale * (q[1] - (low[1] + high[1]) / 2)];
    flat.forEach((line, index) => {
      const element = elements[index], [x, y] = place(line[0]);
      if (element.tagName === "polyline") element.setAttribute("points", line.map((q) => place(q).map((v) => v.toFixed(1)).join(",")).join(" "));
      else if (element.tagName === "circle") { element.setAttribute("cx", x); element.setAttribute("cy", y); }
      else { element.setAttribute("x", x); element.setAttribute("y", y); }
    });
  };
  const turn = (across, up) => {
    azimuth -= across;
    elevation = Math.min(1.5, Math.max(0.02, elevation + up));
    requestAnimationFrame(draw);
  };

  svg.addEventListener("pointerdown", (event) => svg.setPointerCapture(event.pointerId));
  svg.addEventListener("pointermove", (event) => {
    if (svg.hasPointerCapture(event.pointerId)) turn(event.movementX * 0.007, event.movementY * 0.007);
  });
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-0.08, 0], ArrowRight: [0.08, 0], ArrowUp: [0, 0.06], ArrowDown: [0, -0.06] }[event.key];
    if (step) { turn(...step); event.preventDefault(); }
  });
})();
