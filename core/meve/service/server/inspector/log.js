// Log: the user's entries of the audit log, what was erased lately, and whether the log is intact.

import { ask } from "./api.js";
import { alertOf, button, count, labelled, make, whisper } from "./dom.js";
import { listEntries } from "./entries.js";
import { openMemory } from "./memory.js";

export function showLog(view, session) {
  const days = make("input", { type: "number", min: 1, max: 36500, value: 30, onchange: load });
  const erasures = make("input", { type: "checkbox", onchange: load });
  const result = make("div", { class: "result" });
  const state = make("div", { class: "state" });

  async function load() {
    try {
      const body = { days: Number(days.value) || 30, erasures: erasures.checked, limit: 200 };
      const answer = await ask("list_audit", body);
      const left = answer.total - answer.entries.length;
      const open = (id) => openMemory(id, session, load);
      result.replaceChildren(
        answer.total
          ? listEntries(answer.entries, open)
          : make(
              "p",
              { class: "note" },
              erasures.checked ? "Nothing was erased in this time." : "No entries in this time.",
            ),
        left > 0
          ? make("p", { class: "note" }, `${left.toLocaleString("en")} older entries: give fewer days, or export.`)
          : "",
      );
    } catch (error) {
      result.replaceChildren(alertOf(error));
    }
  }

  async function verify() {
    check.disabled = true;
    state.replaceChildren(make("p", { class: "note" }, "Reading the whole log…"));
    try {
      const lines = describeState(await ask("verify_audit"));
      state.replaceChildren(...lines);
      whisper(lines.map((line) => line.textContent).join(" "));
    } catch (error) {
      state.replaceChildren(alertOf(error));
    }
    check.disabled = false;
  }

  const check = button("Check the log", verify);
  view.append(
    make("h2", {}, "Log"),
    make("section", { class: "chain" }, check, state),
    make(
      "div",
      { class: "filters" },
      labelled("Last days", days),
      make("label", { class: "check" }, erasures, "Only what was erased"),
    ),
    result,
  );
  load();
}

function describeState({ intact, keyed, compared, differs }) {
  const line = (kind, text) => make("p", { class: `verdict ${kind}` }, text);
  const lines = [
    intact
      ? line("good", "The log is intact: every entry is in its place and unchanged.")
      : line("bad", "The log is not intact. The operator finds the place with meve memory verify."),
  ];
  if (!keyed)
    lines.push(
      make(
        "p",
        { class: "dim" },
        "It has no key, so the check shows accidents, not intent, and the memories aren't compared with it.",
      ),
    );
  const altered = Object.entries(differs);
  if (compared && !altered.length) lines.push(line("good", "Your memories are as the log says."));
  if (altered.length)
    lines.push(line("bad", `${count(altered.length, "memory differs", "memories differ")} from the log:`));
  lines.push(...altered.map(([id, what]) => make("p", { class: "bad" }, `${id || "unreadable"}: ${what.join(", ")}`)));
  return lines;
}
