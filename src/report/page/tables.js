// SPDX-License-Identifier: Apache-2.0
// Summary, tables, where the time went, and the front of a search.
"use strict";
function row(cells, tag = "td") { return el("tr", {}, cells.map((cell) => el(tag, tag === "th" ? {scope: "col"} : {}, cell))); }
function fill(id, head, rows) {
  $(id).replaceChildren(el("thead", {}, row(head, "th")), el("tbody", {}, rows.map((r) => (r instanceof Node ? r : row(r)))));
}
function showSummary() {
  const s = run.summary;
  const cards = [["Completed", num(s.completed_requests), "of " + num(s.num_requests) + " requests"],
    ["Duration", time(s.duration_ms), "simulated"],
    ["Requests", num(s.request_throughput_rps), "per second"],
    ["Output tokens", num(s.output_throughput_tok_s), "per second"],
    ["TTFT", time(s.mean_ttft_ms), "mean; p99 " + time(s.p99_ttft_ms)],
    ["Per output token", time(s.mean_tpot_ms), "mean; p99 " + time(s.p99_tpot_ms)],
    ["End to end", time(s.mean_e2e_latency_ms), "mean; p99 " + time(s.p99_e2e_latency_ms)],
    ["Prompt tokens cached", percent(s.first_admission_prefix_cache_reused_ratio), "at first admission"]];
  if (s.goodput_completed_requests !== undefined) {
    cards.push(["Within the bounds", num(s.goodput_completed_requests), num(s.goodput_request_throughput_rps) + " per second"]);
  }
  if (s.rejected_requests) cards.push(["Rejected", num(s.rejected_requests), "requests"]);
  $("cards").replaceChildren(...cards.map(([name, value, note]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value, " ", el("small", {}, note)))));
  const statistics = ["mean", "min", "median", "p75", "p90", "p95", "p99", "max", "std"];
  fill("latency-table", ["Latency (ms)", ...statistics], [["Time to first token", "ttft_ms"],
    ["Time to second token", "ttst_ms"], ["Time per output token", "tpot_ms"], ["Gap between tokens", "itl_ms"],
    ["End to end", "e2e_latency_ms"]].map(([name, key]) => [name, ...statistics.map((p) => fixed(s[p + "_" + key]))]));
  if (s.rejected_requests) {
    $("rejections").hidden = false;
    $("rejections").textContent = `${num(s.rejected_requests)} requests were rejected or failed. The first: ` +
      (run.first_rejection || "no reason is known") + ".";
  }
  fill("summary-table", ["Value", ""], Object.entries(s).map(([key, value]) =>
    [key, typeof value === "object" ? JSON.stringify(value) : typeof value === "number" ? num(value, 6) : String(value)]));
  $("configuration-json").textContent = JSON.stringify(run.configuration, null, 2);
}

function legend(id, make) {
  $(id).replaceChildren(...shownPhases.map((phase) => el("span", {}, make(phase), kPhaseNames[phase])));
}
let whereMetric = "ttft";
function bar(parts, widest) {
  const total = parts.reduce((a, b) => a + b, 0);
  const node = el("div", {class: "bar", "aria-hidden": "true"});
  node.style.width = (widest > 0 ? 100 * total / widest : 0) + "%";
  kPhases.forEach((phase, k) => {
    if (parts[k] > 0) {
      const piece = el("i", {class: "p-" + phase, title: kPhaseNames[phase] + ": " + time(parts[k])});
      piece.style.width = 100 * parts[k] / total + "%";
      node.append(piece);
    }
  });
  return node;
}
function showWhere() {
  const order = [];
  for (let i = 0; i < count; i++) if (req.status[i] === 0 && req.output[i] > 0) order.push(i);
  const of = kMetrics[whereMetric].of;
  const value = new Float64Array(count);
  for (const i of order) value[i] = of(i);
  order.sort((a, b) => value[a] - value[b]);
  const n = order.length;
  const groups = [["All requests", 0, n]];
  if (n >= 20) {
    for (let k = 0; k < 10; k++) groups.push([k === 0 ? "Fastest 10 %" : k === 9 ? "Slowest 10 %" : `${10 * k} to ${10 * k + 10} %`,
      Math.floor(n * k / 10), Math.floor(n * (k + 1) / 10)]);
  }
  if (n >= 200) groups.push(["Slowest 1 %", Math.floor(n * 0.99), n]);
  // Sums of stamps; only the parts of single requests must add up to the last digit.
  const addParts = (sums, i) => {
    const end = whereMetric === "ttft" ? req.first[i] : req.last[i];
    if (!handoff) {
      sums[0] += req.admit[i] - req.arrival[i];
      sums[1] += Math.min(req.first[i], end) - req.admit[i];
      sums[4] += end - req.first[i];
      return;
    }
    for (const [phase, from, to] of phasesOf(i)) sums[phase] += Math.min(to, end) - Math.min(from, end);
  };
  const means = groups.filter(([, from, to]) => to > from).map(([name, from, to]) => {
    const sums = [0, 0, 0, 0, 0];
    for (let k = from; k < to; k++) addParts(sums, order[k]);
    return [name, sums.map((sum) => sum / (to - from))];
  });
  const widest = Math.max(0, ...means.map(([, parts]) => parts.reduce((a, b) => a + b, 0)));
  const shown = shownPhases.map((phase) => kPhases.indexOf(phase));
  const [unit, size] = widest >= 10000 ? ["s", 1000] : ["ms", 1];
  const inUnit = (ms) => fixed(ms / size);
  fill("where-table", ["Mean of", "", `Total (${unit})`, ...shownPhases.map((phase) => kPhaseNames[phase])], means.map(([name, parts]) => {
    const cells = row([name, bar(parts, widest), inUnit(parts.reduce((a, b) => a + b, 0)), ...shown.map((p) => inUnit(parts[p]))]);
    cells.children[1].className = "wide";
    return cells;
  }));
  if (!means.length) $("where-table").replaceChildren(el("caption", {class: "empty"}, "No request has a token."));
  fill("slowest-table", ["Request", "Input", "Output", `Total (${unit})`, ...shownPhases.map((phase) => kPhaseNames[phase])],
    order.slice(-20).reverse().map((i) => {
      const {total, parts} = partsOf(i, whereMetric);
      return [el("button", {type: "button", class: "link", onclick: () => select(i, true)}, requestName(i)),
        num(req.input[i]), num(req.output[i]), inUnit(total), ...shown.map((p) => inUnit(parts[p]))];
    }));
}

