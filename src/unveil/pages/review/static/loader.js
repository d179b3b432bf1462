// Things about single items, fetched in blocks: small pictures and descriptions. What is wanted now comes first.

import { fetched, get } from "./api.js";
import { seen } from "./dom.js";
import { store } from "./store.js";

const BLOCK = 64;
const WAITING = 512; // older wishes are dropped: they have scrolled away
const COLUMNS = 8;
const TRIES = 4;
const PAUSE = 500; // milliseconds before a failed request is sent again; doubles each time

class Loader {
  constructor(load, kept) {
    this.load = load;
    this.kept = kept;
    this.loaded = new Map();
    this.blocks = [];
    this.waiting = [];
    this.coming = new Set();
    this.listeners = new Set();
    this.busy = 0;
  }

  get(row) {
    return this.loaded.get(row);
  }

  listen(call) {
    this.listeners.add(call);
    return () => this.listeners.delete(call);
  }

  want(rows) {
    const missing = rows.filter((row) => !this.loaded.has(row) && !this.coming.has(row));
    if (!missing.length) return;
    const wished = new Set(missing);
    this.waiting = [...missing, ...this.waiting.filter((row) => !wished.has(row))].slice(0, WAITING);
    queueMicrotask(() => this.next());
  }

  /** Ask again: answers may be out of date. */
  forget() {
    this.loaded.clear();
    this.blocks = [];
  }

  async next() {
    while (this.busy < 3 && this.waiting.length) {
      const rows = this.waiting.splice(0, BLOCK);
      rows.forEach((row) => this.coming.add(row));
      this.busy += 1;
      this.block(rows).finally(() => {
        this.busy -= 1;
        rows.forEach((row) => this.coming.delete(row));
        this.next();
      });
    }
  }

  async block(rows, tries = 0) {
    let values;
    try {
      values = await this.load(rows);
    } catch (error) {
      if (tries >= TRIES || (error.status > 0 && error.status < 500)) return; // asked for again when wanted
      await new Promise((resolve) => setTimeout(resolve, PAUSE * 2 ** tries));
      return this.block(rows, tries + 1);
    }
    rows.forEach((row, place) => this.loaded.set(row, values[place]));
    this.blocks.push(rows);
    if (this.blocks.length > this.kept) this.blocks.shift().forEach((row) => this.loaded.delete(row));
    for (const call of [...this.listeners]) call();
  }
}

let tile = 104; // how wide tiles are, in CSS pixels

/** Small pictures of as many pixels as tiles have on this screen. */
function thumbSide() {
  const wanted = tile * (window.devicePixelRatio || 1);
  return store.about.sides.find((side) => side >= wanted * 0.85) ?? store.about.sides.at(-1);
}

export function setTile(width) {
  const before = thumbSide();
  tile = width;
  if (thumbSide() !== before) thumbs.forget();
}

async function sheet(rows) {
  const side = thumbSide();
  const response = await fetched(`/api/thumbs?side=${side}&rows=${rows.join(",")}`);
  const sizes = response.headers.get("X-Sizes").split(",");
  const image = await createImageBitmap(await response.blob());
  return sizes.map((size, place) => {
    const [width, height] = size.split("x").map(Number);
    return { image, width, height, x: (place % COLUMNS) * side, y: Math.floor(place / COLUMNS) * side };
  });
}

export const thumbs = new Loader(sheet, 60);
export const infos = new Loader(async (rows) => {
  const items = await get(`/api/items?rows=${rows.join(",")}`);
  return items.map((item) => ({ ...item, id: seen(item.id), first: seen(item.first) }));
}, 200);

const LARGE = 24; // large pictures kept
const large = new Map();

/** The address of a large picture, or null where it cannot be read. Pictures need the key, so they are fetched. */
export async function pictureAddress(row) {
  if (!large.has(row)) {
    const address = fetched(`/api/item/${row}`)
      .then((answer) => answer.blob())
      .then((blob) => URL.createObjectURL(blob))
      .catch((error) => {
        large.delete(row);
        if (error.status !== 404) throw error;
        return null;
      });
    large.set(row, address);
    if (large.size > LARGE) {
      const [oldest, made] = large.entries().next().value;
      large.delete(oldest);
      made.then((one) => one && URL.revokeObjectURL(one), () => {});
    }
  }
  return large.get(row);
}

/** Draw a small picture into a box, whole, in its own shape. False while it is not here. */
export function draw(context, row, x, y, width, height) {
  const cell = thumbs.get(row);
  if (!cell || !cell.width) return cell !== undefined;
  const scale = Math.min(width / cell.width, height / cell.height);
  const [w, h] = [Math.round(cell.width * scale), Math.round(cell.height * scale)];
  context.imageSmoothingQuality = "high";
  const [left, top] = [Math.round(x + (width - w) / 2), Math.round(y + (height - h) / 2)];
  context.drawImage(cell.image, cell.x, cell.y, cell.width, cell.height, left, top, w, h);
  return true;
}

/** Several pictures on one canvas, in columns. False while some are not here. */
export function mosaic(canvas, rows, columns, lines, gap = 2) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth * ratio, canvas.clientHeight * ratio];
  if (!width) return false;
  if (canvas.width !== Math.round(width)) [canvas.width, canvas.height] = [Math.round(width), Math.round(height)];
  const context = canvas.getContext("2d");
  const space = gap * ratio;
  const [w, h] = [(width - space * (columns - 1)) / columns, (height - space * (lines - 1)) / lines];
  const shown = rows.slice(0, columns * lines);
  thumbs.want(shown);
  return shown
    .map((row, i) => draw(context, row, (i % columns) * (w + space), Math.floor(i / columns) * (h + space), w, h))
    .every(Boolean);
}

export const signed = (number) => `${number < 0 ? "−" : "+"}${Math.abs(number)}`;

/** An item without a picture in a few words: its text, or its most unusual columns. */
export const inWords = (info, most) => (info.text ? [info.text] : unusualColumns(info).slice(0, most).map((pair) => pair.join(": ")));

/** The columns in which an item is farthest from the mean, as pairs of column and value. */
export const unusualColumns = (info) =>
  info.columns.map((one) => [one.column, `${one.value} (${signed(one.deviations)} σ)`]);
