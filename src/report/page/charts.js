// SPDX-License-Identifier: Apache-2.0
// Charts with uPlot. A chart is a function that draws into its box; boxes that change their width
// and changes between light and dark draw it again.
"use strict";
const charts = new Map();
// `build(width, theme)` returns {options, series} for uPlot, or a text when there is nothing to draw.
function chart(id, build) {
  charts.set(id, {build, width: 0, plot: null});
  draw(id, true);
}
function theme() {
  return {text: css("--soft"), grid: css("--grid"), ground: css("--ground"), accent: css("--accent"),
    lines: ["--prefill", "--first_decode_wait", "--decode", "--transfer", "--queue", "--accent"].map(css)};
}
const kDashes = [[], [6, 3], [2, 3], [10, 3, 2, 3], [4, 2], [12, 4]];
function draw(id, force) {
  const entry = charts.get(id);
  const box = $(id);
  const width = Math.floor(box.clientWidth);
  if (width < 50 || (!force && width === entry.width)) return;
  entry.width = width;
  if (entry.plot) entry.plot.destroy();
  box.textContent = "";
  const built = entry.build(width, theme());
  if (typeof built === "string") {
    entry.plot = null;
    box.append(el("p", {class: "empty"}, built));
    return;
  }
  const dashes = ["solid", "dashed", "dotted", "double", "dashed", "dotted"];
  const legend = {markers: {width: 2, dash: (u, k) => dashes[(k - 1) % dashes.length]}};
  const options = {width, height: 250, legend, ...built.options};
  entry.plot = new uPlot(options, built.series, box);
  const canvas = box.querySelector("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", built.label || "");
}
function watchCharts() {
  let pending = false;
  const all = (force) => { for (const id of charts.keys()) draw(id, force); };
  new ResizeObserver(() => {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => { pending = false; all(false); });
  }).observe($("main"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => all(true));
}
function axis(t, label, values, size) {
  return {stroke: t.text, grid: {stroke: t.grid, width: 1}, ticks: {stroke: t.grid, width: 1}, label, labelSize: 20,
    font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", size: size || 44,
    values: values && ((u, splits) => splits.map((v) => (v === null ? "" : values(v))))};
}
const tick = (v) => (v === null ? "" : Math.abs(v) >= 1e6 ? num(v / 1e6, 1) + " M"
  : Math.abs(v) >= 1e4 ? num(v / 1e3, v % 1000 ? 1 : 0) + " k" : String(+v.toPrecision(6)));
const wholeSteps = Array.from({length: 36}, (_, k) => [1, 2, 5][k % 3] * 10 ** Math.floor(k / 3));
// Milliseconds on an axis; short and in one unit for the whole axis.
function msAxis(t, label, largest) {
  const [unit, size] = largest >= 7200000 ? ["h", 3600000] : largest >= 120000 ? ["min", 60000] : largest >= 10000 ? ["s", 1000] : ["ms", 1];
  const steps = [];
  for (let power = -6; power < 9; power++) for (const m of [1, 2, 5]) steps.push(m * 10 ** power * size);
  return {...axis(t, label + " (" + unit + ")", (v) => tick(v / size), 46), incrs: steps};
}
function percentile(sorted, q) {
  return sorted.length ? sorted[Math.floor((sorted.length - 1) * q + 0.5)] : NaN;
}