// ---- search ----
let chosenPoint = -1;
function choosePoint(k) {
  chosenPoint = k;
  const point = data.search.points[k];
  $("pareto-document").replaceChildren(el("h3", {}, "Document of " + point.name),
    el("pre", {tabindex: "0"}, point.document));
  for (const [index, r] of [...$("pareto-table").tBodies[0].rows].entries()) {
    r.setAttribute("aria-current", String(Number(r.dataset.point) === k));
    r.style.fontWeight = Number(r.dataset.point) === k ? "600" : "";
  }
  draw("c-pareto", true);
}
function paretoChart(width, t) {
  const points = data.search.points.map((p, k) => ({...p, k})).filter((p) => Number.isFinite(p.x) && Number.isFinite(p.y));
  if (!points.length) return "The search has no point.";
  points.sort((a, b) => a.x - b.x || a.y - b.y);
  const x = points.map((p) => p.x);
  const pick = (wanted) => points.map((p) => (wanted(p) ? p.y : null));
  const clicked = (u) => {
    u.over.addEventListener("click", (event) => {
      const box = u.over.getBoundingClientRect();
      let best = -1, least = 30 * 30;
      for (const p of points) {
        const dx = u.valToPos(p.x, "x") - (event.clientX - box.left), dy = u.valToPos(p.y, "y") - (event.clientY - box.top);
        if (dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = p.k; }
      }
      if (best >= 0) choosePoint(best);
    });
  };
  const pad = (u, low, high) => { const d = (high - low) * 0.08 || Math.abs(high) * 0.1 || 1; return [low - d, high + d]; };
  return {label: "Front of the search", series: [x, pick((p) => !p.on_front), pick((p) => p.on_front), pick((p) => p.k === chosenPoint)], options: {
    height: 320, hooks: {ready: [clicked]}, cursor: {drag: {x: false, y: false}},
    scales: {x: {time: false, range: pad}, y: {range: pad}},
    axes: [axis(t, data.search.x_name, tick), axis(t, data.search.y_name, tick, 56)],
    series: [{label: data.search.x_name, value: (u, v) => num(v, 3)},
      {label: "other configurations", stroke: t.lines[4], paths: () => null, points: {show: true, size: 7, fill: t.ground}},
      {label: "front", stroke: t.lines[0], width: 2, spanGaps: true, points: {show: true, size: 10, fill: t.lines[0]}},
      {label: "chosen", stroke: t.lines[1], paths: () => null, points: {show: true, size: 18, width: 3, fill: "transparent"}}]}};
}
function showSearch() {
  const search = data.search;
  if (!search) return;
  $("search").hidden = false;
  const sorted = search.points.map((point, k) => ({...point, k})).sort((a, b) => b.on_front - a.on_front || a.x - b.x);
  fill("pareto-table", ["Configuration", search.x_name, search.y_name, "On the front"], sorted.map((point) => {
    const r = row([el("button", {type: "button", class: "link", onclick: () => choosePoint(point.k)}, point.name),
      num(point.x, 3), num(point.y, 3), point.on_front ? "yes" : "no"]);
    r.dataset.point = point.k;
    return r;
  }));
  $("t-pareto").textContent = `${search.points.length} configurations, ${search.points.filter((p) => p.on_front).length} on the front ` +
    `(large filled points; a ring marks the chosen one).`;
  chart("c-pareto", paretoChart);
  const first = search.points.findIndex((p) => p.on_front);
  if (first >= 0) choosePoint(first);
}
