// Plots of viewers: what they held, what they had chosen, what they did.

// A plot of quantities of each run's samples of its viewers.
function ofViewers(title, about, quantities, options) {
  const tables = [];
  const series = [];
  runs.filter((run) => run.samples.length).forEach((run, n) => quantities.forEach(([name, value], k) => {
    tables.push([run.samples.map((s) => s.second), run.samples.map(value)]);
    series.push(line(label(run, name), several ? n : k, several && k ? dashed : {}));
  }));
  if (tables.length) chart(title, about, uPlot.join(tables), series, { xLabel: "seconds", ...options });
}

// Some places one by one: points are seconds, seconds held, kilobits a second.
function ofPlaces(title, about, column, options) {
  const traces = runs.flatMap((run) => run.traces).slice(0, 12);
  if (!traces.length) return;
  const tables = traces.map((trace) => [trace.points.map((p) => p[0]), trace.points.map((p) => p[column])]);
  const series = traces.map((trace, n) => line(`place ${trace.place + 1}`, n, n >= palette.length ? dashed : {}));
  chart(title, about, uPlot.join(tables), series, { xLabel: "seconds", ...options });
}

function viewers() {
  ofViewers("Viewers", "Players that were there, of them those that played, and those that had run dry.", [
    ["there", (s) => s.viewers], ["playing", (s) => s.playing], ["stalled", (s) => s.stalled],
  ], { yLabel: "viewers" });
  ofViewers("Buffers", "Seconds that can be played without another byte: a tenth of the viewers hold less than p10.", [
    ["p10", (s) => s.buffer_p10_s], ["p50", (s) => s.buffer_p50_s], ["p90", (s) => s.buffer_p90_s],
  ], { yLabel: "seconds held" });
  ofViewers("Bitrate", "Mean of the levels that viewers had chosen.", [
    ["mean", (s) => s.bitrate_kbps],
  ], { yLabel: "kb/s" });
  ofPlaces("Buffers of some viewers", "The first dozen places, one by one.", 1, { yLabel: "seconds held" });
  ofPlaces("Bitrates of some viewers", "The first dozen places, one by one.", 2, { yLabel: "kb/s" });
}
