"use strict";
// Static SVG plots for builds without uPlot: the part of its interface that the page uses.

class uPlot {
  // One table of several: the union of their x values, null where a table has no point.
  static join(tables) {
    const xs = [...new Set(tables.flatMap(([x]) => x))].sort((a, b) => a - b);
    const columns = tables.flatMap(([x, ...ys]) => {
      const index = new Map(x.map((value, n) => [value, n]));
      return ys.map((y) => xs.map((value) => (index.has(value) ? y[index.get(value)] : null)));
    });
    return [xs, ...columns];
  }

  constructor(options, [xs, ...columns], element) {
    const [width, height] = [options.width, options.height];
    const [left, foot] = [60, height - 30];
    const logs = [options.scales.x, options.scales.y].map((scale) => scale?.distr === 3);
    const scale = (values, log, [from, to]) => {
      const map = (v) => (log ? Math.log10(v) : v);
      const shown = values.map(map).filter(Number.isFinite);
      const low = shown.reduce((a, b) => Math.min(a, b), log || !shown.length ? Infinity : shown[0]);
      const high = shown.reduce((a, b) => Math.max(a, b), -Infinity);
      const place = (v) => from + ((map(v) - low) / (high - low || 1)) * (to - from);
      return { low: log ? 10 ** low : low, high: log ? 10 ** high : high, place };
    };
    const x = scale(xs, logs[0], [left, width - 10]);
    const y = scale(columns.flat().filter((v) => v != null), logs[1], [foot, 10]);
    const node = (name, attributes, text = "") => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", name);
      Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
      made.append(text);
      return made;
    };
    this.root = node("svg", { width, height, role: "img", "font-size": 11, fill: "currentColor" });
    const label = (v) => (Number.isFinite(v) ? String(+v.toPrecision(3)) : "");
    this.root.append(
      node("path", { d: `M${left} 10V${foot}H${width - 10}`, fill: "none", stroke: "currentColor", opacity: 0.4 }),
      node("text", { x: left - 4, y: foot, "text-anchor": "end" }, label(y.low)),
      node("text", { x: left - 4, y: 18, "text-anchor": "end" }, label(y.high)),
      node("text", { x: left, y: foot + 14 }, label(x.low)),
      node("text", { x: width - 10, y: foot + 14, "text-anchor": "end" }, label(x.high)),
    );
    columns.forEach((column, n) => {
      const { stroke = "gray", dash = [], label: name = "" } = options.series[n + 1] ?? {};
      const points = column.map((v, k) => [x.place(xs[k]), v == null ? NaN : y.place(v)]);
      const shown = points.filter((point) => point.every(Number.isFinite));
      const path = shown.map(([px, py]) => `${px.toFixed(1)} ${py.toFixed(1)}`).join("L");
      if (path) this.root.append(node("path", { d: `M${path}`, fill: "none", stroke, "stroke-dasharray": dash.join(" ") }));
      this.root.append(node("text", { x: left + 8, y: 22 + 13 * n, fill: stroke }, name));
    });
    element.append(this.root);
  }

  destroy() {
    this.root.remove();
  }
}
uPlot.paths = { stepped: () => undefined };
