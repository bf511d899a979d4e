// Memories: what holds, what was replaced or archived, what is on hold and what ends soon; export and erasure of all.

import { ask } from "./api.js";
import { confirm } from "./dialogs.js";
import { alertOf, announce, button, count, labelled, make, nameOf, spell } from "./dom.js";
import { describePlan } from "./memory.js";
import { listMemories } from "./records.js";

const LISTS = {
  current: "Current",
  ending: "Ending soon",
  replaced: "Replaced",
  archived: "Archived",
  on_hold: "On hold",
};
const PAGE = 50;

export function showMemories(view, session) {
  const contains = make("input", { type: "search", maxlength: 200, oninput: later, placeholder: "Part of the text" });
  const days = make("input", { type: "number", min: 1, max: 36500, value: 30, onchange: load });
  const messages = make("input", { type: "checkbox", onchange: load });
  const tabs = make("div", { class: "choices", role: "radiogroup", "aria-label": "Which memories" });
  const result = make("div", { class: "result" });
  let which = "current";
  let shown = PAGE;
  let timer = null;
  let latest = 0;

  function later() {
    clearTimeout(timer);
    timer = setTimeout(load, 200);
  }

  function choose(name) {
    which = name;
    shown = PAGE;
    load();
  }

  async function load() {
    const mine = ++latest;
    try {
      const body = { which, contains: contains.value, days: Number(days.value) || 30, messages: messages.checked };
      const answer = await ask("list_memories", { ...body, limit: Math.min(shown, 200), skip: 0 });
      if (mine !== latest) return;
      for (const [name, choice] of Object.entries(choices)) choice.count.textContent = answer.counts[name];
      withDays.hidden = which !== "ending";
      result.replaceChildren(...drawList(answer));
    } catch (error) {
      if (mine === latest) result.replaceChildren(alertOf(error));
    }
  }

  function drawList(answer) {
    if (!answer.total) return [make("p", { class: "note" }, "None.")];
    const list = listMemories(
      answer.memories.map((memory) => ({ memory })),
      session,
      load,
    );
    const more = () => {
      shown += PAGE;
      load();
    };
    const left = answer.total - answer.memories.length;
    if (!left) return [list];
    if (shown >= 200)
      return [
        list,
        make("p", { class: "note" }, `${left.toLocaleString("en")} more: search for a part of the text, or export.`),
      ];
    return [list, button(`Show more (${left.toLocaleString("en")} left)`, more)];
  }

  const choices = Object.fromEntries(
    Object.entries(LISTS).map(([name, label]) => {
      const number = make("span", { class: "count" });
      const radio = make("input", {
        type: "radio",
        name: "which",
        value: name,
        checked: name === which,
        onchange: () => choose(name),
      });
      return [name, { count: number, element: make("label", {}, radio, make("span", {}, label, " ", number)) }];
    }),
  );
  const withDays = labelled("Within days", days);
  tabs.append(...Object.values(choices).map((each) => each.element));
  view.append(
    make("h2", {}, "Memories"),
    tabs,
    make(
      "div",
      { class: "filters" },
      labelled("Find", contains),
      withDays,
      make("label", { class: "check" }, messages, "With messages of conversations"),
    ),
    result,
    make(
      "section",
      { class: "all" },
      make("h3", {}, "All data of this user"),
      make(
        "div",
        { class: "actions" },
        button("Export…", () => exportAll(session)),
        session.may_write && button("Forget everything…", () => forgetAll(session, load), { class: "danger" }),
      ),
    ),
  );
  load();
}

async function exportAll(session) {
  const content = [
    make("p", {}, "The file holds all memories, private ones included, and their log, in plain text. Keep it safe."),
  ];
  const act = async () => {
    const { data } = await ask("export_memories");
    const file = new Blob([JSON.stringify(data, null, 1)], { type: "application/json" });
    const url = URL.createObjectURL(file);
    const name = session.user.replaceAll(/[^\w.-]+/g, "_");
    make("a", { href: url, download: `memory-${name}.json` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  };
  if (await confirm({ title: ["Export the memory of ", nameOf(session.user), "?"], content, action: "Export", act }))
    announce("Exported.");
}

async function forgetAll(session, load) {
  let plan;
  try {
    plan = await ask("erase_all", { dry_run: true });
  } catch (error) {
    announce(`Not erased: ${error.message}`);
    return;
  }
  const act = async (typed) => {
    const accepted = [session.user.trim(), spell(session.user).trim()];
    if (!accepted.includes(typed)) throw new Error(`Type ${spell(session.user)} to confirm.`);
    await ask("erase_all", { dry_run: false });
  };
  const content = [make("p", {}, describePlan(plan))];
  const title = ["Forget everything about ", nameOf(session.user), "?"];
  if (
    await confirm({
      title,
      content,
      action: "Forget everything",
      danger: true,
      field: ["Type ", nameOf(session.user), " to confirm"],
      act,
    })
  ) {
    await load();
    announce(`${count(plan.erased.length, "memory", "memories")} erased.`);
  }
}
