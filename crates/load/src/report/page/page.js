"use strict";
// Draws the runs in the data element: one chart, and further ones in collapsible groups. Colors come
// from the style sheet, so switching between light and dark mode only needs a redraw.

const runs = JSON.parse(document.getElementById("data").textContent);
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const palette = ["--s1", "--s2", "--s3", "--s4"];
const several = runs.length > 1;
const label = (run, text) => (several ? `${run.name || "run"}: ${text}` : text);
const ms = (v) => (v == null ? "–" : v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(3));
// As in Rust: a percentile needs ten samples beyond it.
const supported = (samples, share) => samples * Math.min(share, 1 - share) + 1e-6 >= 10;
const SINCE_START = "Time since the start (s)";

function createElement(name, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

// Joins curves on a common x axis.
function joinCurves(curves) {
  const tables = curves.map((c) => [c.map((p) => p[0]), c.map((p) => p[1])]);
  return tables.length ? uPlot.join(tables) : [[]];
}

const chart = (title, about, data, series, options = {}) => ({ title, about, data, series, options });

function drawChart({ title, about, data, series, options }, parent) {
  const card = createElement("div", { className: "plot" }, createElement("h2", {}, title), createElement("p", {}, about));
  parent.append(card);
  const axis = (extra) => ({
    stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 },
    ticks: { stroke: color("--line"), width: 1 }, labelSize: 24, ...extra,
  });
  const width = Math.max(280, card.clientWidth - 28);
  return new uPlot({
    width, height: 300,
    scales: { x: { time: false, ...options.x }, y: options.y || {} },
    axes: [axis({ label: options.xLabel, ...(options.xAxis || {}) }), axis({ label: options.yLabel, size: 64, ...(options.yAxis || {}) })],
    series: [{ label: options.xLabel, value: options.xValue }, ...series],
    hooks: options.hooks || {},
    legend: { live: true },
    cursor: { drag: { x: true, y: false } },
  }, data, card);
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
const nines = (v) => `${+(100 * (1 - 10 ** -v)).toFixed(5)} %`;

// Returns the latency curves of a run.
function curves(run) {
  const both = [["from the due time", run.due, {}], ["from sending", run.sent, dashed]];
  return (run.closed ? both.slice(1) : both).filter(([, curve]) => curve.values.length);
}

const allCurves = () => runs.flatMap((run, n) => curves(run).map(([name, curve, style], k) => ({
  curve, series: line(label(run, name), several ? n : k, several ? style : {}),
})));

function percentileChart() {
  const all = allCurves();
  // The last points of a curve are single requests, not percentiles.
  const points = all.map(({ curve }) => curve.values
    .filter(([, share]) => supported(curve.figures.samples, share))
    .map(([v, share]) => [Math.log10(1 / (1 - share)), v]));
  if (!points.some((some) => some.length > 1)) return [];
  const samples = runs.map((run) => label(run, `${curves(run)[0]?.[1].figures.samples.toLocaleString("en") ?? 0} requests`));
  return [chart("Latency by percentile", `${samples.join("; ")}. Each division to the right leaves a tenth of them. A curve ends where fewer than ten are beyond it.`,
    joinCurves(points), all.map(({ series }) => series), {
      xLabel: "Share of requests (%)", yLabel: "Latency (ms)", y: logScale, yAxis: logAxis,
      xValue: (_, v) => (v == null ? "–" : nines(v)),
      xAxis: {
        splits: (_, __, min, max) => [0, 0.30103, 1, 2, 3, 4, 5, 6, 7].filter((v) => v >= min && v <= max),
        values: (_, splits) => splits.map(nines),
      },
    })];
}

function distributionChart() {
  const all = allCurves();
  if (!all.length) return [];
  const shares = all.map(({ curve }) => curve.values.map(([v, share]) => [v, share * 100]));
  return [chart("Cumulative distribution", "Share of requests within a time. Further left is faster.",
    joinCurves(shares), all.map(({ series }) => ({
      ...series, paths: uPlot.paths.stepped({ align: 1 }), value: (_, v) => (v == null ? "–" : `${v.toFixed(3)} %`),
    })), {
      xLabel: "Latency (ms)", yLabel: "Share of requests (%)", x: logScale, xAxis: logAxis, y: { range: [0, 100] },
      xValue: (_, v) => (v == null ? "–" : `${ms(v)} ms`),
    })];
}

// Returns a chart of quantities of each run over its seconds, without those that have no values.
function overTime(title, about, quantities, options) {
  const tables = [];
  const series = [];
  runs.filter((run) => run.seconds.length).forEach((run, n) => quantities.forEach(([name, value, index, style], k) => {
    const values = run.seconds.map((s) => value(s, run));
    if (values.every((v) => v == null)) return;
    tables.push([run.seconds.map((s) => s.second), values]);
    series.push(line(label(run, name), several ? n : index ?? k, { ...(several && k ? dashed : {}), ...style }));
  }));
  return tables.length ? [chart(title, about, uPlot.join(tables), series, { xLabel: SINCE_START, ...options })] : [];
}

function latencyOverTime() {
  const worse = runs.some((run) => run.merged) ? " Merged runs show the worse value." : "";
  const due = (share, of) => (s, run) => (!run.closed && supported(s.ended, share) ? of(s) : null);
  const sent = (share, of) => (s, run) => (run.closed && supported(s.ended, share) ? of(s) : null);
  return overTime("Latency over time", `Of the requests that ended in each second. A percentile needs ten requests beyond it in that second.${worse}`, [
    ["median from the due time", due(0.5, (s) => s.due_p50_ms), 0],
    ["p99 from the due time", due(0.99, (s) => s.due_p99_ms), 1],
    ["largest from the due time", (s, run) => (!run.closed && s.ended ? s.due_max_ms : null), 3],
    ["median from sending", sent(0.5, (s) => s.sent_p50_ms), 0],
    ["p99 from sending", sent(0.99, (s) => s.sent_p99_ms), 1],
  ], { yLabel: "Latency (ms)", y: logScale, yAxis: logAxis });
}

function rateOverTime() {
  const plain = { value: (_, v) => (v == null ? "–" : v.toLocaleString("en")) };
  const bits = { value: (_, v) => (v == null ? "–" : v.toFixed(1)) };
  return [
    ...overTime("Requests over time", "Requests that became due, ended and failed in each second.", [
      ["due", (s, run) => (run.closed ? null : s.due), 1, plain], ["ended", (s) => s.ended, 0, plain], ["failed", (s) => s.errors, 3, plain],
    ], { yLabel: "Requests per second" }),
    ...overTime("Throughput over time", "Body bytes received in each second.", [
      ["received", (s) => (s.bytes * 8) / 1e6, 0, bits],
    ], { yLabel: "Received (Mb/s)" }),
    ...overTime("Connections over time", "Open connections at the end of each second.", [["open", (s) => s.open, 0, plain]], { yLabel: "Open connections" }),
  ];
}

// Only for runs whose offered load grows: others have no points.
function throughputChart() {
  const some = runs.filter((run) => run.points.length > 1);
  if (!some.length) return [];
  const sorted = some.map((run) => [...run.points].sort((a, b) => a.offered_per_s - b.offered_per_s));
  const most = Math.max(...sorted.flat().map((p) => p.offered_per_s));
  const tables = sorted.map((points) => [points.map((p) => p.offered_per_s), points.map((p) => p.achieved_per_s)]);
  const knees = some.map((run) => run.points.find((p) => p.knee));
  const rate = { value: (_, v) => (v == null ? "–" : `${v.toFixed(1)}/s`) };
  const series = some.map((run, n) => line(label(run, "successful"), n, { ...rate, points: { show: true, size: 7 } }));
  tables.push([[0, most], [0, most]]);
  series.push({ label: "offered", stroke: color("--quiet"), width: 1, dash: [4, 4], spanGaps: true, points: { show: false }, ...rate });
  const kneeTexts = some.map((run, n) => knees[n]
    ? label(run, `knee at ${knees[n].offered_per_s.toFixed(0)} offered requests per second`)
    : label(run, "no knee reached"));
  return [chart("Throughput against offered load", `${kneeTexts.join("; ")} (throughput below 98 % of offered, or a latency tail above three times the first).`,
    uPlot.join(tables), series, {
      xLabel: "Offered load (requests per second)", yLabel: "Successful requests per second", xValue: rate.value,
      hooks: { draw: [(plot) => knees.forEach((knee) => knee && markKnee(plot, knee))] },
    })];
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

// Returns a table of the steps of each run that has several.
function stepTables() {
  return runs.filter((run) => run.steps.length > 1).map((run) => {
    const columns = ["min", "p50", "p90", "p99", "p99.9", "max"];
    const since = run.closed ? "from sending" : "from the due time";
    const names = ["Time (s)", ...(run.closed ? [] : ["Offered per second"]), "Requests", "Failed", ...columns.map((q) => `${q} (ms)`)];
    const row = (step) => [step.when, ...(run.closed ? [] : [step.offered_per_s.toFixed(1)]), step.requests, step.errors, ...columns.map((q) => ms(step.figures[q]))];
    const table = createElement("table", {}, createElement("tr", {}, ...names.map((name) => createElement("th", {}, name))),
      ...run.steps.map((step) => createElement("tr", {}, ...row(step).map((cell) => createElement("td", {}, String(cell))))));
    return createElement("div", { className: "wide" }, createElement("p", {}, label(run, `latency ${since}`)), table);
  });
}

// Returns a table of the URL groups of each run that has several.
function urlGroupTables() {
  return runs.filter((run) => run.url_groups.length).map((run) => {
    const columns = ["p50", "p90", "p99", "max"];
    const names = ["URL", "Requests", "Failed", "Bodies", ...columns.map((q) => `${q} (ms)`)];
    const row = (group) => [group.url, group.requests, group.errors, group.bytes, ...columns.map((q) => ms(group.figures[q]))];
    const table = createElement("table", {}, createElement("tr", {}, ...names.map((name) => createElement("th", {}, name))),
      ...run.url_groups.map((group) => createElement("tr", {}, ...row(group).map((cell) => createElement("td", {}, String(cell))))));
    const since = run.closed ? "from sending" : "from the due time";
    return createElement("div", { className: "wide" }, createElement("p", {}, label(run, `latency ${since}`)), table);
  });
}

// Collapsible groups, whose charts are drawn while they are open: a closed group has no width.
const groups = [];

function addGroup(title, charts, more = []) {
  if (!charts().length && !more.length) return;
  const inside = createElement("div", { className: "grid" });
  const element = createElement("details", {}, createElement("summary", {}, title), inside, ...more);
  const group = { element, inside, charts, drawn: [] };
  element.addEventListener("toggle", () => drawGroup(group));
  groups.push(group);
  document.getElementById("details").append(element);
}

function drawGroup(group) {
  group.drawn.forEach((plot) => plot.destroy());
  group.inside.replaceChildren();
  group.drawn = group.element.open ? group.charts().map((one) => drawChart(one, group.inside)) : [];
}

// The chart above all groups: that of the viewers, or of the latencies, or the first that exists.
const mainCharts = () => [...viewerChart(), ...percentileChart(), ...distributionChart(), ...rateOverTime()];
const main = { element: { open: true }, inside: document.getElementById("chart"), charts: () => mainCharts().slice(0, 1), drawn: [] };
const title = (charts) => charts[0]?.title;
const rest = (charts) => charts.filter((one) => one.title !== title(main.charts()));

const drawAll = () => [main, ...groups].forEach(drawGroup);

addGroup("Viewers: buffers and bitrates", () => rest(bufferCharts()));
addGroup("Latency: distribution, and over time", () => rest([...percentileChart(), ...distributionChart(), ...latencyOverTime()]));
addGroup("Requests, throughput and connections over time", () => rest(rateOverTime()));
addGroup("Throughput against offered load", throughputChart, stepTables());
addGroup("Requests by URL", () => [], urlGroupTables());
addGroup("All figures as text", () => [], runs.map((run) => createElement("pre", {}, run.summary)));
drawAll();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
addEventListener("beforeprint", () => groups.forEach(({ element }) => { element.open = true; }));
let resized;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(drawAll, 150);
});
