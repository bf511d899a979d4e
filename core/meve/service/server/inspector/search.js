// Search: what an agent would get now, and everything that is remembered on the topic, and why.

import { ask } from "./api.js";
import { alertOf, askForm, count, make, number, whisper } from "./dom.js";
import { drawFlow } from "./flow.js";
import { openMemory } from "./memory.js";
import { listMemories } from "./records.js";

export function showSearch(view, session) {
  const query = make("input", {
    type: "search",
    required: true,
    maxlength: 4000,
    placeholder: "Search as an agent would…",
    "aria-label": "Topic or question",
  });
  const result = make("div", { class: "result" });

  async function run(event) {
    event?.preventDefault();
    if (!query.value.trim()) return;
    result.setAttribute("aria-busy", "true");
    try {
      const answer = await ask("find_memories", { query: query.value.trim() });
      result.replaceChildren(...showAnswer(answer, session, run));
      whisper(`${count(answer.about.length, "memory", "memories")} on this topic.`);
    } catch (error) {
      result.replaceChildren(alertOf(error));
    }
    result.removeAttribute("aria-busy");
  }

  view.append(
    make("h2", {}, "Search the memory"),
    askForm(query, "Search", run),
    make("p", { class: "dim" }, "Looking is not logged, and changes no score."),
    result,
  );
  if (matchMedia("(pointer: fine)").matches) query.focus(); // a phone would open its keyboard
}

function showAnswer(answer, session, again) {
  const open = (id) => openMemory(id, session, again);
  const found = answer.about.map((each) => ({
    memory: each.memory,
    note: `score ${number(each.score)} · ${each.why}`,
  }));
  return [
    make("h3", {}, "What an agent gets"),
    make("pre", {}, answer.text),
    make("h3", {}, "How it was chosen"),
    drawFlow(answer, open),
    make("h3", {}, "Everything on this topic, and why it is kept"),
    found.length
      ? listMemories(found, session, again)
      : make("p", { class: "note" }, "Nothing is remembered on this topic."),
  ];
}
