// Starts the page: who asks, and which view is shown.

import { ask, hasToken, setToken } from "./api.js";
import { askForToken } from "./dialogs.js";
import { showDocuments } from "./documents.js";
import { alertOf, button, make, nameOf, whisper } from "./dom.js";
import { showLog } from "./log.js";
import { showMemories } from "./memories.js";
import { showSearch } from "./search.js";

const VIEWS = {
  documents: { title: "Documents", show: showDocuments, works: (session) => session.has_documents },
  search: { title: "Search", show: showSearch, works: (session) => session.may_inspect },
  memories: { title: "Memories", show: showMemories, works: (session) => session.may_inspect },
  log: { title: "Log", show: showLog, works: (session) => session.may_inspect },
};
let session = null;

function showView() {
  const wanted = location.hash.slice(1);
  const names = Object.keys(VIEWS).filter((name) => VIEWS[name].works(session));
  const name = names.includes(wanted) ? wanted : names[0];
  const view = document.getElementById("view");
  for (const link of document.querySelectorAll("nav a")) {
    const its = link.hash.slice(1);
    link.closest("li").hidden = !names.includes(its);
    if (its === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  view.replaceChildren();
  whisper("");
  if (session.has_memory && !session.may_inspect) view.append(explainRights());
  if (!name) return;
  document.title = `${VIEWS[name].title} · MeVe inspector`;
  VIEWS[name].show(view, session);
}

function explainRights() {
  const command = make("code", {}, "meve serve grant --inspect");
  return make(
    "p",
    { class: "note" },
    "This token doesn't permit to inspect the memory. ",
    command,
    " makes one that does.",
  );
}

function showWho() {
  const parts = [];
  if (session.user) parts.push(make("span", {}, "Memory of ", make("strong", {}, nameOf(session.user))));
  if (session.user && !session.may_write) parts.push(make("span", { class: "tag" }, "read only"));
  if (hasToken()) parts.push(button("Sign out", signOut));
  document.getElementById("who").replaceChildren(...parts);
}

function signOut() {
  setToken(null);
  location.reload();
}

async function signIn(token) {
  setToken(token);
  try {
    session = await ask("show_session");
  } catch (error) {
    setToken(null);
    throw error.status === 401 ? new Error("The server doesn't know this token.") : error;
  }
}

async function start() {
  try {
    session = await ask("show_session");
  } catch (error) {
    const view = document.getElementById("view");
    if (error.status !== 401) {
      view.replaceChildren(alertOf(error), button("Try again", start));
      return;
    }
    setToken(null);
    view.replaceChildren(button("Sign in", start, { class: "primary" }));
    if (!(await askForToken(signIn))) return;
  }
  showWho();
  showView();
}

addEventListener("hashchange", () => {
  if (session && location.hash !== "#view") showView();
});
start();
