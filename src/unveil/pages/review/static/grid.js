// Thousands of items in a scrolling grid of which only the visible lines are in the page.

import { announce, h } from "./dom.js";
import { draw, infos, inWords, thumbs } from "./loader.js";
import { className, store } from "./store.js";

const OVER = 2; // lines kept above and below what is seen
const GAP = 8;

export class Grid {
  /** `options`: caption(row) -> text under a picture, group(index) -> number, changed(), opened(row). */
  constructor(options) {
    this.options = options;
    this.rows = [];
    this.confidence = new Map();
    this.selected = new Set();
    this.at = 0;
    this.anchor = 0;
    this.tiles = new Map();
    this.columns = 1;
    this.space = h("div", { class: "space" });
    const listbox = { class: "grid", role: "listbox", tabindex: 0, "aria-multiselectable": "true", "aria-label": "Items" };
    this.node = h("div", listbox, this.space);
    this.pictures = store.about.pictures;
    this.node.classList.toggle("texts", !this.pictures);
    this.least = this.pictures ? options.size ?? 104 : 250;
    this.node.addEventListener("scroll", () => this.soon(), { passive: true });
    this.node.addEventListener("click", (event) => this.click(event));
    this.node.addEventListener("dblclick", (event) => this.tileAt(event) !== null && this.options.opened(this.rows[this.at]));
    this.watch = new ResizeObserver(() => this.layout());
    this.watch.observe(this.node);
    this.offs = [thumbs.listen(() => this.paint()), infos.listen(() => this.paint())];
  }

  leave() {
    this.watch.disconnect();
    this.offs.forEach((off) => off());
    clearTimeout(this.idle);
  }

  /** Where somebody is: to come back to it. */
  place() {
    return { row: this.rows[this.at], top: this.node.scrollTop, selected: [...this.selected] };
  }

  restore({ row, top, selected }) {
    const inside = new Set(this.rows);
    const at = this.rows.indexOf(row);
    if (at >= 0) this.at = this.anchor = at;
    this.selected = new Set(selected.filter((one) => inside.has(one)));
    this.node.scrollTop = top;
    this.render();
    this.options.changed();
  }

  put(rows, confidence) {
    const was = this.rows[this.at];
    this.rows = rows;
    this.confidence = confidence;
    const inside = new Set(rows);
    this.selected.forEach((row) => inside.has(row) || this.selected.delete(row));
    const again = rows.indexOf(was);
    this.at = again >= 0 ? again : Math.max(0, Math.min(this.at, rows.length - 1));
    this.anchor = this.at;
    this.tiles.forEach((tile) => tile.remove());
    this.tiles.clear();
    this.layout();
    this.options.changed();
  }

  layout() {
    const { paddingLeft, paddingRight } = getComputedStyle(this.node);
    const width = this.node.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    if (width <= 0) return;
    this.columns = Math.max(1, Math.floor((width + GAP) / (this.least + GAP)));
    this.width = Math.floor((width + GAP) / this.columns) - GAP;
    this.height = this.pictures ? this.width + (this.options.caption ? 24 : 0) : 84;
    this.line = this.height + GAP;
    const lines = Math.ceil(this.rows.length / this.columns);
    this.space.style.height = `${lines * this.line + 20}px`;
    this.tiles.forEach((tile) => tile.remove());
    this.tiles.clear();
    this.render();
  }

  /** How wide tiles are at least. */
  resize(least) {
    if (!this.pictures) return;
    this.least = least;
    this.layout();
    this.go(this.at);
  }

  soon() {
    if (this.framed) return;
    this.framed = requestAnimationFrame(() => {
      this.framed = 0;
      this.render();
    });
  }

  render() {
    const { scrollTop, clientHeight } = this.node;
    const first = Math.max(0, Math.floor(scrollTop / this.line) - OVER) * this.columns;
    const last = Math.min(this.rows.length, (Math.ceil((scrollTop + clientHeight) / this.line) + OVER) * this.columns);
    for (const [index, tile] of this.tiles) {
      if (index < first || index >= last) {
        tile.remove();
        this.tiles.delete(index);
      }
    }
    const fresh = [];
    for (let index = first; index < last; index += 1) {
      if (!this.tiles.has(index)) fresh.push(this.tile(index));
    }
    this.space.append(...fresh);
    const seen = this.rows.slice(first, last);
    if (this.pictures) thumbs.want(seen);
    clearTimeout(this.idle);
    this.idle = setTimeout(() => infos.want(seen), this.pictures ? 150 : 30);
    this.paint();
    this.mark();
  }

