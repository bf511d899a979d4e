// Draws what became of each candidate: a row for each, and how far it came through the phases.

import { count, make, number } from "./dom.js";

/** What each phase compares with; the words before and after are left out where there is no room. */
const LIMITS = {
  retrieve: (settings) => ["", `≤ ${settings.candidates}`, " each"],
  verify: (settings) => ["score ", `≥ ${number(settings.threshold)}`, ""],
  fallback: (settings) => ["score ", `≥ ${number(settings.fallback_floor)}`, ""],
  prioritize: (settings) => ["similar ", `> ${number(settings.redundancy)}`, ""],
  budget: (settings) => ["", `≤ ${settings.max_tokens}`, " tokens"],
};
const MAIN_SCORES = ["verifier", "policy", "similarity"];

/**
 * Return the picture of a trace.
 *
 * `answer` holds `trace`, `texts`, `sufficient`, `tokens` and `max_tokens`; `open`, if given, opens a candidate by id.
 */
export function drawFlow(answer, open = null) {
  const { trace } = answer;
  const phases = trace.phases;
  const threshold = phases.find((phase) => phase.name === "verify")?.settings.threshold;
  const ordered = sortCandidates(
    trace.candidates,
    phases.map((phase) => phase.name),
  );
  const rows = ordered.map((candidate) => drawRow(candidate, answer, threshold, open));
  return make(
    "div",
    { class: "flow" },
    make("p", { class: "summary" }, summarize(answer)),
    trace.sufficiency.reason && make("p", { class: "note" }, `Not sufficient: ${trace.sufficiency.reason}.`),
    make("div", { class: "flow-head", "aria-hidden": "true" }, make("div", { class: "track" }, phases.map(drawPhase))),
    make("ol", { class: "rows" }, rows),
  );
}

/** Mark the rows whose fate or verdict differs between two pictures. */
export function markDifferences(one, other) {
  const fates = [one, other].map(
    ({ trace }) => new Map(trace.candidates.map((each) => [each.id, `${each.fate} ${each.verified}`])),
  );
  for (const row of document.querySelectorAll(".flow li")) {
    const differs = fates[0].get(row.dataset.id) !== fates[1].get(row.dataset.id);
    row.classList.toggle("differs", differs);
    row.querySelector(".differs-note").hidden = !differs;
  }
}

function summarize({ trace, sufficient, tokens, max_tokens: most }) {
  const kept = trace.candidates.filter((each) => each.fate === "kept").length;
  const parts = [`${count(trace.candidates.length, "candidate")}, ${kept} kept`, `${tokens} of ${most} tokens`];
  const { estimate, threshold } = trace.sufficiency;
  const estimated = estimate === undefined ? "" : ` (${number(estimate)}, needs ${number(threshold)})`;
  if (trace.verifier) parts.push(`${sufficient ? "sufficient" : "not sufficient"}${estimated}`);
  parts.push(`${Math.round(trace.ms)} ms`);
  return parts.join(" · ");
}

function drawPhase(phase) {
  const counts = phase.received ? `${phase.received} → ${phase.returned}` : `${phase.returned}`;
  const [before, limit, after] = phase.skipped
    ? ["", "skipped", ""]
    : (LIMITS[phase.name]?.(phase.settings) ?? ["", "", ""]);
  const word = (text) => make("i", {}, text);
  return make(
    "div",
    { class: phase.skipped ? "phase skipped" : "phase", title: phase.skipped || `${phase.ms} ms` },
    make("strong", {}, phase.name),
    make("span", {}, phase.skipped ? "" : counts),
    make("span", {}, word(before), limit, word(after)),
  );
}

function sortCandidates(candidates, names) {
  const place = (each) => (each.fate === "kept" ? names.length + 1000 - each.rank : names.lastIndexOf(each.phase));
  return [...candidates].sort(
    (one, other) => place(other) - place(one) || (mainScore(other) ?? -1) - (mainScore(one) ?? -1),
  );
}

function mainScore(candidate) {
  const name = MAIN_SCORES.find((each) => each in candidate.scores);
  return name === undefined ? null : candidate.scores[name];
}

function drawRow(candidate, answer, threshold, open) {
  const kept = candidate.fate === "kept";
  const kind = kept ? (candidate.verified ? "yes" : "maybe") : "no";
  const { title = "", text = "" } = answer.texts[candidate.id] ?? {};
  const fate = kept ? `shown as number ${candidate.rank}` : `dropped in ${candidate.phase}`;
  const reason = kept && !answer.trace.verifier ? "shown" : describeReason(candidate);
  const summary = make(
    "summary",
    {},
    make("span", { class: "mark" }, kept ? `${candidate.rank}` : "✕"),
    make(
      "span",
      { class: "name" },
      title || text.slice(0, 140) || candidate.id,
      title && make("small", {}, text.slice(0, 140)),
    ),
    drawScore(mainScore(candidate), threshold),
    drawTrack(candidate, answer.trace.phases),
    make("span", { class: "reason" }, make("span", { class: "sr" }, `${fate}: `), reason),
    make("span", { class: "differs-note", hidden: true }, "differs"),
  );
  const scores = Object.entries(candidate.scores).map(([name, value]) => [
    make("dt", {}, name),
    make("dd", {}, value.toFixed(3)),
  ]);
  const details = make(
    "div",
    { class: "more" },
    make("p", { class: "text" }, text),
    make(
      "p",
      { class: "dim" },
      `${candidate.id} · from ${candidate.origin} · ${candidate.tokens ?? "?"} tokens · ${fate}: ${reason}`,
    ),
    make("dl", { class: "scores" }, scores),
    open && text && make("button", { type: "button", onclick: () => open(candidate.id) }, "Open this memory"),
  );
  return make("li", { class: kind, "data-id": candidate.id }, make("details", {}, summary, details));
}

function describeReason({ reason }) {
  const [name, ...rest] = reason.split(":");
  return [name.replaceAll("_", " "), rest.join(":")].join(" ").trim();
}

function drawScore(score, threshold) {
  if (score === null) return make("span", { class: "score dim" }, "not read");
  const bar = make("span", { class: "bar" }, make("span", { class: "filled" }));
  bar.firstChild.style.width = `${Math.min(1, Math.max(0, score)) * 100}%`;
  if (threshold) {
    const tick = make("span", { class: "tick", title: `threshold ${number(threshold)}` });
    tick.style.left = `${threshold * 100}%`;
    bar.append(tick);
  }
  return make("span", { class: "score" }, make("span", { class: "sr" }, "score "), number(score), bar);
}

function drawTrack(candidate, phases) {
  const kept = candidate.fate === "kept";
  const found = phases.findLastIndex((phase) => phase.name === candidate.phase && !phase.skipped);
  const last = kept || found < 0 ? phases.length - 1 : found;
  const steps = phases.map((phase, n) => {
    const kind = n < last ? "passed" : n > last ? "after" : kept ? "end kept" : "end dropped";
    return make("span", { class: `step ${kind}${phase.skipped ? " skipped" : ""}` });
  });
  return make("span", { class: "track", "aria-hidden": "true" }, steps);
}
