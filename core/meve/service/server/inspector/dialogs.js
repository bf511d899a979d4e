// Dialogs: Enter confirms, Escape leaves, and the focus returns to where it was.

import { alertOf, button, labelled, make } from "./dom.js";

let opened = 0;

/** Open a dialog and return it; it removes itself when it is closed. */
export function openDialog(title, content, properties = {}) {
  const id = `dialog-${++opened}`;
  const heading = make("h2", { id }, title);
  const dialog = make("dialog", { "aria-labelledby": id, ...properties }, heading, ...content);
  const before = document.activeElement;
  dialog.addEventListener("close", () => {
    const status = document.getElementById("status");
    if (dialog.contains(status)) document.body.append(status);
    dialog.remove();
    if (before instanceof HTMLElement && before.isConnected) before.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/**
 * Ask before something is done. `act` gets the text of the field, if there is one, and does it; an error stays in the
 * dialog. Return whether it was done.
 */
export function confirm({ title, content = [], action, danger = false, field = null, act }) {
  return new Promise((resolve) => {
    let done = false;
    const problem = make("div");
    const input = field ? make("input", { type: "text", required: true, maxlength: 2000, autocomplete: "off" }) : null;
    const submit = make("button", { type: "submit", class: danger ? "danger" : "primary" }, action);
    const cancel = button("Cancel", () => dialog.close());
    const form = make(
      "form",
      {
        onsubmit: async (event) => {
          event.preventDefault();
          submit.disabled = true;
          try {
            await act(input?.value.trim());
            done = true;
            dialog.close();
          } catch (error) {
            problem.replaceChildren(alertOf(error));
            submit.disabled = false;
          }
        },
      },
      input && labelled(field, input),
      problem,
      make("div", { class: "actions" }, submit, cancel),
    );
    const dialog = openDialog(title, [...content, form]);
    dialog.addEventListener("close", () => resolve(done));
    (input ?? (danger ? cancel : submit)).focus();
  });
}

/** Ask for the token until `accept` takes it. Return whether it did. */
export function askForToken(accept) {
  return new Promise((resolve) => {
    let done = false;
    const problem = make("div");
    const input = make("input", { type: "password", required: true, autocomplete: "off", spellcheck: "false" });
    const form = make(
      "form",
      {
        onsubmit: async (event) => {
          event.preventDefault();
          try {
            await accept(input.value.trim());
            done = true;
            dialog.close();
          } catch (error) {
            problem.replaceChildren(alertOf(error));
            input.select();
          }
        },
      },
      labelled("Token", input),
      problem,
      make("div", { class: "actions" }, make("button", { type: "submit", class: "primary" }, "Sign in")),
    );
    const note = make(
      "p",
      {},
      "The server asks for a bearer token. ",
      make("code", {}, "meve serve grant --inspect"),
      " makes one. It is kept in this tab only.",
    );
    const dialog = openDialog("Sign in", [note, form]);
    dialog.addEventListener("close", () => resolve(done));
    input.focus();
  });
}
