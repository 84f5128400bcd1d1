// SPDX-License-Identifier: Apache-2.0
// Puts the page together. The root element tells tests when everything is drawn, and what failed.
"use strict";
function guarded(show) {
  try { show(); } catch (error) { errors.push(show.name + ": " + error.message); console.error(error); }
}
$("title").textContent = data.title;
document.title = data.title;
$("subtitle").textContent = data.subtitle;
guarded(showSearch);
if (run) {
  guarded(showSummary);
  guarded(showLatency);
  choice("where-metric", {ttft: "Time to first token", e2e: "End to end"}, "ttft", (metric) => { whereMetric = metric; showWhere(); });
  legend("where-legend", (phase) => el("span", {class: "key p-" + phase, "aria-hidden": "true"}));
  guarded(showWhere);
  guarded(showTime);
  guarded(showTimeline);
} else {
  for (const section of document.querySelectorAll("[data-run]")) section.hidden = true;
}
for (const section of document.querySelectorAll("section:not([hidden])")) {
  $("nav").append(el("a", {href: "#" + section.id}, section.querySelector("h2").textContent));
}
watchCharts();
requestAnimationFrame(() => setTimeout(() => {
  const root = document.documentElement;
  root.dataset.ready = String(Math.round(performance.now()));
  root.dataset.errors = errors.join("\n");
}));
