// Plots of viewers: states, buffers and bitrates.

// Plots quantities of the viewers of each run.
function plotViewers(title, about, quantities, options) {
  const tables = [];
  const series = [];
  runs.filter((run) => run.samples.length).forEach((run, n) => quantities.forEach(([name, value], k) => {
    tables.push([run.samples.map((s) => s.second), run.samples.map(value)]);
    series.push(line(label(run, name), several ? n : k, several && k ? dashed : {}));
  }));
  if (tables.length) plotChart(title, about, uPlot.join(tables), series, { xLabel: "seconds", ...options });
}

// Plots individual places; a point is a second, buffered seconds, and kilobits per second.
function plotPlaces(title, about, column, options) {
  const traces = runs.flatMap((run) => run.traces).slice(0, 12);
  if (!traces.length) return;
  const tables = traces.map((trace) => [trace.points.map((p) => p[0]), trace.points.map((p) => p[column])]);
  const series = traces.map((trace, n) => line(`place ${trace.place + 1}`, n, n >= palette.length ? dashed : {}));
  plotChart(title, about, uPlot.join(tables), series, { xLabel: "seconds", ...options });
}

function plotAllViewers() {
  plotViewers("Viewers", "Viewers present, playing and stalled.", [
    ["present", (s) => s.viewers], ["playing", (s) => s.playing], ["stalled", (s) => s.stalled],
  ], { yLabel: "viewers" });
  plotViewers("Buffers", "Buffered seconds of the viewers.", [
    ["p10", (s) => s.buffer_p10_s], ["p50", (s) => s.buffer_p50_s], ["p90", (s) => s.buffer_p90_s],
  ], { yLabel: "buffered seconds" });
  plotViewers("Bitrate", "Mean bitrate of the chosen levels.", [
    ["mean", (s) => s.bitrate_kbps],
  ], { yLabel: "kb/s" });
  plotPlaces("Buffers by place", "The first twelve places.", 1, { yLabel: "buffered seconds" });
  plotPlaces("Bitrates by place", "The first twelve places.", 2, { yLabel: "kb/s" });
}
