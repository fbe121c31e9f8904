// Charts of viewers: states, buffers and bitrates.

// Returns a chart of quantities of the viewers of each run.
function viewersOverTime(title, about, quantities, options) {
  const tables = [];
  const series = [];
  runs.filter((run) => run.samples.length).forEach((run, n) => quantities.forEach(([name, value], k) => {
    const values = run.samples.map(value);
    if (values.every((v) => v == null)) return;
    tables.push([run.samples.map((s) => s.second), values]);
    series.push(line(label(run, name), several ? n : k, several && k ? dashed : {}));
  }));
  return tables.length ? [chart(title, about, uPlot.join(tables), series, { xLabel: SINCE_START, ...options })] : [];
}

// Returns a chart of individual places; a point is a second, buffered seconds, and kilobits per second.
function placesOverTime(title, column, options) {
  const traces = runs.flatMap((run) => run.traces).slice(0, 12);
  if (!traces.length) return [];
  const tables = traces.map((trace) => [trace.points.map((p) => p[0]), trace.points.map((p) => p[column])]);
  const series = traces.map((trace, n) => line(`place ${trace.place + 1}`, n, n >= palette.length ? dashed : {}));
  return [chart(title, "The first twelve places. A viewer who leaves a place is replaced.", uPlot.join(tables), series, { xLabel: SINCE_START, ...options })];
}

function viewerChart() {
  return viewersOverTime("Viewers over time", "Viewers present, playing and stalled at the end of each second.", [
    ["present", (s) => s.viewers], ["playing", (s) => s.playing], ["stalled", (s) => s.stalled],
  ], { yLabel: "Viewers", yAxis: { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 1e4, 1e5] } });
}

function bufferCharts() {
  const of = (share, value) => (s) => (supported(s.viewers, share) ? value(s) : null);
  return [
    ...viewersOverTime("Buffers over time", "Buffered media of the viewers. A percentile needs ten viewers beyond it.", [
      ["p10", of(0.1, (s) => s.buffer_p10_s)], ["median", of(0.5, (s) => s.buffer_p50_s)], ["p90", of(0.9, (s) => s.buffer_p90_s)],
    ], { yLabel: "Buffered media (s)" }),
    ...viewersOverTime("Bitrate over time", "Mean bitrate of the levels that the viewers chose.", [
      ["mean", (s) => s.bitrate_kbps],
    ], { yLabel: "Bitrate (kb/s)" }),
    ...placesOverTime("Buffers by place", 1, { yLabel: "Buffered media (s)" }),
    ...placesOverTime("Bitrates by place", 2, { yLabel: "Bitrate (kb/s)" }),
  ];
}
