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
    const { width } = options;
    const rows = columns.length;
    const [left, right, top, foot] = [72, width - 16, 10, options.height - 50];
    const height = options.height + 16 * rows;
    const [xAxis, yAxis] = options.axes;
    const x = this.#scale(xs, options.scales.x, [left, right]);
    const y = this.#scale(columns.flat().filter((v) => v != null), options.scales.y, [foot, top]);
    this.root = this.#node("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "font-size": 12, fill: "currentColor" });
    this.root.append(this.#node("path", { d: `M${left} ${top}V${foot}H${right}`, fill: "none", stroke: "currentColor", opacity: 0.5 }));
    for (const [at, text] of this.#ticks(x, xAxis)) {
      this.root.append(
        this.#node("path", { d: `M${at} ${top}V${foot}`, stroke: "currentColor", opacity: 0.12 }),
        this.#node("text", { x: at, y: foot + 16, "text-anchor": "middle" }, text),
      );
    }
    for (const [at, text] of this.#ticks(y, yAxis)) {
      this.root.append(
        this.#node("path", { d: `M${left} ${at}H${right}`, stroke: "currentColor", opacity: 0.12 }),
        this.#node("text", { x: left - 6, y: at + 4, "text-anchor": "end" }, text),
      );
    }
    this.root.append(
      this.#node("text", { x: (left + right) / 2, y: foot + 36, "text-anchor": "middle" }, xAxis.label ?? ""),
      this.#node("text", { transform: `translate(14 ${(top + foot) / 2}) rotate(-90)`, "text-anchor": "middle" }, yAxis.label ?? ""),
    );
    columns.forEach((column, n) => {
      const { stroke = "gray", dash = [], label: name = "" } = options.series[n + 1] ?? {};
      const points = column.map((v, k) => [x.place(xs[k]), v == null ? NaN : y.place(v)]);
      const shown = points.filter((point) => point.every(Number.isFinite));
      const line = { fill: "none", stroke, "stroke-width": 2, "stroke-dasharray": dash.join(" ") };
      const path = shown.map(([px, py]) => `${px.toFixed(1)} ${py.toFixed(1)}`).join("L");
      if (path) this.root.append(this.#node("path", { d: `M${path}`, ...line }));
      if (shown.length === 1) this.root.append(this.#node("circle", { cx: shown[0][0], cy: shown[0][1], r: 3, fill: stroke }));
      const legend = options.height + 16 * n;
      this.root.append(
        this.#node("path", { d: `M${left} ${legend}h24`, ...line }),
        this.#node("text", { x: left + 30, y: legend + 4 }, name),
      );
    });
    element.append(this.root);
  }

  // Maps values to places; the ends are those of the data, or of a fixed range.
  #scale(values, { distr, range } = {}, [from, to]) {
    const log = distr === 3;
    const map = (v) => (log ? Math.log10(v) : v);
    const shown = values.map(map).filter(Number.isFinite);
    let low = shown.reduce((a, b) => Math.min(a, b), log || !shown.length ? Infinity : Math.min(0, shown[0]));
    let high = shown.reduce((a, b) => Math.max(a, b), -Infinity);
    if (Array.isArray(range)) [low, high] = range;
    if (!(high > low)) [low, high] = [Number.isFinite(low) ? low : 0, (Number.isFinite(low) ? low : 0) + 1];
    return { log, low, high, place: (v) => from + ((map(v) - low) / (high - low)) * (to - from) };
  }

  // Places and texts of ticks, as the axis defines them or at round values.
  #ticks({ log, low, high, place }, axis) {
    const [min, max] = log ? [10 ** low, 10 ** high] : [low, high];
    let at = axis.splits?.(this, 0, min, max);
    if (!at && log) at = Array.from({ length: 16 }, (_, n) => 10 ** (n - 6)).filter((v) => v >= min * 0.999 && v <= max * 1.001);
    // Less than a decade: both ends.
    if (log && at.length < 2) at = [min, max];
    if (!at) {
      const step = 10 ** Math.floor(Math.log10((max - min) / 4));
      const size = [1, 2, 5, 10].map((n) => n * step).find((n) => (max - min) / n <= 6);
      const first = Math.ceil(min / size - 1e-9);
      at = Array.from({ length: 8 }, (_, n) => (first + n) * size).filter((v) => v <= max + size * 1e-9);
    }
    const texts = axis.splits ? axis.values(this, at) : at.map((v) => String(+v.toPrecision(3)));
    return at.map((v, n) => [place(v).toFixed(1), texts[n]]).map(([p, text]) => [+p, text]);
  }

  #node(name, attributes, text = "") {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.append(text);
    return made;
  }

  destroy() {
    this.root.remove();
  }
}
uPlot.paths = { stepped: () => undefined };
