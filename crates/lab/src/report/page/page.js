"use strict";
// Draws the panels of all plots in the data element. Colours come from the style sheet, so switching
// between light mode, dark mode and print only needs a redraw.

const plots = JSON.parse(document.getElementById("data").textContent);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const series = (n) => colour(`--s${n % 8}`);
const HEIGHT = 300;
let drawn = [];

function text(v) {
  if (v == null) return "–";
  const size = Math.abs(v);
  if (size >= 1000) return v.toFixed(0);
  return size === 0 || size >= 1e-4 ? String(+v.toPrecision(4)) : v.toExponential(2);
}

const nines = (v) => `${+(100 * (1 - 10 ** -v)).toFixed(6)} %`;

// Labels a logarithmic axis at powers of ten, or like a linear one if it spans less than a decade.
const logAxis = {
  filter: (_, splits) => {
    const exact = splits.map((v) => (v > 0 && Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-6 ? v : null));
    return exact.filter((v) => v != null).length > 1 ? exact : splits;
  },
  values: (_, splits) => splits.map((v) => (v == null ? "" : text(v))),
};
const ninesAxis = {
  splits: (_, __, min, max) => [0, 0.30103, 1, 2, 3, 4, 5, 6, 7].filter((v) => v >= min && v <= max),
  values: (_, splits) => splits.map(nines),
};

function axis(words, extra = {}) {
  return {
    stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 },
    label: words.label, labelSize: 22, ...(words.log ? logAxis : {}), ...(words.nines ? ninesAxis : {}), ...extra,
  };
}

const scale = (words, extra = {}) => (words.log ? { distr: 3, log: 10, ...extra } : extra);

function make(element, options, data) {
  const plot = new uPlot({
    width: Math.max(280, element.clientWidth), height: HEIGHT,
    cursor: { drag: { x: true, y: false } }, ...options,
  }, data, element);
  drawn.push(plot);
}

const paths = {
  steps: () => ({ paths: uPlot.paths.stepped({ align: 1 }) }),
  dots: (stroke) => ({ paths: () => null, points: { show: true, size: 6, stroke, fill: `${stroke}66` } }),
  dashes: () => ({ dash: [6, 4], width: 1.5 }),
  knee: () => ({ paths: () => null, points: { show: true, size: 16, stroke: colour("--bad"), fill: "transparent", width: 2 } }),
};

function curves(element, { x, y, curves: all }) {
  const tables = [];
  const rows = [{ label: x.label, value: (_, v) => (v == null ? "–" : x.nines ? nines(v) : text(v)) }];
  const bands = [];
  all.forEach((curve, n) => {
    const stroke = series(curve.colour ?? n);
    const xs = curve.points.map(([at]) => at);
    tables.push([xs, curve.points.map(([, v]) => v)]);
    rows.push({
      label: curve.name, stroke, width: 2, spanGaps: true, points: { show: curve.points.length < 30 && curve.join === "lines", size: 5 },
      value: (_, v) => text(v), ...(paths[curve.join]?.(stroke) ?? {}),
    });
    if (!curve.band.some(([low, high]) => high > low)) return;
    const edge = { label: "", stroke: "transparent", points: { show: false }, spanGaps: true, edge: true };
    bands.push({ series: [rows.length + 1, rows.length], fill: `${stroke}2a` });
    rows.push(edge, edge);
    tables.push([xs, curve.band.map(([low]) => low)], [xs, curve.band.map(([, high]) => high)]);
  });
  make(element, {
    scales: { x: scale(x, { time: false }), y: scale(y) },
    axes: [axis(x), axis(y, { size: 64 })],
    series: rows.map(({ edge, ...row }) => row), bands, legend: { live: true },
    // Hides the edges of bands from the legend.
    hooks: { ready: [(plot) => rows.forEach(({ edge }, n) => {
      if (edge) plot.root.querySelectorAll(".u-legend .u-series")[n].style.display = "none";
    })] },
  }, joined(tables));
}

// Joins all curves in one table. A curve may have several points at one x, and a join would keep only
// one of them, so such points are moved apart by an invisible distance.
function joined(tables) {
  return uPlot.join(tables.map(([xs, ys]) => {
    const apart = [];
    xs.forEach((x, n) => {
      const before = apart[n - 1];
      apart.push(n && x <= before ? before + Math.max(Math.abs(before) * 1e-9, 1e-12) : x);
    });
    return [apart, ys];
  }));
}

// Places names at whole numbers on the axis.
function named(names) {
  return {
    scales: { x: { time: false, range: [-0.6, names.length - 0.4] } },
    axis: axis({}, {
      splits: () => names.map((_, n) => n), grid: { show: false },
      values: (plot) => names.map((name) => fitted(name, plot.bbox.width / devicePixelRatio / names.length)),
    }),
  };
}

const fitted = (name, width) => (name.length * 7 <= width ? name : `${name.slice(0, Math.max(1, Math.floor(width / 7) - 1))}…`);

function canvas(plot, draw) {
  const { ctx } = plot;
  ctx.save();
  ctx.lineWidth = 1.5 * devicePixelRatio;
  draw(ctx, (v) => plot.valToPos(v, "x", true), (v) => plot.valToPos(v, "y", true), devicePixelRatio);
  ctx.restore();
}

