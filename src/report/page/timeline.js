// SPDX-License-Identifier: Apache-2.0
// The timeline: requests in lanes below worker passes, on one time axis that can be zoomed and
// moved with buttons, keys, wheel, drag and pinch. Phases differ in shape as well as in colour.
"use strict";
const view = {from: 0, to: 1, lane: 0, height: 4, selected: -1};
const kPassRow = 16, kAxis = 20, kBox = 380;
let pass = null, passRows = [], lanes = 0, order = [];

const colors = {};
function readColors() {
  for (const phase of kPhases) colors[phase] = css("--" + phase);
  for (const name of ["text", "soft", "grid", "panel", "accent", "ground"]) colors[name] = css("--" + name);
}
// Height of a phase within its row: queueing is a thin line, decoding is lower than prefilling.
const kShape = {queue: [0.42, 0.16], prefill: [0, 1], transfer: [0.1, 0.8], first_decode_wait: [0.3, 0.4], decode: [0.2, 0.6]};
function pattern(context, phase) {
  if (phase !== "transfer" && phase !== "first_decode_wait") return colors[phase];
  const tile = el("canvas", {width: 6, height: 6});
  const c = tile.getContext("2d");
  c.strokeStyle = c.fillStyle = colors[phase];
  c.lineWidth = 2;
  c.beginPath();
  if (phase === "transfer") { c.moveTo(-1, 7); c.lineTo(7, -1); c.moveTo(-1, 1); c.lineTo(1, -1); c.moveTo(5, 7); c.lineTo(7, 5); c.stroke(); }
  else { c.fillRect(0, 0, 3, 6); }
  return context.createPattern(tile, "repeat");
}
function fillPhase(context, phase, style, x, y, width, height) {
  const [top, part] = kShape[phase];
  context.fillStyle = style;
  context.fillRect(x, y + top * height, width, Math.max(1, part * height));
}
function key(phase) {
  const node = el("canvas", {width: 68, height: 28, "aria-hidden": "true"});
  const context = node.getContext("2d");
  context.scale(2, 2);
  fillPhase(context, phase, pattern(context, phase), 0, 0, 34, 14);
  return node;
}
function prepare(canvas, width, height) {
  const scale = Math.min(2, devicePixelRatio || 1);
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.clearRect(0, 0, width, height);
  return context;
}
// Times on the axis: 1, 2 or 5 times a power of ten.
function drawAxis(context, width, height) {
  const span = view.to - view.from;
  const wish = span / Math.max(2, width / 110);
  const unitOf = wish > 1800000 ? 3600000 : wish > 30000 ? 60000 : 1;
  const power = 10 ** Math.floor(Math.log10(wish / unitOf)) * unitOf;
  const step = power * [1, 2, 5, 10].find((m) => m * power >= wish * 0.999999);
  const [unit, size] = unitOf === 3600000 ? [" h", unitOf] : unitOf === 60000 ? [" min", 60000] : step >= 100 ? [" s", 1000] : step >= 0.1 ? [" ms", 1] : [" µs", 0.001];
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "bottom";
  context.lineWidth = 1;
  for (let k = Math.ceil(view.from / step); k * step <= view.to; k++) {
    const x = (k * step - view.from) / span * width;
    context.strokeStyle = colors.grid;
    context.beginPath(); context.moveTo(x + 0.5, 0); context.lineTo(x + 0.5, height - kAxis + 4); context.stroke();
    context.fillStyle = colors.soft;
    context.textAlign = x < 20 ? "left" : x > width - 24 ? "right" : "center";
    context.fillText(+(k * step / size).toPrecision(9) + unit, x, height - 3);
  }
}
// "#rrggbb" as a pixel of image data.
function pixelOf(color) {
  const v = parseInt(color.slice(1), 16);
  return (0xff000000 | ((v & 0xff) << 16) | (v & 0xff00) | (v >> 16)) >>> 0;
}
// The phase that took most of a request's time.
function longestPhase(i) {
  if (handoff) {
    const times = [0, 0, 0, 0, 0];
    for (const [phase, from, to] of phasesOf(i)) times[phase] += to - from;
    return times.indexOf(Math.max(...times));
  }
  if (Number.isNaN(req.admit[i])) return 0;
  const prefilled = req.output[i] > 0 ? req.first[i] : req.terminal[i];
  const queue = req.admit[i] - req.arrival[i], prefill = prefilled - req.admit[i], decode = endOf(i) - prefilled;
  return decode >= prefill && decode >= queue ? 4 : prefill >= queue ? 1 : 0;
}
// Requests of a pixel or two become pixels at once: a rectangle for each would take seconds.
const kNarrow = 2;
function drawNarrow(context, canvas, width, room, last) {
  const perMs = width / (view.to - view.from), h = view.height, scale = canvas.width / width;
  const image = context.createImageData(canvas.width, Math.ceil(room * scale));
  const pixels = new Uint32Array(image.data.buffer);
  const ink = kPhases.map((phase) => pixelOf(colors[phase]));
  const inner = Math.max(1, h > 4 ? h - 1 : h);
  for (const i of order) {
    if (req.arrival[i] > view.to) break;
    const end = endOf(i);
    if (end < view.from || req.lane[i] < view.lane || req.lane[i] > last || (end - req.arrival[i]) * perMs >= kNarrow) continue;
    const phase = longestPhase(i), [top, part] = kShape[kPhases[phase]];
    const y = (req.lane[i] - view.lane) * h + top * inner;
    const from = Math.max(0, Math.floor((req.arrival[i] - view.from) * perMs * scale));
    const to = Math.min(image.width, Math.max(from + 1, Math.floor((end - view.from) * perMs * scale)));
    const low = Math.floor(y * scale), high = Math.min(image.height, Math.max(low + 1, Math.floor((y + part * inner) * scale)));
    for (let line = low; line < high; line++) pixels.fill(ink[phase], line * image.width + from, line * image.width + to);
  }
  context.putImageData(image, 0, 0);
}
function drawRequests() {
  const canvas = $("requests");
  const width = canvas.parentElement.clientWidth - 2;
  const context = prepare(canvas, width, kBox);
  const span = view.to - view.from, perMs = width / span, room = kBox - kAxis, h = view.height;
  const last = view.lane + room / h;
  drawNarrow(context, canvas, width, room, last);
  drawAxis(context, width, kBox);
  const styles = Object.fromEntries(kPhases.map((phase) => [phase, pattern(context, phase)]));
  const inner = Math.max(1, h > 4 ? h - 1 : h);
  for (const i of order) {
    const from = req.arrival[i], to = endOf(i);
    if (from > view.to) break;
    if (to < view.from || req.lane[i] < view.lane - 1 || req.lane[i] > last) continue;
    const y = (req.lane[i] - view.lane) * h, x0 = (from - view.from) * perMs, x1 = (to - view.from) * perMs;
    if (y < 0 || y > room - Math.min(h, 1)) continue;
    for (const [phase, a, b] of x1 - x0 >= kNarrow ? phasesOf(i) : []) {
      if (b < view.from || a > view.to || b === a) continue;
      const left = Math.max(-2, (a - view.from) * perMs), right = Math.min(width + 2, (b - view.from) * perMs);
      fillPhase(context, kPhases[phase], styles[kPhases[phase]], left, y, Math.max(0.6, right - left), inner);
    }
    if (req.status[i] !== 0) {  // a cross where it was turned away
      const x = (endOf(i) - view.from) * perMs, r = Math.max(2, Math.min(5, h / 2));
      context.strokeStyle = colors.first_decode_wait;
      context.lineWidth = 1.5;
      context.beginPath(); context.moveTo(x - r, y + h / 2 - r); context.lineTo(x + r, y + h / 2 + r);
      context.moveTo(x - r, y + h / 2 + r); context.lineTo(x + r, y + h / 2 - r); context.stroke();
    }
  }
  if (view.selected >= 0) {
    const i = view.selected, x = (req.arrival[i] - view.from) * perMs;
    context.strokeStyle = colors.accent;
    context.lineWidth = 2;
    context.strokeRect(x - 2, (req.lane[i] - view.lane) * h - 2, Math.max(4, (endOf(i) - req.arrival[i]) * perMs + 4), Math.max(6, h + 3));
  }
  canvas.setAttribute("aria-label", `Requests from ${time(view.from)} to ${time(view.to)} in ${lanes} lanes`);
}
function drawPasses() {
  const canvas = $("passes");
  const width = canvas.parentElement.clientWidth;
  const height = passRows.length * kPassRow + kAxis;
  const context = prepare(canvas, width, height);
  drawAxis(context, width, height);
  const span = view.to - view.from, perMs = width / span;
  passRows.forEach((rows, w) => {
    const y = w * kPassRow + 1;
    // Prefill and decode share a pixel where passes are dense: the taller one is kept.
    let column = -1, tallest = 0;
    let k = rows.from, end = rows.to;
    while (k < end) {  // first pass that ends in the view
      const middle = (k + end) >> 1;
      if (pass.start[middle] + pass.duration[middle] < view.from) k = middle + 1; else end = middle;
    }
    for (; k < rows.to && pass.start[k] <= view.to; k++) {
      const x = (pass.start[k] - view.from) * perMs, wide = pass.duration[k] * perMs;
      const prefill = pass.prefill[k] > 0;
      const at = Math.floor(x);
      if (wide < 1 && at === column && (prefill ? 2 : 1) <= tallest) continue;
      if (at !== column) { column = at; tallest = 0; }
      tallest = Math.max(tallest, prefill ? 2 : 1);
      // A merged bar is as strong as the worker was busy.
      context.globalAlpha = pass.duration[k] > 0 ? 0.25 + 0.75 * Math.min(1, pass.busy[k] / pass.duration[k]) : 1;
      fillPhase(context, prefill ? "prefill" : "decode", colors[prefill ? "prefill" : "decode"], x, y,
        Math.max(0.7, wide - (wide > 3 ? 1 : 0)), kPassRow - 3);
    }
    context.globalAlpha = 1;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "left";
    context.textBaseline = "middle";
    const name = run.passes.workers[w];
    context.fillStyle = colors.panel;
    context.globalAlpha = 0.8;
    context.fillRect(2, y, context.measureText(name).width + 6, kPassRow - 3);
    context.globalAlpha = 1;
    context.fillStyle = colors.text;
    context.fillText(name, 5, y + (kPassRow - 3) / 2 + 0.5);
  });
  canvas.setAttribute("aria-label", `Passes of ${passRows.length} workers from ${time(view.from)} to ${time(view.to)}`);
}
let drawing = false;
function redraw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => { drawing = false; drawPasses(); drawRequests(); });
}
function clampView() {
  const whole = Math.max(run.end_ms, 1e-3);
  const least = Math.max(1e-3, whole * 1e-9);
  let span = Math.min(Math.max(view.to - view.from, least), whole);
  view.from = Math.min(Math.max(view.from, 0), whole - span);
  view.to = view.from + span;
  const shown = (kBox - kAxis) / view.height;
  const most = Math.max(0, Math.ceil(lanes - shown - 1e-6));
  view.lane = Math.min(Math.max(0, view.lane), most);
  $("lane-label").hidden = most === 0;
  $("lane").max = most;
  $("lane").value = view.lane;
}
function zoom(factor, center = 0.5) {
  const at = view.from + (view.to - view.from) * center;
  const span = (view.to - view.from) * factor;
  view.from = at - span * center;
  view.to = view.from + span;
  clampView();
  redraw();
}
function move(part) {
  const by = (view.to - view.from) * part;
  view.from += by;
  view.to += by;
  clampView();
  redraw();
}
function rowHeight(factor) {
  view.height = Math.min(24, Math.max((kBox - kAxis) / Math.max(lanes, 1), view.height * factor));
  view.height = Math.min(24, view.height);
  clampView();
  redraw();
}
function whole() {
  view.from = 0;
  view.to = run.end_ms;
  view.lane = 0;
  view.height = Math.min(16, (kBox - kAxis) / Math.max(lanes, 1));
  clampView();
  redraw();
}
function partsTable(i) {
  const ttft = req.output[i] > 0 ? partsOf(i, "ttft") : null;
  const e2e = req.output[i] > 0 ? partsOf(i, "e2e") : null;
  if (!ttft) return el("p", {}, "It has no token, so there are no latencies.");
  const exact = (v) => v + " ms";
  const table = el("table", {}, el("thead", {}, row(["", "Time to first token", "End to end"], "th")), el("tbody", {},
    shownPhases.map((phase) => {
      const k = kPhases.indexOf(phase);
      return el("tr", {}, el("td", {}, el("span", {class: "key p-" + phase, "aria-hidden": "true"}), " " + kPhaseNames[phase]),
        el("td", {}, exact(ttft.parts[k])), el("td", {}, exact(e2e.parts[k])));
    }), el("tr", {}, el("th", {scope: "row"}, "Sum"), el("th", {}, exact(ttft.parts.reduce((a, b) => a + b, 0))),
      el("th", {}, exact(e2e.parts.reduce((a, b) => a + b, 0))))));
  return el("div", {class: "scroll"}, table);
}
function select(i, show) {
  view.selected = i;
  if (show) {
    const length = Math.max(endOf(i) - req.arrival[i], run.end_ms * 1e-6);
    view.from = req.arrival[i] - length * 0.6;
    view.to = endOf(i) + length * 0.6;
    const shown = (kBox - kAxis) / view.height;
    if (req.lane[i] < view.lane || req.lane[i] >= view.lane + shown - 1) view.lane = Math.floor(req.lane[i] - shown / 2);
    clampView();
    $("timeline").scrollIntoView();
  }
  const facts = [kStatus[req.status[i]], `arrived at ${time(req.arrival[i])}`, `${num(req.input[i])} input tokens` +
    (req.reused[i] ? ` (${num(req.reused[i])} cached)` : ""), `${num(req.output[i])} output tokens`];
  if (req.session && req.session[i] !== 0xffffffff) {
    facts.push("session " + run.sessions[req.session[i]] + (req.turn[i] !== 0xffffffff ? ", turn " + req.turn[i] : ""));
  }
  if (handoff && req.prefill_rank[i] !== 0xffffffff) facts.push(workerName("prefill ", req.prefill_rank[i], run.prefill_ranks));
  if (req.rank[i] !== 0xffffffff) facts.push(workerName(handoff ? "decode " : "", req.rank[i], run.ranks));
  $("selected").replaceChildren(el("h3", {}, requestName(i)), el("p", {}, facts.join("; ") + "."));
  const reason = run.reasons[i];
  if (reason) $("selected").append(el("p", {class: "notice"}, reason));
  $("selected").append(partsTable(i));
  redraw();
}
function step(by) {
  if (!order.length) return;
  const at = order.indexOf(view.selected);
  const next = at < 0 ? Math.max(0, order.findIndex((i) => endOf(i) >= view.from)) : Math.min(order.length - 1, Math.max(0, at + by));
  const i = order[next];
  view.selected = i;
  const outside = req.arrival[i] > view.to || endOf(i) < view.from;
  select(i, false);
  if (outside) { const span = view.to - view.from; view.from = req.arrival[i] - span * 0.1; view.to = view.from + span; }
  const shown = (kBox - kAxis) / view.height;
  if (req.lane[i] < view.lane || req.lane[i] >= view.lane + shown - 1) view.lane = Math.floor(req.lane[i] - shown / 2);
  clampView();
  redraw();
}
function pick(event) {
  const box = $("requests").getBoundingClientRect();
  const at = view.from + (event.clientX - box.left) / box.width * (view.to - view.from);
  const lane = view.lane + (event.clientY - box.top) / view.height;
  const slack = 4 * (view.to - view.from) / box.width, rows = Math.max(1, 5 / view.height);
  let best = -1, least = Infinity;
  for (const i of order) {
    if (req.arrival[i] > at + slack) break;
    if (endOf(i) < at - slack || Math.abs(req.lane[i] + 0.5 - lane) > rows) continue;
    const far = Math.abs(req.lane[i] + 0.5 - lane);
    if (far < least) { least = far; best = i; }
  }
  if (best >= 0) select(best, false);
}
function pickPass(event) {
  const box = $("passes").getBoundingClientRect();
  const w = Math.floor((event.clientY - box.top) / kPassRow);
  if (!passRows[w]) return;
  const at = view.from + (event.clientX - box.left) / box.width * (view.to - view.from);
  let k = passRows[w].from;
  while (k + 1 < passRows[w].to && pass.start[k + 1] <= at) k++;
  if (k >= passRows[w].to) return;
  $("selected").replaceChildren(el("h3", {}, (pass.passes[k] > 1 ? num(pass.passes[k]) + " passes of " : "A pass of ") + run.passes.workers[w]),
    el("p", {}, `From ${time(pass.start[k])}, ${time(pass.duration[k])} long` +
      (pass.passes[k] > 1 ? `, busy for ${time(pass.busy[k])}` : "") +
      `; ${num(pass.prefill[k])} prompt tokens computed; tokens for ${num(pass.requests[k])} requests` +
      (pass.passes[k] > 1 ? ` (added up; ${num(pass.requests[k] / pass.passes[k], 1)} a pass).` : ".")));
}
function listen(canvas, onclick) {
  const pointers = new Map();
  let moved = false, pinch = 0;
  canvas.addEventListener("pointerdown", (event) => { pointers.set(event.pointerId, event.clientX); moved = false; pinch = 0; });
  canvas.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) return;
    const before = pointers.get(event.pointerId);
    pointers.set(event.pointerId, event.clientX);
    if (pointers.size === 2) {
      const [a, b] = [...pointers.values()];
      const apart = Math.max(20, Math.abs(a - b));
      const box = canvas.getBoundingClientRect();
      if (pinch) zoom(pinch / apart, ((a + b) / 2 - box.left) / box.width);
      pinch = apart;
      moved = true;
    } else if (Math.abs(event.clientX - before) > 0) {
      if (!moved && Math.abs(event.clientX - before) < 3 && event.pointerType === "touch") return;
      moved = true;
      canvas.setPointerCapture(event.pointerId);
      move((before - event.clientX) / canvas.clientWidth);
    }
  });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, (event) => {
      if (name === "pointerup" && !moved && pointers.has(event.pointerId)) onclick(event);
      pointers.delete(event.pointerId);
      pinch = 0;
    });
  }
  // The page scrolls over a canvas that nobody has chosen.
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    if (event.shiftKey) { view.lane += Math.sign(event.deltaY || event.deltaX) * 3 / view.height; clampView(); redraw(); return; }
    const box = canvas.getBoundingClientRect();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width);
  }, {passive: false});
  canvas.addEventListener("keydown", (event) => {
    const page = (kBox - kAxis) / view.height;
    const action = {ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6),
      Home: whole, 0: whole, n: () => step(1), p: () => step(-1),
      ArrowUp: () => { view.lane -= Math.ceil(page / 8); clampView(); redraw(); },
      ArrowDown: () => { view.lane += Math.ceil(page / 8); clampView(); redraw(); }}[event.key];
    if (action) { event.preventDefault(); action(); }
  });
}
function showTimeline() {
  readColors();
  pass = columns(run.passes.columns);
  let from = 0;
  passRows = run.passes.workers.map((name, w) => {
    const start = from;
    while (from < pass.worker.length && pass.worker[from] === w) from++;
    return {from: start, to: from};
  });
  order = Array.from({length: count}, (_, i) => i);
  // Rows come by arrival, but for agentic graphs.
  if (order.some((i) => i > 0 && req.arrival[i] < req.arrival[i - 1])) order.sort((a, b) => req.arrival[a] - req.arrival[b] || a - b);
  for (let i = 0; i < count; i++) lanes = Math.max(lanes, req.lane[i] + 1);
  const actions = {in: () => zoom(0.5), out: () => zoom(2), all: whole, left: () => move(-0.3), right: () => move(0.3),
    taller: () => rowHeight(1.6), lower: () => rowHeight(1 / 1.6), previous: () => step(-1), next: () => step(1)};
  for (const button of $("timeline-controls").children) button.addEventListener("click", actions[button.dataset.do]);
  $("lane").addEventListener("input", (event) => { view.lane = Number(event.target.value); clampView(); redraw(); });
  listen($("requests"), pick);
  listen($("passes"), pickPass);
  const notes = ["Click a request or a pass to see its numbers. Drag to move, pinch or Ctrl and wheel to zoom; with the chart in focus: " +
    "arrow keys, + and −, Home, N and P for the next and previous request."];
  if (run.requests.step > 1) notes.push(`Every ${run.requests.step}th request is on this page; the summary counts all.`);
  if (run.passes.merged > 1) notes.push(`${grouped.format(run.passes.total)} passes: up to ${grouped.format(run.passes.merged)} neighbours are one bar; paler bars were partly idle.`);
  if (run.unfinished) notes.push(`${grouped.format(run.unfinished)} requests had not ended when the run did; they are not shown.`);
  $("timeline-hint").textContent = notes.join(" ");
  legend("timeline-legend", key);
  new ResizeObserver(redraw).observe($("main"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColors(); legend("timeline-legend", key); redraw(); });
  whole();
}
