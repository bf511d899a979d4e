// Makes elements. All text becomes text nodes, so that nothing stored is ever read as markup.

let fading = null;
const REORDERING = /[\u202a-\u202e\u2066-\u2069]/g;
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;
const SVG = "http://www.w3.org/2000/svg";

/** Return an element. Properties: `on…` are listeners, `class` is the class, others are attributes; false leaves one out. */
export function make(name, properties = {}, ...children) {
  return fill(document.createElement(name), properties, children);
}

/** Return an element of a drawing. */
export function draw(name, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, name), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  const shown = children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false);
  element.append(...shown.map((each) => (typeof each === "string" ? showMarks(each) : each)));
  return element;
}

/** Return a text with the marks that reorder others shown, such as [U+202E], so that it can't turn round what follows. */
function showMarks(text) {
  return text.replace(REORDERING, (mark) => `[U+${mark.charCodeAt(0).toString(16).toUpperCase()}]`);
}

/** Return a name with what nobody sees or types shown by its number, such as [U+200B]. */
export function spell(name) {
  return name.replace(UNSEEN, (mark) => `[U+${mark.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}

/** Return a name as an element in its own direction of reading, spelled so that it can be typed. */
export function nameOf(name) {
  return make("bdi", {}, spell(name));
}

/** Return a button. */
export function button(label, onclick, properties = {}) {
  return make("button", { type: "button", onclick, ...properties }, label);
}

/** Return the form of a question: its field, a button, and what stands beside them. */
export function askForm(query, label, onsubmit, ...rest) {
  const send = make("button", { type: "submit", class: "primary" }, label);
  return make("form", { class: "ask", role: "search", onsubmit }, query, send, ...rest);
}

/** Return a label with its control. */
export function labelled(text, control, ...rest) {
  return make("label", { class: "field" }, make("span", {}, text), control, ...rest);
}

/** Return a number with two digits after the point. */
export function number(value) {
  return value.toFixed(2);
}

/** Return a count with its noun. */
export function count(n, one, many = `${one}s`) {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

/** Return a moment as a `time` element in the reader's zone. */
export function time(iso) {
  const at = new Date(iso);
  const text = at.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
  return make("time", { datetime: iso, title: iso }, text);
}

/** Return a day. */
export function day(iso) {
  return make(
    "time",
    { datetime: iso, title: iso },
    new Date(iso).toLocaleDateString("en-GB", { dateStyle: "medium" }),
  );
}

/** Show for a few seconds what was done, and let screen readers read it. A focus that was lost returns to the content. */
export function announce(text) {
  const status = document.getElementById("status");
  const dialog = [...document.querySelectorAll("dialog[open]")].at(-1);
  (dialog ?? document.body).append(status); // what is outside of an open dialog isn't read
  status.className = "toast";
  status.textContent = text;
  const content = dialog?.querySelector("[tabindex]") ?? document.getElementById("view");
  if (document.activeElement === document.body) content.focus({ preventScroll: true });
  clearTimeout(fading);
  fading = setTimeout(() => status.textContent === text && whisper(""), 8000);
}

/** Let screen readers read what the page shows by itself. */
export function whisper(text) {
  const status = document.getElementById("status");
  status.className = "sr";
  status.textContent = text;
}

/** Return an error as an alert. */
export function alertOf(error) {
  return make("p", { class: "error", role: "alert" }, error.message);
}