function range(y, values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (y.log) return [low / 1.3, high * 1.3];
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  return [low - room, high + room];
}

function bars(element, { y, names, groups }) {
  const { scales, axis: across } = named(names);
  const all = groups.flatMap((group) => group.values.filter(Boolean).flat());
  const [low, high] = range(y, y.log ? all : [0, ...all]);
  const width = 0.8 / groups.length;
  const place = (n, g) => n - 0.4 + width * (g + 0.5);
  const foot = y.log ? low : 0;
  const draw = (plot) => canvas(plot, (ctx, px, py) => groups.forEach((group, g) => group.values.forEach((value, n) => {
    if (!value) return;
    const [mean, least, most] = value;
    const [left, right] = [place(n, g) - width * 0.42, place(n, g) + width * 0.42].map(px);
    ctx.fillStyle = series(g);
    ctx.fillRect(left, Math.min(py(mean), py(foot)), right - left, Math.abs(py(foot) - py(mean)));
    ctx.strokeStyle = colour("--ink");
    const [middle, arm] = [(left + right) / 2, Math.min(8 * devicePixelRatio, (right - left) / 4)];
    ctx.beginPath();
    ctx.moveTo(middle, py(least)); ctx.lineTo(middle, py(most));
    for (const end of [least, most]) { ctx.moveTo(middle - arm, py(end)); ctx.lineTo(middle + arm, py(end)); }
    ctx.stroke();
  })));
  const rows = groups.map((group, g) => ({
    label: group.name, stroke: series(g), fill: series(g), paths: () => null, points: { show: false }, value: (_, v) => text(v),
  }));
  make(element, {
    scales: { ...scales, y: scale(y, { range: [y.log ? low : Math.min(0, low), high] }) },
    axes: [across, axis(y, { size: 64 })],
    series: [{ label: "", value: (_, v) => names[v] ?? "–" }, ...rows], hooks: { draw: [draw] },
  }, [names.map((_, n) => n), ...groups.map((group) => group.values.map((value) => value && value[0]))]);
}

function boxes(element, { y, boxes: all }) {
  const names = all.map((box) => box.name);
  const { scales, axis: across } = named(names);
  const draw = (plot) => canvas(plot, (ctx, px, py, dpr) => all.forEach((box, n) => {
    const [least, low, middle, high, most] = box.quartiles.map(py);
    const [left, right, centre] = [px(n - 0.28), px(n + 0.28), px(n)];
    ctx.strokeStyle = series(n);
    ctx.fillStyle = `${series(n)}22`;
    ctx.fillRect(left, high, right - left, low - high);
    ctx.strokeRect(left, high, right - left, low - high);
    ctx.beginPath();
    ctx.moveTo(centre, least); ctx.lineTo(centre, low); ctx.moveTo(centre, high); ctx.lineTo(centre, most);
    ctx.stroke();
    ctx.lineWidth = 3 * dpr;
    ctx.beginPath(); ctx.moveTo(left, middle); ctx.lineTo(right, middle); ctx.stroke();
    ctx.lineWidth = 1.5 * dpr;
    ctx.fillStyle = `${series(n)}bb`;
    box.values.forEach((value, k) => {
      // Spreads the points evenly, in the order of rounds, so that every redraw looks the same.
      const aside = box.values.length > 1 ? (k / (box.values.length - 1) - 0.5) * 0.44 : 0;
      ctx.beginPath(); ctx.arc(px(n + aside), py(value), 2.5 * dpr, 0, 2 * Math.PI); ctx.fill();
    });
  }));
  make(element, {
    scales: { ...scales, y: scale(y, { range: range(y, all.flatMap((box) => box.quartiles)) }) },
    axes: [across, axis(y, { size: 64 })],
    series: [
      { label: "", value: (_, v) => names[v] ?? "–" },
      ...["25 %", "median", "75 %"].map((label) => ({ label, stroke: colour("--quiet"), paths: () => null, points: { show: false }, value: (_, v) => text(v) })),
    ],
    hooks: { draw: [draw] },
  }, [names.map((_, n) => n), ...[1, 2, 3].map((q) => all.map((box) => box.quartiles[q]))]);
}

const shapes = { curves, bars, boxes };

// Draws the plots of open sections: a closed one has no width.
function draw() {
  drawn.forEach((plot) => plot.destroy());
  drawn = [];
  for (const element of document.querySelectorAll(".canvas")) {
    if (element.closest("details:not([open])")) continue;
    const shape = plots[element.dataset.plot][element.dataset.panel];
    shapes[shape.shape](element, shape);
  }
}

// Without the library the page contains static images.
if (typeof uPlot !== "undefined") {
  draw();
  for (const section of document.querySelectorAll("details.section")) section.addEventListener("toggle", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  matchMedia("print").addEventListener("change", draw);
}
addEventListener("beforeprint", () => document.querySelectorAll("details.section").forEach((section) => { section.open = true; }));
let resized;
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width || typeof uPlot === "undefined") return;
  width = innerWidth;
  clearTimeout(resized);
  resized = setTimeout(draw, 150);
});
