// One question after the other, the most useful first: yes or no by one key. Answers are entries of the log.

import { act, get } from "./api.js";
import { count, h, percent } from "./dom.js";
import { infos, inWords, mosaic, thumbs } from "./loader.js";
import { className, listen, store } from "./store.js";

const WORDS = {
  merge: ([a, b]) => [`Are ${a} and ${b} the same class?`, "Yes, merge", "No, they differ"],
  known: ([a, b]) => [`Is ${a} the known class ${b}?`, "Yes, it is", "No, it is new"],
  split: ([a]) => [`${a} looks mixed. Are these two classes?`, "Yes, split", "No, one class"],
  doubtful: ([a, b]) => [`Do these belong to ${a} or to ${b}?`, `All to ${a}`, `All to ${b}`],
};
const skipped = new Set();
const keyOf = (one) => `${one.kind} ${one.clusters}${one.kind === "doubtful" ? one.parts : ""}`;

export function queueView() {
  const heading = h("h1", { tabindex: -1 }, "Looking for the next question…");
  const about = h("p", { class: "muted", role: "status" });
  const meter = h("progress", { max: 1, value: 0, "aria-label": "Answered questions" });
  const box = h("div", { class: "sides" });
  const yes = h("button", { type: "button", class: "primary", "aria-keyshortcuts": "y" });
  const no = h("button", { type: "button", "aria-keyshortcuts": "n" });
  const skip = h("button", { type: "button", class: "quiet", "aria-keyshortcuts": "ArrowRight" }, "Skip", h("kbd", {}, "→"));
  const open = h("button", { type: "button", class: "quiet", "aria-keyshortcuts": "Enter" }, "Open the class", h("kbd", {}, "enter"));
  const bar = h("div", { class: "tools", hidden: true }, yes, no, skip, open);
  const node = h("div", { class: "queue" }, about, meter, heading, box, bar);
  const marked = new Set();
  let question = null;
  let painted = [];
  let answered = 0;
  let turn = 0;
  let busy = false;

  const paint = () => {
    painted.forEach(([canvas, rows, columns, lines]) => mosaic(canvas, rows, columns, lines, 4));
    box.querySelectorAll("[data-row]").forEach((tile) => describe(tile));
  };

  function describe(tile) {
    const info = infos.get(Number(tile.dataset.row));
    if (!info) return;
    tile.title = info.id;
    if (!store.about.pictures) tile.querySelector("span").textContent = [info.id, ...inWords(info, 2)].join(" · ");
    else tile.setAttribute("aria-label", info.id);
  }

  /** Pictures of a class or a part, or the items as text. */
  function side(title, rows, size) {
    const head = h("h2", {}, title, h("span", { class: "muted" }, ` ${count(size, "item")}`));
    if (!store.about.pictures) {
      infos.want(rows.slice(0, 6));
      return h("section", {}, head, h("ul", {}, rows.slice(0, 6).map((row) => h("li", { "data-row": row }, h("span", {}, "…")))));
    }
    const canvas = h("canvas", { "aria-hidden": "true" });
    painted.push([canvas, rows, 4, 2]);
    return h("section", {}, head, canvas);
  }

  /** Items that can be marked as not belonging. */
  function choices(rows) {
    infos.want(rows);
    return h(
      "section",
      { class: "marks" },
      rows.map((row, place) => {
        const inside = store.about.pictures ? h("canvas", { "aria-hidden": "true" }) : h("span", {}, "…");
        if (store.about.pictures) painted.push([inside, [row], 1, 1]);
        const tile = h("button", { type: "button", "data-row": row, "aria-pressed": "false", "aria-label": store.about.pictures ? `Item ${place + 1}` : null }, inside);
        tile.addEventListener("click", () => {
          if (!marked.delete(row)) marked.add(row);
          tile.setAttribute("aria-pressed", String(marked.has(row)));
          words();
        });
        return tile;
      }),
    );
  }

  function words() {
    const names = question.clusters.map(className);
    const [text, good, bad] = WORDS[question.kind](names);
    heading.textContent = text;
    const some = question.kind === "doubtful" && marked.size;
    yes.replaceChildren(some ? `Move ${count(marked.size, "item")} to ${names[1]}` : good, h("kbd", {}, "y"));
    no.replaceChildren(some ? `Reject ${count(marked.size, "item")}` : bad, h("kbd", {}, "n"));
  }

  function show() {
    marked.clear();
    painted = [];
    const one = (id) => store.byId.get(id);
    const { kind, clusters, parts } = question;
    if (kind === "doubtful") {
      const mark = h("p", { class: "muted" }, `Mark those that do not belong to ${className(clusters[0])}.`);
      box.replaceChildren(...clusters.map((id) => side(one(id).name, one(id).typical, one(id).size)), h("div", { class: "doubts" }, mark, choices(parts[0])));
    } else if (kind === "split") {
      box.replaceChildren(...parts.map((rows, place) => side(`Part ${place + 1}`, rows, rows.length)));
    } else box.replaceChildren(...clusters.map((id) => side(one(id).name, one(id).typical, one(id).size)));
    box.dataset.kind = kind;
    words();
    paint();
    bar.hidden = false;
    if (!node.contains(document.activeElement) || document.activeElement.disabled || document.activeElement.hidden) heading.focus({ preventScroll: true });
  }

  async function next() {
    const mine = (turn += 1);
    const { questions, left, gain } = await get("/api/queue");
    if (mine !== turn) return;
    question = questions.find((one) => !skipped.has(keyOf(one))) ?? null;
    meter.value = answered / Math.max(1, answered + left);
    if (!question) {
      painted = [];
      box.replaceChildren();
      heading.textContent = left ? "You skipped the questions that are left" : "No more questions";
      about.textContent = "Every question that is left would put right less than one item, or was skipped.";
      bar.hidden = true;
      heading.focus({ preventScroll: true });
      return;
    }
    const share = question.kind === "doubtful" ? "" : ` · yes is ${percent(question.probability)} likely`;
    about.textContent = `${count(left, "question")} left, expected to put right ${Math.round(gain).toLocaleString("en")} of ${store.state.items.new.toLocaleString("en")} items; this one about ${question.gain.toFixed(question.gain < 10 ? 1 : 0)}${share}`;
    show();
  }

  async function answer(isYes) {
    if (!question || busy) return;
    busy = true;
    const { kind, clusters, parts } = question;
    const [a, b] = clusters.map(className);
    let done;
    if (kind === "doubtful") {
      const [out, rest] = [parts[0].filter((row) => marked.has(row)), parts[0].filter((row) => !marked.has(row))];
      const to = out.length || isYes ? clusters[0] : clusters[1]; // without a mark, all belong to one of the two
      done = !rest.length || (await act("move", { rows: rest, to }, `${count(rest.length, "item")}: ${className(to)}`));
      if (done && out.length) done = await (isYes ? act("move", { rows: out, to: clusters[1] }, `Moved ${count(out.length, "item")} to ${b}`) : act("reject", { rows: out }, `Rejected ${count(out.length, "item")}`));
    } else if (!isYes) done = await act("no", { question: kind, clusters }, "Answered no");
    else if (kind === "merge") done = await act("merge", { clusters }, `Merged ${a} and ${b}`);
    else if (kind === "known") done = await act("known", { cluster: clusters[0], class: clusters[1] }, `${a} is ${b}`);
    else done = await act("split", { cluster: clusters[0], parts }, `Split ${a} into ${parts.length}`);
    busy = false;
    if (done) answered += 1;
  }

  const pass = () => {
    if (!question) return;
    skipped.add(keyOf(question));
    next();
  };
  const goto = () => question && (location.hash = `#/class/${question.clusters[0]}`);
  yes.addEventListener("click", () => answer(true));
  no.addEventListener("click", () => answer(false));
  skip.addEventListener("click", pass);
  open.addEventListener("click", goto);
  const offs = [listen(() => next().catch(() => {})), thumbs.listen(paint), infos.listen(paint)];
  window.addEventListener("resize", paint);
  const KEYS = { y: () => answer(true), n: () => answer(false), ArrowRight: pass, Enter: goto };
  return {
    node,
    focus: () => heading.focus({ preventScroll: true }),
    shown: () => next().catch((error) => error.trouble || Promise.reject(error)),
    leave: () => {
      turn += 1;
      offs.forEach((off) => off());
      window.removeEventListener("resize", paint);
    },
    key: (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return false;
      if (event.target instanceof HTMLButtonElement && event.key === "Enter") return false;
      KEYS[event.key]();
      return true;
    },
  };
}
