// SPDX-License-Identifier: Apache-2.0
// The data block as typed arrays, number texts, and small helpers for the document.
"use strict";
const errors = [];
addEventListener("error", (event) => errors.push(String(event.message)));
const data = JSON.parse(document.getElementById("data").textContent);

const kTypes = {f64: Float64Array, f32: Float32Array, u32: Uint32Array, u16: Uint16Array, u8: Uint8Array};
// A column is {type, base64}: little-endian values.
function column(c) {
  if (!c) return null;
  const text = atob(c.base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new kTypes[c.type](bytes.buffer);
}
function columns(object) {
  const out = {};
  for (const name of Object.keys(object)) out[name] = column(object[name]);
  return out;
}
const kPhases = ["queue", "prefill", "transfer", "first_decode_wait", "decode"];
const kPhaseNames = {queue: "Queue", prefill: "Prefill", transfer: "KV transfer",
  first_decode_wait: "Wait for decode", decode: "Decode"};
const kStatus = ["completed", "rejected", "failed", "canceled"];
const run = data.run;
const req = run ? columns(run.requests.columns) : {};
const count = run ? run.requests.rows : 0;
const handoff = !!req.held;
const shownPhases = handoff ? kPhases : ["queue", "prefill", "decode"];

const $ = (id) => document.getElementById(id);
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "onclick") node.addEventListener("click", value);
    else if (value !== null && value !== undefined) node.setAttribute(key, value);
  }
  for (const child of children.flat()) node.append(child);
  return node;
}
function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

const grouped = new Intl.NumberFormat("en-US", {maximumFractionDigits: 0});
function num(value, digits = 2) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (Number.isInteger(value) || Math.abs(value) >= 1e5) return grouped.format(value);
  return value.toLocaleString("en-US", {minimumFractionDigits: digits, maximumFractionDigits: digits});
}
// Two decimals for a column of a table.
function fixed(value) { return value === 0 || !Number.isFinite(value) ? num(value) : value.toLocaleString("en-US", {minimumFractionDigits: 2, maximumFractionDigits: 2}); }
// Milliseconds in the unit that suits the size.
function time(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
  const size = Math.abs(ms);
  if (size < 1 && size > 0) return num(ms * 1000, 1) + " µs";
  if (size < 1000) return num(ms, 1) + " ms";
  if (size < 120000) return num(ms / 1000, 2) + " s";
  if (size < 7200000) return num(ms / 60000, 1) + " min";
  return num(ms / 3600000, 1) + " h";
}
const percent = (ratio) => num(100 * ratio, 1) + " %";

// ---- latencies and parts of the requests that are on the page ----
const ttftOf = (i) => Math.max(0, req.first[i] - req.arrival[i]);
const e2eOf = (i) => Math.max(0, req.last[i] - req.arrival[i]);
const tpotOf = (i) => Math.max(0, req.last[i] - req.first[i]) / (req.output[i] - 1);
const endOf = (i) => (Number.isNaN(req.last[i]) ? req.terminal[i] : req.last[i]);
const kMetrics = {
  ttft: {name: "Time to first token", of: ttftOf, least: 1},
  tpot: {name: "Time per output token", of: tpotOf, least: 2},
  e2e: {name: "End to end", of: e2eOf, least: 1},
};
function samples(metric) {
  const out = new Float64Array(count);
  let n = 0;
  for (let i = 0; i < count; i++) {
    if (req.status[i] === 0 && req.output[i] >= kMetrics[metric].least) out[n++] = kMetrics[metric].of(i);
  }
  return out.subarray(0, n).sort();
}
// Phases of a request as [phase, from, to], as the program reports them.
function phasesOf(i) {
  const spans = [];
  let from = req.arrival[i];
  let phase = 0;
  const then = (to, next) => {
    if (!Number.isNaN(to)) {
      spans.push([phase, from, to]);
      from = to;
      phase = next;
    }
  };
  then(req.admit[i], 1);
  if (handoff && !Number.isNaN(req.held[i])) {
    then(req.held[i], 3);
    then(req.transfer_start[i], 2);
    then(req.transfer_end[i], 3);
    then(req.decode_admit[i], 4);
  } else if (req.output[i] > 0) {
    then(req.first[i], 4);
  }
  spans.push([phase, from, Math.max(from, endOf(i))]);
  return spans;
}
// Value of the last binary digit of a number.
const bits = new DataView(new ArrayBuffer(8));
function lastDigit(value) {
  bits.setFloat64(0, value);
  bits.setBigUint64(0, bits.getBigUint64(0) + 1n);
  return bits.getFloat64(0) - value;
}
function toEven(value) {
  const low = Math.floor(value);
  const part = value - low;
  return part < 0.5 || (part === 0.5 && low % 2 === 0) ? low : low + 1;
}
// The five parts of TTFT or of the end-to-end time. They add up exactly, in any order: every part
// is a multiple of the last binary digit of the total.
function partsOf(i, metric) {
  const total = kMetrics[metric].of(i);
  const unit = lastDigit(total);
  const parts = [0, 0, 0, 0, 0];
  const spans = phasesOf(i);
  let before = 0;
  spans.forEach(([phase, , to], k) => {
    const offset = k === spans.length - 1 ? total
      : Math.min(total, Math.max(before, toEven((to - req.arrival[i]) / unit) * unit));
    parts[phase] += offset - before;
    before = offset;
  });
  return {total, parts};
}
const requestName = (i) => "Request " + (req.id[i] + 1);
const workerName = (pool, scheduler, ranks) => pool + "worker " + Math.floor(scheduler / ranks) +
  (ranks > 1 ? " rank " + (scheduler % ranks) : "");