// ---- latency ----
let latencyMetric = "ttft";
function latencySamples() {
  const values = samples(latencyMetric);
  const log = $("latency-log").checked && values.length > 0 && values[values.length - 1] > 0;
  const firstPositive = values.findIndex((v) => v > 0);
  return {values, log, drawn: log ? values.subarray(firstPositive) : values};
}
function cdfChart(width, t) {
  const {values, log, drawn} = latencySamples();
  if (!values.length) return "No request has this latency.";
  const n = Math.min(drawn.length, 2000);
  const x = [], y = [];
  for (let k = 0; k < n; k++) {
    const at = n === 1 ? 0 : Math.round((k * (drawn.length - 1)) / (n - 1));
    if (x.length && x[x.length - 1] === drawn[at]) y[y.length - 1] = (at + 1 + values.length - drawn.length) / values.length * 100;
    else { x.push(drawn[at]); y.push((at + 1 + values.length - drawn.length) / values.length * 100); }
  }
  const largest = values[values.length - 1];
  return {label: "Cumulative distribution of " + kMetrics[latencyMetric].name, series: [x, y], options: {
    scales: {x: {time: false, distr: log ? 3 : 1}, y: {range: [0, 100]}},
    axes: [msAxis(t, kMetrics[latencyMetric].name, log ? 0 : largest), axis(t, "% of requests")],
    series: [{label: kMetrics[latencyMetric].name, value: (u, v) => time(v)},
      {label: "share", stroke: t.lines[0], width: 2, value: (u, v) => (v === null ? "" : num(v, 2) + " %"),
        paths: uPlot.paths.stepped({align: 1}), points: {show: x.length < 3}}]}};
}
function histogramChart(width, t) {
  const {values, log, drawn} = latencySamples();
  if (!drawn.length) return "No request has this latency.";
  const low = drawn[0], high = drawn[drawn.length - 1];
  const bins = high > low ? Math.max(10, Math.min(60, Math.floor(width / 14))) : 1;
  const place = log ? Math.log : (v) => v;
  const back = log ? Math.exp : (v) => v;
  const from = place(low), step = bins > 1 ? (place(high) - from) / bins : Math.max(1e-9, Math.abs(from) * 0.1);
  const counts = new Array(bins).fill(0);
  for (const v of drawn) counts[Math.min(bins - 1, Math.max(0, Math.floor((place(v) - from) / step)))]++;
  const x = counts.map((c, k) => back(from + (k + 0.5) * step));
  return {label: "Histogram of " + kMetrics[latencyMetric].name, series: [x, counts], options: {
    scales: {x: {time: false, distr: log ? 3 : 1,
      range: () => [back(from), back(from + bins * step)]}, y: {range: (u, lowest, highest) => [0, Math.max(1, highest * 1.05)]}},
    axes: [msAxis(t, kMetrics[latencyMetric].name, log ? 0 : high), {...axis(t, "requests", tick, 52), incrs: wholeSteps}],
    series: [{label: "around", value: (u, v) => time(v)},
      {label: "requests", stroke: t.lines[0], fill: t.lines[0] + "99", width: 1, points: {show: false},
        value: (u, v) => num(v), paths: log ? uPlot.paths.stepped({align: 0}) : uPlot.paths.bars({size: [0.92, 100]})}]}};
}
function inputChart(width, t) {
  const rows = [];
  const seen = new Set();
  let longest = 0, slowest = 0;
  const ok = (i) => req.status[i] === 0 && req.output[i] > 0;
  for (let i = 0; i < count; i++) {
    if (ok(i)) { longest = Math.max(longest, req.input[i]); slowest = Math.max(slowest, ttftOf(i)); }
  }
  const byBucket = Array.from({length: 24}, () => []);
  for (let i = 0; i < count; i++) {
    if (!ok(i)) continue;
    const ttft = ttftOf(i);
    byBucket[Math.min(23, Math.floor(24 * req.input[i] / (longest || 1)))].push(ttft);
    // One point a cell of two pixels.
    const cell = Math.round(req.input[i] / (longest || 1) * width / 2) * 4096 + Math.round(ttft / (slowest || 1) * 110);
    if (!seen.has(cell)) { seen.add(cell); rows.push([req.input[i], ttft, null]); }
  }
  if (!rows.length) return "No request has a first token.";
  const medians = byBucket.filter((bucket) => bucket.length);
  if (medians.length > 1) {
    byBucket.forEach((bucket, k) => {
      if (bucket.length) rows.push([(k + 0.5) / 24 * longest, null, percentile(Float64Array.from(bucket).sort(), 0.5)]);
    });
  }
  rows.sort((a, b) => a[0] - b[0]);
  const lowest = rows[0][0];
  return {label: "Time to first token against input length", series: [0, 1, 2].map((k) => rows.map((row) => row[k])), options: {
    scales: {x: {time: false, range: lowest === longest ? [longest - 1, longest + 1] : undefined},
      y: {range: (u, low, high) => [0, Math.max(high, 1e-6) * 1.05]}},
    axes: [{...axis(t, "input tokens", tick), incrs: wholeSteps}, msAxis(t, "TTFT", slowest)],
    series: [{label: "input tokens", value: (u, v) => num(v, 0)},
      {label: "a request", stroke: t.lines[0], paths: () => null,
        points: {show: true, size: 4, fill: t.lines[0] + "88", width: 0}, value: (u, v) => time(v)},
      {label: "median of nearby lengths", stroke: t.lines[1], width: 2, dash: [6, 3], spanGaps: true,
        points: {show: true, size: 5, fill: t.ground}, value: (u, v) => time(v)}]}};
}
function latencyText() {
  const values = samples(latencyMetric);
  const text = values.length ? `${grouped.format(values.length)} requests: half are at or below ` +
    `${time(percentile(values, 0.5))}, 90 % at or below ${time(percentile(values, 0.9))}, 99 % at or below ` +
    `${time(percentile(values, 0.99))}.` : "";
  $("t-cdf").textContent = text;
  $("t-histogram").textContent = values.length ? `From ${time(values[0])} to ${time(values[values.length - 1])}.` : "";
}
function choice(id, names, chosen, onchange) {
  const box = $(id);
  for (const [key, label] of Object.entries(names)) {
    box.append(el("button", {type: "button", "aria-pressed": String(key === chosen), "data-key": key, onclick: () => {
      for (const button of box.children) button.setAttribute("aria-pressed", String(button.dataset.key === key));
      onchange(key);
    }}, label));
  }
}
function showLatency() {
  const redraw = () => { latencyText(); draw("c-cdf", true); draw("c-histogram", true); };
  choice("latency-metric", {ttft: "Time to first token", tpot: "Time per output token", e2e: "End to end"}, "ttft",
    (key) => { latencyMetric = key; redraw(); });
  $("latency-log").addEventListener("change", redraw);
  chart("c-cdf", cdfChart);
  chart("c-histogram", histogramChart);
  chart("c-input", inputChart);
  latencyText();
}

