// Lists of memories.

import { ask } from "./api.js";
import { announce, button, day, make } from "./dom.js";
import { openMemory } from "./memory.js";

/** Return a list of memories; `found` holds each with a note. `again` is called after a change. */
export function listMemories(found, session, again) {
  return make(
    "ul",
    { class: "cards" },
    found.map((each) => drawCard(each, session, again)),
  );
}

function drawCard({ memory, note = null }, session, again) {
  const restorable = (memory.superseded_by || memory.valid_to || memory.archived) && !memory.hold && !memory.shared;
  return make(
    "li",
    { class: "card", "data-id": memory.id },
    make(
      "button",
      { type: "button", class: "plain text", onclick: () => openMemory(memory.id, session, again) },
      memory.text,
    ),
    make("p", { class: "tags" }, describe(memory)),
    memory.replacement && make("p", { class: "now" }, `Now: ${memory.replacement}`),
    note && make("p", { class: "dim" }, note),
    restorable &&
      session.may_write &&
      button("Restore", () => restore(memory, again), { "aria-label": `Restore: ${memory.text.slice(0, 80)}` }),
  );
}

/** Return the tags of a memory: its class, source and state. */
export function describe(memory) {
  const tag = (text, kind = "") => make("span", { class: `tag ${kind}` }, text);
  return [
    tag(memory.policy_class),
    tag(`from ${memory.source}`),
    tag(`usefulness ${Math.round(memory.reflection)}`),
    memory.shared && tag("shared with all users"),
    memory.pinned && tag("pinned"),
    memory.hold && tag(`on hold: ${memory.hold}`, "warn"),
    memory.archived && tag("archived", "off"),
    (memory.superseded_by || memory.valid_to) && tag("replaced", "off"),
    memory.flagged && !memory.valid_to && tag(memory.flagged, "warn"),
    make("span", { class: "dim" }, "added ", day(memory.created_at)),
    memory.expires_at
      ? make("span", { class: "dim" }, "ends ", day(memory.expires_at))
      : make("span", { class: "dim" }, "doesn't end"),
  ];
}

/** Restore a memory, and tell so. */
export async function restore(memory, again) {
  try {
    await ask("restore_memory", { id: memory.id });
    await again();
    announce("Restored. It holds again, beside what had replaced it.");
  } catch (error) {
    announce(`Not restored: ${error.message}`);
  }
}
