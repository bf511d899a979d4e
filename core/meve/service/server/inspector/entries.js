// Entries of the audit log.

import { button, make, time } from "./dom.js";

const HASHED = /^r:[0-9a-f]{32}$/; // stands in place of the id of an erased item

/** Return entries as a table; `open`, if given, opens a memory by id. */
export function listEntries(entries, open) {
  const head = ["When", "What", open && "Memory", "Why", "Usefulness"].filter(Boolean);
  const rows = entries.map((each) => {
    const id =
      open &&
      (HASHED.test(each.id) || !each.id
        ? make("span", { class: "dim" }, each.id || "–")
        : button(each.id, () => open(each.id), { class: "plain id", title: each.id }));
    const score = each.after === null ? "" : `${Math.round(each.before)} → ${Math.round(each.after)}`;
    const cells = [time(each.at), make("span", { class: "tag" }, each.action), id, each.reason, score];
    return make(
      "tr",
      {},
      cells.filter((cell) => cell !== null).map((cell, n) => make("td", { "data-label": head[n] }, cell)),
    );
  });
  return make(
    "table",
    { class: "entries" },
    make(
      "thead",
      {},
      make(
        "tr",
        {},
        head.map((each) => make("th", { scope: "col" }, each)),
      ),
    ),
    make("tbody", {}, rows),
  );
}