// ---- over time ----
// Lines of all ranks, or their mean, least and largest where there are too many to tell apart.
const kLinesMax = 6;
function manyLines(lines) {
  if (lines.length <= kLinesMax) return lines;
  const length = lines[0].values.length;
  const mean = new Array(length), least = new Array(length), most = new Array(length);
  for (let k = 0; k < length; k++) {
    let sum = 0, n = 0, low = Infinity, high = -Infinity;
    for (const line of lines) {
      const v = line.values[k];
      if (v === null) continue;
      sum += v; n++; low = Math.min(low, v); high = Math.max(high, v);
    }
    [mean[k], least[k], most[k]] = n ? [sum / n, low, high] : [null, null, null];
  }
  return [{name: "mean of " + lines.length, values: mean}, {name: "highest", values: most}, {name: "lowest", values: least}];
}
// Means of neighbouring samples, so that lines do not become a solid area.
function smooth(times, lines, most) {
  const group = Math.ceil(times.length / most);
  if (group < 2) return [times, lines];
  const mean = (values) => {
    const out = [];
    for (let k = 0; k < values.length; k += group) {
      const part = values.slice(k, k + group).filter((v) => v !== null);
      out.push(part.length ? part.reduce((a, b) => a + b, 0) / part.length : null);
    }
    return out;
  };
  return [mean(times), lines.map((line) => ({...line, values: mean(line.values)}))];
}
function timeChart(allTimes, allLines, label, format, top) {
  return (width, t) => {
    if (!allLines.length || allTimes.length < 2) return "There is nothing to show.";
    const [times, lines] = smooth(allTimes, allLines, Math.max(60, width / 4));
    const shown = manyLines(lines);
    const largest = times[times.length - 1];
    return {label, series: [times, ...shown.map((line) => line.values)], options: {
      cursor: {sync: {key: "time"}},
      scales: {x: {time: false}, y: {range: (u, low, high) => [0, Math.min(top || Infinity, Math.max(top ? 5 : 1, high * 1.1))]}},
      axes: [msAxis(t, "time", largest), axis(t, undefined, format || tick, 52)],
      series: [{label: "at", value: (u, v) => time(v)},
        ...shown.map((line, k) => ({label: line.name, stroke: t.lines[k % t.lines.length], width: 1.6,
          dash: kDashes[k % kDashes.length], points: {show: false}, spanGaps: true,
          value: (u, v) => (v === null || v === undefined ? "" : format ? format(v) : num(v, 1))}))]}};
  };
}
function showTime() {
  const telemetry = run.telemetry;
  const times = telemetry ? Array.from(column(telemetry.time)) : [];
  const ranks = telemetry ? telemetry.ranks : [];
  const gauges = telemetry ? columns(telemetry.gauges) : {};
  const lines = (value) => ranks.map((rank, r) => ({name: rank.name,
    values: times.map((at, k) => value(r * times.length + k, rank))}));
  const waiting = lines((k) => gauges.waiting[k]);
  const running = lines((k) => gauges.running[k]);
  const kv = lines((k, rank) => (rank.total_blocks ? 100 * gauges.active[k] / rank.total_blocks : 0));
  const peak = (set) => Math.max(0, ...set.map((line) => line.values.reduce((a, b) => Math.max(a, b), 0)));
  const step = times.length > 1 ? times[1] - times[0] : 0;
  $("time-hint").textContent = times.length < 2
    ? "The run ended before a second sample was taken."
    : `${times.length} samples, ${time(step)} apart` +
      (ranks.length > kLinesMax ? `; ${ranks.length} ranks, shown as their mean, highest and lowest.` : ".") +
      " Lines show means of neighbouring samples where there are many. Drag across a chart to zoom, double-click to go back.";
  $("t-waiting").textContent = times.length ? `At most ${num(peak(waiting))} on one rank.` : "";
  $("t-running").textContent = times.length ? `At most ${num(peak(running))} on one rank.` : "";
  $("t-kv").textContent = times.length
    ? `Blocks that running requests hold; at most ${num(peak(kv), 1)} %. Cached blocks can be reclaimed and do not count.` : "";
  chart("c-waiting", timeChart(times, waiting, "Waiting requests over time"));
  chart("c-running", timeChart(times, running, "Running requests over time"));
  chart("c-kv", timeChart(times, kv, "KV cache in use over time", (v) => num(v, 0) + " %", 100));
  showHits();
}
// Reuse by the time of the first admission; a line for each prefill (or only) rank.
function showHits() {
  const buckets = 60;
  const lines = new Map();
  let hit = 0, all = 0;
  for (let i = 0; i < count; i++) {
    if (Number.isNaN(req.admit[i]) || req.status[i] !== 0) continue;
    const rank = handoff ? req.prefill_rank[i] : req.rank[i];
    if (!lines.has(rank)) lines.set(rank, {hit: new Float64Array(buckets), all: new Float64Array(buckets)});
    const at = Math.min(buckets - 1, Math.floor(buckets * req.admit[i] / (run.end_ms || 1)));
    lines.get(rank).hit[at] += req.reused[i];
    lines.get(rank).all[at] += req.input[i];
    hit += req.reused[i];
    all += req.input[i];
  }
  const times = Array.from({length: buckets}, (_, k) => (k + 0.5) / buckets * run.end_ms);
  const pool = handoff ? "prefill " : "";
  const set = [...lines.keys()].sort((a, b) => a - b).map((rank) => ({name: workerName(pool, rank, handoff ? run.prefill_ranks : run.ranks),
    values: Array.from(lines.get(rank).hit, (h, k) => (lines.get(rank).all[k] ? 100 * h / lines.get(rank).all[k] : null))}));
  $("t-hits").textContent = all ? `${percent(hit / all)} of all prompt tokens, by the time of the first admission.` : "";
  chart("c-hits", timeChart(run.end_ms > 0 ? times : [], set, "Prompt tokens found in the cache over time", (v) => num(v, 0) + " %", 100));
}
