// Documents: ask, and try thresholds, redundancy and budgets, two settings side by side.

import { ask } from "./api.js";
import { alertOf, askForm, button, count, labelled, make, number, whisper } from "./dom.js";
import { drawFlow, markDifferences } from "./flow.js";

const PAUSE = 150; // ms without a change of a slider before the question runs again

export function showDocuments(view, session) {
  const query = make("input", {
    type: "search",
    required: true,
    maxlength: 4000,
    placeholder: "Ask the documents…",
    "aria-label": "Question",
  });
  const panels = make("div", { class: "panels" });
  const first = makePanel("Settings", session.settings, query, update);
  let second = null;
  const compare = button("Compare two settings", toggle, { "aria-pressed": "false" });

  function toggle() {
    if (second) {
      second.stop();
      second.element.remove();
      second = null;
    } else {
      second = makePanel("Other settings", first.settings(), query, update);
      panels.append(second.element);
      if (query.value.trim()) second.run();
    }
    compare.setAttribute("aria-pressed", String(second !== null));
    panels.classList.toggle("two", second !== null);
    update();
  }

  function update() {
    if (first.answer) markDifferences(first.answer, second?.answer ?? first.answer);
  }

  function submit(event) {
    event.preventDefault();
    first.run();
    second?.run();
  }

  panels.append(first.element);
  view.append(
    make("h2", {}, "Documents"),
    askForm(query, "Ask", submit, compare),
    panels,
  );
  if (matchMedia("(pointer: fine)").matches) query.focus(); // a phone would open its keyboard
}

function makePanel(title, initial, query, onchange) {
  const panel = { answer: null, element: null, settings, run, stop };
  const result = make("div", { class: "result" });
  const threshold = makeSlider("Threshold", initial.threshold, { min: 0, max: 1, step: 0.01 }, number, later);
  const redundancy = makeSlider("Redundancy", initial.redundancy, { min: 0, max: 1, step: 0.01 }, number, later);
  const budget = makeSlider(
    "Budget",
    initial.max_tokens,
    { min: 16, max: Math.max(2048, 2 * initial.max_tokens), step: 16 },
    (n) => `${n} tokens`,
    later,
  );
  const similar = make("input", { type: "checkbox", checked: initial.duplicates === "similar", onchange: later });
  const all = make("input", { type: "checkbox", checked: initial.when_insufficient === "return", onchange: later });
  let timer = null;
  let running = null;
  let asked = false;

  function settings() {
    return {
      threshold: threshold.value(),
      redundancy: redundancy.value(),
      max_tokens: budget.value(),
      duplicates: similar.checked ? "similar" : "repeated",
      when_insufficient: all.checked ? "return" : "verified_only",
    };
  }

  function later() {
    clearTimeout(timer);
    if (asked) timer = setTimeout(run, PAUSE);
  }

  function stop() {
    clearTimeout(timer);
    running?.abort();
  }

  async function run() {
    if (!query.value.trim()) return;
    stop();
    asked = true;
    const mine = (running = new AbortController());
    result.setAttribute("aria-busy", "true");
    try {
      const answer = await ask("try_documents", { query: query.value.trim(), ...settings() }, mine.signal);
      panel.answer = answer;
      result.replaceChildren(drawFlow(answer), showText(answer));
      onchange();
      whisper(
        `${title}: ${count(answer.trace.candidates.filter((each) => each.fate === "kept").length, "passage")} shown.`,
      );
    } catch (error) {
      if (error.name === "AbortError") return;
      result.replaceChildren(alertOf(error));
    }
    result.removeAttribute("aria-busy");
  }

  panel.element = make(
    "section",
    { class: "panel", "aria-label": title },
    make(
      "fieldset",
      {},
      make("legend", {}, title),
      threshold.element,
      redundancy.element,
      budget.element,
      make("label", { class: "check" }, similar, "Drop all similar passages, not only repeated ones"),
      make("label", { class: "check" }, all, "Show passages that weren't verified"),
    ),
    result,
  );
  return panel;
}

function makeSlider(label, value, limits, format, onchange) {
  const input = make("input", { type: "range", ...limits, value });
  const output = make("output", {}, format(Number(input.value)));
  input.addEventListener("input", () => {
    output.textContent = format(Number(input.value));
    onchange();
  });
  // the slider has a step, and the setting may stand between two: it counts until the slider is moved
  let moved = false;
  input.addEventListener("input", () => (moved = true), { once: true });
  if (Number(input.value) !== value) output.textContent = format(value);
  return { element: labelled(label, input, output), value: () => (moved ? Number(input.value) : value) };
}

function showText({ text }) {
  if (!text) return make("p", { class: "note" }, "A model gets no passage, and is told so.");
  return make("details", {}, make("summary", {}, "What a model gets"), make("pre", {}, text));
}
