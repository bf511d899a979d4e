// Draws the usefulness of a memory from its creation to its end, or a year ahead.

import { draw, make } from "./dom.js";

const HEIGHT = 190;
const LEFT = 34;
const RIGHT = 12;
const TOP = 22;
const BOTTOM = 40;

/** Draw into a place, in its width; `answer` holds `memory`, `now`, `curve` and `events`. */
export function drawTimeline(place, { memory, now: moment, curve, events }) {
  const width = Math.max(280, Math.min(860, place.clientWidth || 320));
  const past = findPast(memory, curve, events);
  const all = [...past, ...curve.map((each) => ({ at: Date.parse(each.at), score: each.score }))];
  const now = Date.parse(moment);
  const begin = Math.min(...all.map((each) => each.at));
  const end = Math.max(now, ...all.map((each) => each.at));
  const x = (at) => LEFT + ((at - begin) / Math.max(1, end - begin)) * (width - LEFT - RIGHT);
  const y = (score) => TOP + (1 - score / 100) * (HEIGHT - TOP - BOTTOM);
  const line = (points) => points.map((each) => `${x(each.at).toFixed(1)},${y(each.score).toFixed(1)}`).join(" ");
  const until = all.filter((each) => each.at <= now);
  const after = all.filter((each) => each.at >= now);
  const ends = memory.expires_at && Date.parse(memory.expires_at);
  const svg = draw(
    "svg",
    { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": describe(memory) },
    [0, 50, 100].map((score) => [
      draw("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(score), y2: y(score) }),
      draw("text", { x: LEFT - 6, y: y(score) + 4, "text-anchor": "end" }, String(score)),
    ]),
    draw("polyline", { class: "was", points: line(until) }),
    draw("polyline", { class: "will", points: line(until.length ? [until.at(-1), ...after] : after) }),
    past.map((each) => draw("circle", { class: "dot", cx: x(each.at), cy: y(each.score), r: 3 })),
    draw("line", { class: "now", x1: x(now), x2: x(now), y1: TOP, y2: y(0) }),
    mark("now", x(now), TOP - 8, width),
    ends ? draw("line", { class: "ends", x1: x(ends), x2: x(ends), y1: TOP, y2: y(0) }) : null,
    ends && Math.abs(x(ends) - x(now)) > 40 ? mark("ends", x(ends), TOP - 8, width) : null,
    mark(formatDay(begin), LEFT, HEIGHT - 18, width),
    mark(formatDay(end), width - RIGHT, HEIGHT - 18, width),
  );
  const legend = make(
    "p",
    { class: "dim" },
    "The line is the score from 0 to 100; dashed is what it becomes if nobody recalls the memory.",
  );
  place.replaceChildren(svg, legend);
}

function findPast(memory, curve, events) {
  const first = { at: Date.parse(memory.created_at), score: curve[0]?.score ?? memory.reflection };
  const changes = events
    .filter((each) => each.after !== null)
    .map((each) => ({ at: Date.parse(each.at), score: each.after, before: each.before }));
  if (changes.length) first.score = changes[0].before;
  return [
    first,
    ...changes.flatMap(({ at, score, before }) => [
      { at, score: before },
      { at, score },
    ]),
  ];
}

function mark(text, at, y, width) {
  const anchor = at > width - 60 ? "end" : at < LEFT + 30 ? "start" : "middle";
  return draw("text", { x: at, y, "text-anchor": anchor }, text);
}

function formatDay(at) {
  return new Date(at).toLocaleDateString("en-GB", { dateStyle: "medium" });
}

function describe(memory) {
  const ends = memory.expires_at ? `ends on ${formatDay(Date.parse(memory.expires_at))}` : "doesn't end";
  return `Usefulness ${Math.round(memory.reflection)} of 100 now; ${ends}.`;
}
