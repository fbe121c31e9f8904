"use strict";
// Draws the runs in the data element. Colors come from the style sheet, so switching between light
// and dark mode only needs a redraw.

const runs = JSON.parse(document.getElementById("data").textContent);
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const palette = ["--s1", "--s2", "--s3", "--s4"];
const several = runs.length > 1;
const label = (run, text) => (several ? `${run.name || "run"}: ${text}` : text);
const ms = (v) => (v == null ? "–" : v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(3));
let drawn = [];

function createElement(name, attributes = {}, text = "") {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(text);
  return made;
}

function createTile(name, value, bad) {
  const made = createElement("div", { className: bad ? "tile bad" : "tile" });
  made.append(createElement("b", {}, value), createElement("span", {}, name));
  return made;
}

function createTiles(run) {
  const all = run.seconds;
  const ended = all.reduce((sum, s) => sum + s.ended, 0) * run.every_s;
  const errors = all.reduce((sum, s) => sum + s.errors, 0) * run.every_s;
  const curve = run.closed ? run.sent : run.due;
  const from = run.closed ? "from sent" : "from due";
  const prefix = several ? `${run.name || "run"}: ` : "";
  return [
    createTile(`${prefix}requests`, ended.toLocaleString("en")),
    createTile(`${prefix}errors`, errors.toLocaleString("en"), errors > 0),
    ...["p50", "p99", "p99.9", "max"].map((q) => createTile(`${prefix}${q} ${from}, ms`, ms(curve.figures[q]))),
  ];
}

// Joins curves on a common x axis.
function joinCurves(curves) {
  const tables = curves.map((c) => [c.map((p) => p[0]), c.map((p) => p[1])]);
  return tables.length ? uPlot.join(tables) : [[]];
}

function plotChart(title, about, data, series, options = {}) {
  const card = createElement("div", { className: "plot" });
  card.append(createElement("h2", {}, title), createElement("p", {}, about));
  document.getElementById("plots").append(card);
  const axis = (extra) => ({
    stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 },
    ticks: { stroke: color("--line"), width: 1 }, ...extra,
  });
  const width = Math.max(280, card.clientWidth - 28);
  drawn.push(new uPlot({
    width, height: 270,
    scales: { x: { time: false, ...options.x }, y: options.y || {} },
    axes: [
      axis({ label: options.xLabel, labelSize: 22, ...(options.xAxis || {}) }),
      axis({ label: options.yLabel, size: 64, labelSize: 22, ...(options.yAxis || {}) }),
    ],
    series: [{ label: options.xLabel, value: options.xValue }, ...series],
    hooks: options.hooks || {},
    legend: { live: true },
    cursor: { drag: { x: true, y: false } },
  }, data, card));
}

const line = (name, index, extra = {}) => ({
  label: name, stroke: color(palette[index % palette.length]), width: 2, spanGaps: true,
  points: { show: false }, value: (_, v) => ms(v), ...extra,
});
const dashed = { dash: [6, 4] };

// Latencies span decades: a logarithmic axis with labels at powers of ten.
const logAxis = {
  filter: (_, splits) => splits.map((v) => (Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-6 ? v : null)),
  values: (_, splits) => splits.map((v) => (v == null ? "" : String(+v.toPrecision(1)))),
};
const logScale = { distr: 3, log: 10 };

// Returns the latency curves of a run.
function curves(run) {
  const both = [["from due", run.due, {}], ["from sent", run.sent, dashed]];
  return (run.closed ? both.slice(1) : both).filter(([, curve]) => curve.values.length);
}

function plotDistributions() {
  const all = runs.flatMap((run, n) => curves(run).map(([name, curve, style], k) => ({
    curve, series: line(label(run, name), several ? n : k, several ? style : {}),
  })));
  if (!all.length) return;
  const nines = all.map(({ curve }) => curve.values
    .filter(([, share]) => share < 1).map(([v, share]) => [Math.log10(1 / (1 - share)), v]));
  plotChart("Latency by percentile", "Each division to the right leaves a tenth of the requests, so the whole tail is visible.",
    joinCurves(nines), all.map(({ series }) => series), {
      xLabel: "percentile", yLabel: "ms", y: logScale, yAxis: logAxis,
      xValue: (_, v) => (v == null ? "–" : `${+(100 * (1 - 10 ** -v)).toFixed(5)} %`),
      xAxis: {
        splits: (_, __, min, max) => [0, 0.30103, 1, 2, 3, 4, 5, 6, 7].filter((v) => v >= min && v <= max),
        values: (_, splits) => splits.map((v) => `${+(100 * (1 - 10 ** -v)).toFixed(5)} %`),
      },
    });
  const shares = all.map(({ curve }) => curve.values.map(([v, share]) => [v, share * 100]));
  plotChart("Cumulative distribution (ECDF)", "Share of requests within a time; further left is faster.",
    joinCurves(shares), all.map(({ series }) => ({
      ...series, paths: uPlot.paths.stepped({ align: 1 }), value: (_, v) => (v == null ? "–" : `${v.toFixed(3)} %`),
    })), {
      xLabel: "ms", yLabel: "% of requests", x: logScale, xAxis: logAxis, y: { range: [0, 100] },
      xValue: (_, v) => (v == null ? "–" : `${ms(v)} ms`),
    });
}

// Plots quantities of each run over its seconds.
function overTime(title, about, quantities, options) {
  const some = runs.filter((run) => run.seconds.length);
  if (!some.length) return;
  const tables = [];
  const series = [];
  some.forEach((run, n) => quantities.forEach(([name, value, index, style], k) => {
    if (run.closed && name.includes("due")) return;
    tables.push([run.seconds.map((s) => s.second), run.seconds.map((s) => value(s))]);
    series.push(line(label(run, name), several ? n : index ?? k, { ...(several && k ? dashed : {}), ...style }));
  }));
  if (!tables.length) return;
  plotChart(title, about, uPlot.join(tables), series, { xLabel: "seconds", ...options });
}