  tile(index) {
    const row = this.rows[index];
    const inside = this.pictures ? h("canvas", { "aria-hidden": "true" }) : h("div", { class: "words" }, "…");
    const confidence = this.confidence.get(row);
    const badge = h("span", { class: "sure", "aria-hidden": "true", "data-sure": confidence ?? null }); // drawn by the style sheet
    const caption = this.options.caption ? h("span", { class: "caption" }) : null;
    const label = this.pictures ? `Item ${index + 1}` : null; // until its details are here
    const tile = h(
      "div",
      { class: "tile", role: "option", id: `tile-${index}`, "aria-setsize": this.rows.length, "aria-posinset": index + 1, "aria-label": label },
      inside,
      badge,
      caption,
    );
    badge.classList.toggle("low", confidence < 70);
    const group = this.options.group?.(index);
    if (group !== undefined) tile.classList.toggle("odd", group % 2 === 1);
    tile.style.width = `${this.width}px`;
    tile.style.height = `${this.height}px`;
    const [x, y] = [(index % this.columns) * (this.width + GAP), Math.floor(index / this.columns) * this.line];
    tile.style.transform = `translate(${x}px, ${y}px)`;
    this.tiles.set(index, tile);
    return tile;
  }

  paint() {
    const ratio = window.devicePixelRatio || 1;
    for (const [index, tile] of this.tiles) {
      const row = this.rows[index];
      const info = infos.get(row);
      if (this.pictures && !tile.drawn) {
        const canvas = tile.firstChild;
        const side = Math.round(this.width * ratio);
        if (thumbs.get(row) !== undefined) {
          canvas.width = canvas.height = side;
          tile.drawn = draw(canvas.getContext("2d"), row, 0, 0, side, side);
          if (!thumbs.get(row)?.width) tile.classList.add("missing");
        }
      }
      if (info && !tile.described) {
        tile.described = true;
        const caption = this.options.caption ? `${className(info.class)}, ` : "";
        if (this.pictures) tile.setAttribute("aria-label", `${caption}${info.id}, ${this.confidence.get(row) ?? ""} % confidence`);
        if (!this.pictures) {
          const lines = inWords(info, 2).map((line) => h("span", { class: info.text ? "text" : "muted" }, line));
          tile.firstChild.replaceChildren(h("strong", {}, info.id), ...lines);
        }
        if (this.options.caption) tile.querySelector(".caption").textContent = className(info.class);
      }
    }
  }

  mark() {
    for (const [index, tile] of this.tiles) {
      tile.setAttribute("aria-selected", String(this.selected.has(this.rows[index])));
      tile.classList.toggle("at", index === this.at);
    }
    if (this.tiles.has(this.at)) this.node.setAttribute("aria-activedescendant", `tile-${this.at}`);
    else this.node.removeAttribute("aria-activedescendant");
  }

  tileAt(event) {
    const tile = event.target.closest?.(".tile");
    return tile ? Number(tile.id.slice(5)) : null;
  }

  click(event) {
    const index = this.tileAt(event);
    if (index === null) return;
    if (event.shiftKey) this.range(index);
    else if (event.ctrlKey || event.metaKey || event.pointerType === "touch") this.toggle(index); // taps add up
    else {
      this.selected.clear();
      this.toggle(index);
    }
    this.go(index);
  }

  toggle(index) {
    const row = this.rows[index];
    if (row === undefined) return;
    if (!this.selected.delete(row)) this.selected.add(row);
    this.anchor = index;
    this.changed();
  }

  range(index) {
    const [low, high] = [Math.min(this.anchor, index), Math.max(this.anchor, index)];
    this.selected = new Set(this.rows.slice(low, high + 1));
    this.changed();
  }

  all() {
    this.selected = new Set(this.rows);
    this.changed();
  }

  clear() {
    this.selected.clear();
    this.changed();
  }

  changed() {
    this.mark();
    this.options.changed();
    announce(`${this.selected.size} selected`);
  }

  go(index) {
    this.at = Math.max(0, Math.min(index, this.rows.length - 1));
    const top = Math.floor(this.at / this.columns) * this.line;
    const { scrollTop, clientHeight } = this.node;
    if (top < scrollTop) this.node.scrollTop = top;
    else if (top + this.line > scrollTop + clientHeight - 40) this.node.scrollTop = top + this.line - clientHeight + 40;
    this.render();
    this.options.changed();
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.node.clientHeight / this.line)) * this.columns;
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns, PageDown: page, PageUp: -page };
    const ends = { Home: 0, End: this.rows.length - 1 };
    if (event.key in steps || event.key in ends) {
      const next = event.key in ends ? ends[event.key] : this.at + steps[event.key];
      if (next < 0 || next >= this.rows.length) return true;
      if (event.shiftKey) {
        this.range(next);
      } else this.anchor = next;
      this.go(next);
      return true;
    }
    if ((event.ctrlKey || event.metaKey) && event.key === "a") {
      this.all();
      return true;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    if (event.key === " ") this.toggle(this.at);
    else if (event.key === "Enter") this.options.opened(this.rows[this.at]);
    else if (event.key === "Escape" && this.selected.size) this.clear();
    else return false;
    return true;
  }
}
