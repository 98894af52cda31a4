// Plots in SVG: areas and lines over time, and small ones without axes for tables.

const svgNS = "http://www.w3.org/2000/svg";

export function svg(name, attributes, ...children) {
  const element = document.createElementNS(svgNS, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  element.append(...children);
  return element;
}

// niceTop returns a round number that is not below n.
function niceTop(n, least) {
  n = Math.max(n, least);
  const power = 10 ** Math.floor(Math.log10(n));
  for (const factor of [1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10]) if (factor * power >= n) return factor * power;
  return n;
}

// niceBytes is niceTop for sizes.
function niceBytes(n) {
  let unit = 1;
  while (n / unit >= 1024) unit *= 1024;
  return niceTop(n / unit, 1) * unit;
}

const path = (points) => points.map(([x, y], i) => (i ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1)).join("");

const average = (list) => list.reduce((sum, n) => sum + n, 0) / list.length;
const peak = (list) => Math.max(...list);

// thin replaces every few elements of a list by one, aligned to the end, because more points than
// pixels would be unreadable.
function thin(list, every, combine = average) {
  if (every <= 1) return list;
  const thinned = [];
  for (let end = list.length; end > 0; end -= every) {
    thinned.unshift(combine(list.slice(Math.max(0, end - every), end)));
  }
  return thinned;
}

// values returns the last n points of a series, padded with zeros at the beginning.
export function values(series, n) {
  return [0, 1].map((i) => {
    const known = series ? series[i] : [];
    return n > known.length ? new Array(n - known.length).fill(0).concat(known) : known.slice(known.length - n);
  });
}

// Plot draws two series into an element, and shows their values at the pointer or, with the arrow
// keys, at the focus. options: stacked, classes of the two lines, format of a value, bound (a
// function), bytes, least top, peaks instead of averages where there are more points than pixels,
// and describe for the text of a point.
export class Plot {
  constructor(element, output, options) {
    Object.assign(this, { element, output, options, times: [], data: [[], []], at: null });
    new ResizeObserver(() => this.draw()).observe(element);
    element.addEventListener("pointermove", (event) => this.point(this.indexAt(event.offsetX)));
    element.addEventListener("pointerleave", () => this.point(null));
    element.addEventListener("blur", () => this.point(null));
    element.addEventListener("keydown", (event) => {
      const last = this.times.length - 1;
      const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -12, PageDown: 12, Home: -last, End: last };
      if (!(event.key in steps) || last < 0) return;
      event.preventDefault();
      this.point(Math.min(last, Math.max(0, (this.index() ?? last) + steps[event.key])));
    });
  }

  set(times, series) {
    this.times = times;
    this.data = values(series, times.length);
    this.draw();
  }

  // index returns the current index of the chosen time, as points move.
  index() {
    const i = this.at === null ? -1 : this.times.findIndex((time) => time >= this.at);
    return i < 0 ? null : i;
  }

  point(i) {
    this.at = i === null ? null : this.times[i];
    this.draw();
  }

  indexAt(x) {
    if (!this.times.length) return null;
    const time = this.from + ((x - this.left) / (this.right - this.left)) * (this.to - this.from);
    let best = 0;
    this.times.forEach((t, i) => { if (Math.abs(t - time) < Math.abs(this.times[best] - time)) best = i; });
    return best;
  }

  draw() {
    const width = this.element.clientWidth, height = this.element.clientHeight;
    if (!width || !height) return;
    const { stacked, classes, format, bound, bytes, least, peaks, describe, clock } = this.options;
    const [a, b] = this.data, limit = bound ? bound() : 0;
    const highest = Math.max(limit, ...a.map((n, i) => (stacked ? n + b[i] : Math.max(n, b[i]))), 0);
    const top = bytes ? niceBytes(Math.max(highest, 1)) : niceTop(highest, least ?? 4);
    this.left = 52; this.right = width - 4;
    const floor = height - 20, ceiling = 8;
    this.to = this.times.at(-1) ?? 0;
    this.from = Math.min(this.times[0] ?? 0, this.to - 5 * 60e3);
    const x = (time) => this.left + ((time - this.from) / (this.to - this.from)) * (this.right - this.left);
    const y = (n) => floor - (n / top) * (floor - ceiling);
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });

    for (const part of height > 150 ? [0, 0.25, 0.5, 0.75, 1] : [0, 0.5, 1]) {
      root.append(
        svg("line", { class: part ? "grid" : "axis", x1: this.left, x2: this.right, y1: y(top * part), y2: y(top * part) }),
        svg("text", { x: this.left - 8, y: y(top * part) + 4, "text-anchor": "end" }, format(top * part)));
    }
    const minutes = [1, 2, 5, 10, 15, 20, 30].find((n) => (this.to - this.from) / (n * 60e3) <= Math.max(2, width / 90)) ?? 30;
    for (let time = Math.ceil(this.from / (minutes * 60e3)) * minutes * 60e3; time <= this.to && this.times.length; time += minutes * 60e3) {
      if (x(time) < this.left + 14 || x(time) > this.right - 14) continue;
      root.append(svg("text", { x: x(time), y: height - 3, "text-anchor": "middle" }, clock(time)));
    }
    if (this.times.length > 1) {
      const every = Math.ceil((1.6 * this.times.length) / (this.right - this.left)), times = thin(this.times, every);
      const line = (list) => thin(list, every, peaks ? peak : average).map((n, i) => [x(times[i]), y(n)]);
      const upper = line(stacked ? a.map((n, i) => n + b[i]) : b), lower = line(a);
      const area = (outer, inner) => path(outer) + path([...inner].reverse()).replace("M", "L") + "Z";
      const ground = times.map((time) => [x(time), floor]);
      if (stacked) root.append(svg("path", { class: "area-denied", d: area(upper, lower) }));
      root.append(svg("path", { class: "area-admitted", d: area(lower, ground) }));
      // the first line is on top: it hides the second one where that adds nothing
      if (classes[1]) root.append(svg("path", { class: "line " + classes[1], d: path(upper) }));
      root.append(svg("path", { class: "line " + classes[0], d: path(lower) }));
    }
    if (limit) root.append(svg("line", { class: "bound", x1: this.left, x2: this.right, y1: y(limit), y2: y(limit) }));
    const i = this.index();
    if (i !== null) {
      const at = x(this.times[i]);
      root.append(svg("line", { class: "cursor", x1: at, x2: at, y1: ceiling, y2: floor }));
      root.append(svg("circle", { class: "dot", cx: at, cy: y(a[i]), r: 3.2 }));
      if (classes[1]) root.append(svg("circle", { class: "dot", cx: at, cy: y(stacked ? a[i] + b[i] : b[i]), r: 3.2 }));
    }
    this.output.textContent = i === null ? "" : describe(this.times[i], a[i], b[i]);
    this.element.replaceChildren(root);
  }
}

// spark draws two series stacked, without axes.
export function spark(series, points, shadow) {
  const width = 114, height = 24, every = Math.ceil(points / (width / 2));
  const [a, b] = values(series, points).map((list) => thin(list, every));
  points = a.length;
  const top = Math.max(...a.map((n, i) => n + b[i]), 1e-9);
  const x = (i) => (points > 1 ? (i / (points - 1)) * width : width), y = (n) => height - 1.5 - (n / top) * (height - 4);
  const lower = a.map((n, i) => [x(i), y(n)]), upper = a.map((n, i) => [x(i), y(n + b[i])]);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const floor = height - 1.5;
  if (points > 1) {
    root.append(svg("path", { class: "area-admitted", d: path(lower) + `L${width} ${floor}L0 ${floor}Z` }));
    if (b.some((n) => n > 0)) root.append(svg("path", { class: "line " + (shadow ? "line-shadow" : "line-denied"), d: path(upper) }));
    root.append(svg("path", { class: "line", d: path(lower) }));
  }
  return root;
}