function plotTimes() {
  const positive = (v) => (v > 0 ? v : null);
  const plain = { value: (_, v) => (v == null ? "–" : v.toLocaleString("en")) };
  const worse = runs.some((run) => run.merged) ? " Merged runs show the worse quantile." : "";
  overTime("Latency over time", `Quantiles of the requests that ended in each second.${worse}`, [
    ["p50 from due", (s) => positive(s.due_p50_ms), 0],
    ["p99 from due", (s) => positive(s.due_p99_ms), 1],
    ["p50 from sent", (s) => positive(s.sent_p50_ms), 2],
    ["p99 from sent", (s) => positive(s.sent_p99_ms), 3],
  ], { yLabel: "ms", y: logScale, yAxis: logAxis });
  overTime("Requests over time", "Requests due, completed and failed per second.", [
    ["due", (s) => s.due, 1, plain], ["completed", (s) => s.ended, 0, plain], ["errors", (s) => s.errors, 3, plain],
  ], { yLabel: "requests/s" });
  overTime("Throughput over time", "Body bits received per second.", [
    ["Mb/s", (s) => (s.bytes * 8) / 1e6, 0, { value: (_, v) => (v == null ? "–" : v.toFixed(1)) }],
  ], { yLabel: "Mb/s" });
  overTime("Connections", "Open connections at the end of each second.", [["open", (s) => s.open, 0, plain]], { yLabel: "open" });
}

function plotThroughput() {
  const some = runs.filter((run) => run.points.length > 1);
  if (!some.length) return;
  const sorted = some.map((run) => [...run.points].sort((a, b) => a.offered_per_s - b.offered_per_s));
  const most = Math.max(...sorted.flat().map((p) => p.offered_per_s));
  const tables = sorted.map((points) => [points.map((p) => p.offered_per_s), points.map((p) => p.achieved_per_s)]);
  const knees = some.map((run) => run.points.find((p) => p.knee));
  const rate = { value: (_, v) => (v == null ? "–" : `${v.toFixed(1)}/s`) };
  const series = some.map((run, n) => line(label(run, "successful"), n, { ...rate, points: { show: true, size: 7 } }));
  tables.push([[0, most], [0, most]]);
  series.push({ label: "offered", stroke: color("--quiet"), width: 1, dash: [4, 4], spanGaps: true, points: { show: false }, ...rate });
  const kneeTexts = some.map((run, n) => knees[n]
    ? label(run, `knee at ${knees[n].offered_per_s.toFixed(0)}/s offered`)
    : label(run, "no knee reached"));
  plotChart("Throughput against offered load", `${kneeTexts.join("; ")} (throughput below 98 % of offered, or a tail above three times the first).`,
    uPlot.join(tables), series, {
      xLabel: "offered, requests/s", yLabel: "successful, requests/s", xValue: rate.value,
      hooks: { draw: [(plot) => knees.forEach((knee) => knee && markKnee(plot, knee))] },
    });
}

function markKnee(plot, knee) {
  const x = plot.valToPos(knee.offered_per_s, "x", true);
  const y = plot.valToPos(knee.achieved_per_s, "y", true);
  const { ctx } = plot;
  const dpr = window.devicePixelRatio || 1;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = color("--bad");
  ctx.lineWidth = 2 * dpr;
  ctx.setLineDash([]);
  ctx.beginPath();
  ctx.arc(x, y, 8 * dpr, 0, 2 * Math.PI);
  ctx.stroke();
  ctx.font = `${13 * dpr}px system-ui, sans-serif`;
  ctx.textAlign = x > plot.bbox.left + plot.bbox.width / 2 ? "right" : "left";
  ctx.fillText("knee", x + (ctx.textAlign === "right" ? -13 : 13) * dpr, y + 20 * dpr);
  ctx.restore();
}

function createStepTable() {
  const section = document.getElementById("steps");
  for (const run of runs.filter((one) => one.steps.length > 1)) {
    section.append(createElement("h2", {}, label(run, `Steps, latency ${run.closed ? "from sent" : "from due"} in ms`)));
    const table = createElement("table");
    const columns = ["min", "p50", "p90", "p99", "p99.9", "max"];
    const head = createElement("tr");
    head.append(...["seconds", ...(run.closed ? [] : ["offered/s"]), "requests", "errors", ...columns].map((name) => createElement("th", {}, name)));
    table.append(head);
    for (const step of run.steps) {
      const row = createElement("tr");
      const offered = run.closed ? [] : [step.offered_per_s.toFixed(1)];
      const cells = [step.when, ...offered, step.requests, step.errors, ...columns.map((q) => ms(step.figures[q]))];
      row.append(...cells.map((cell) => createElement("td", {}, String(cell))));
      table.append(row);
    }
    const wide = createElement("div", { className: "wide" });
    wide.append(table);
    section.append(wide);
  }
}

function drawAll() {
  drawn.forEach((plot) => plot.destroy());
  drawn = [];
  document.getElementById("plots").replaceChildren();
  plotAllViewers();
  plotDistributions();
  plotTimes();
  plotThroughput();
}

document.getElementById("tiles").append(...runs.flatMap(createTiles));
createStepTable();
for (const run of runs) document.getElementById("summaries").append(createElement("pre", {}, run.summary));
drawAll();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
let resized;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(drawAll, 150);
});
