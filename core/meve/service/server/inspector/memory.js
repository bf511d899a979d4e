// One memory: text, score and expiry over time, history, log, and what can be done with it.

import { ask } from "./api.js";
import { confirm, openDialog } from "./dialogs.js";
import { alertOf, announce, button, count, make } from "./dom.js";
import { listEntries } from "./entries.js";
import { describe, listMemories, restore } from "./records.js";
import { drawTimeline } from "./timeline.js";

const COPIES = ": this one, its copies and earlier versions, and what is derived from it";

/** Open a memory in a dialog. `again` is called after a change. */
export async function openMemory(id, session, again) {
  const body = make("div", { class: "memory", tabindex: -1 });
  const dialog = openDialog(
    "Memory",
    [
      make("form", { class: "close", onsubmit: leave }, make("button", { type: "submit", "aria-label": "Close" }, "✕")),
      body,
    ],
    { class: "wide" },
  );

  function leave(event) {
    event.preventDefault();
    dialog.close();
  }

  async function load() {
    try {
      const answer = await ask("show_memory", { id });
      body.replaceChildren(...drawMemory(answer, session, changed, dialog));
      drawTimeline(body.querySelector(".timeline"), answer);
    } catch (error) {
      body.replaceChildren(alertOf(error));
    }
  }

  async function changed() {
    await again();
    if (dialog.open) await load();
  }

  await load();
}

function drawMemory(answer, session, changed, dialog) {
  const { memory } = answer;
  const others = (memories) =>
    listMemories(
      memories.map((each) => ({ memory: each })),
      session,
      changed,
    );
  return [
    make("p", { class: "text" }, memory.text),
    make("p", { class: "tags" }, describe(memory)),
    make("p", { class: "dim" }, answer.why, "."),
    session.may_write && !memory.shared && make("div", { class: "actions" }, listActions(memory, changed, dialog)),
    make("h3", {}, "Usefulness and expiry over time"),
    make("div", { class: "timeline" }),
    answer.later.length ? make("h3", {}, "Replaced by") : null,
    answer.later.length ? others(answer.later) : null,
    answer.earlier.length ? make("h3", {}, "Replaced") : null,
    answer.earlier.length ? others(answer.earlier) : null,
    make("h3", {}, "Log"),
    listEntries(answer.events, null),
  ].filter(Boolean);
}

function listActions(memory, changed, dialog) {
  const closed = memory.superseded_by || memory.valid_to || memory.archived;
  return [
    closed && !memory.hold && button("Restore", () => restore(memory, changed)),
    memory.hold ? button("Release…", () => release(memory, changed)) : button("Hold…", () => hold(memory, changed)),
    !memory.hold && button("Forget…", () => forget(memory, changed, dialog), { class: "danger" }),
  ];
}

async function hold(memory, changed) {
  const act = (why) => ask("hold_memory", { id: memory.id, why });
  const content = [make("p", {}, "Nothing changes or erases a memory on hold, not even its expiry. After its expiry it stays, but isn't shown.")];
  if (await confirm({ title: "Hold this memory?", content, action: "Hold", field: "Why", act })) {
    await changed();
    announce("On hold.");
  }
}

async function release(memory, changed) {
  const act = () => ask("release_memory", { id: memory.id });
  const content = [make("p", {}, `It is on hold: ${memory.hold}. After that it can change, end and be erased.`)];
  if (await confirm({ title: "Release this memory?", content, action: "Release", act })) {
    await changed();
    announce("Released.");
  }
}

async function forget(memory, changed, dialog) {
  const earlier = make("input", { type: "checkbox" });
  let plan;
  try {
    plan = await ask("erase_memory", { id: memory.id, dry_run: true });
  } catch (error) {
    announce(`Not erased: ${error.message}`);
    return;
  }
  const content = [
    make("p", { class: "text" }, memory.text),
    make("p", {}, describePlan(plan, plan.erased.length > 1 ? COPIES : "")),
    plan.left_closed.length
      ? make(
          "label",
          { class: "check" },
          earlier,
          `Erase ${count(plan.left_closed.length, "earlier memory", "earlier memories")} that it replaced, too`,
        )
      : null,
  ].filter(Boolean);
  const act = () => ask("erase_memory", { id: memory.id, earlier: earlier.checked, dry_run: false });
  if (await confirm({ title: "Forget this for good?", content, action: "Forget", danger: true, act })) {
    dialog.close();
    await changed();
    announce("Erased.");
  }
}

/** Say what an erasure erases and what stays; `which` says which memories these are. */
export function describePlan(plan, which = "") {
  const held = Object.keys(plan.held).length;
  const stays = held ? ` ${count(held, "memory is", "memories are")} on hold and will stay.` : "";
  return `${count(plan.erased.length, "memory", "memories")} will be erased${which}. This can't be undone.${stays}`;
}
