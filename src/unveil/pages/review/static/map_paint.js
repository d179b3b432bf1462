// Draw the map: points, pictures where few are in view, names of classes, the selection and the line around it.

import { draw, thumbs } from "./loader.js";
import { className, store } from "./store.js";

const THUMBS = 90; // with fewer items in view, they are shown as pictures
const THUMB = 44; // pixels
export const dark = window.matchMedia("(prefers-color-scheme: dark)");

/** The server says which color a class has: the report has the same. */
export const color = (id) => (store.byId.get(id)?.color ?? store.about.known_color)[dark.matches ? "dark" : "light"];

export class Painter {
  constructor(scene, canvas) {
    this.scene = scene;
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.layer = document.createElement("canvas"); // the points: drawing around them must not draw them again
    this.framed = 0;
    this.stale = true;
  }

  /** Draw with the next frame; `points`: they have moved, or have other colors. */
  soon(points = true) {
    this.stale ||= points;
    this.framed ||= requestAnimationFrame(() => {
      this.framed = 0;
      this.paint();
    });
  }

  paint() {
    const { canvas, context, layer, scene } = this;
    const ratio = window.devicePixelRatio || 1;
    const frame = scene.frame();
    if (!frame.width) return;
    const n = scene.labels.length;
    const dot = Math.max(2, Math.min(7, (n > 20000 ? 2 : n > 4000 ? 3 : 5) * Math.sqrt(scene.view.scale)));
    if (this.stale) this.paintPoints(frame, ratio, dot);
    this.stale = false;
    canvas.width = layer.width;
    canvas.height = layer.height;
    if (layer.width && layer.height) context.drawImage(layer, 0, 0);
    context.scale(ratio, ratio);
    canvas.dataset.pictures = this.paintPictures(frame);
    this.paintNames(frame);
    this.paintSelection(frame, dot);
  }

  paintPoints(frame, ratio, dot) {
    const { groups, known, lit } = this.scene;
    this.layer.width = frame.width * ratio;
    this.layer.height = frame.height * ratio;
    const ink = this.layer.getContext("2d");
    ink.scale(ratio, ratio);
    const order = [...groups.keys()].sort((a, b) => (a >= known) - (b >= known) || (a === lit) - (b === lit));
    for (const id of order) {
      ink.fillStyle = color(id);
      ink.globalAlpha = lit !== null && id !== lit ? 0.15 : id < known ? 0.7 : 0.85;
      for (const row of groups.get(id)) {
        const [x, y] = this.scene.place(row, frame);
        if (x < -5 || y < -5 || x > frame.width + 5 || y > frame.height + 5) continue;
        if (dot < 4) ink.fillRect(x - dot / 2, y - dot / 2, dot, dot);
        else {
          ink.beginPath();
          ink.arc(x, y, dot / 2, 0, 7);
          ink.fill();
        }
      }
    }
  }

  /** Pictures in place of points, where few are in view. */
  paintPictures(frame) {
    const { context, scene } = this;
    if (!store.about.pictures || scene.view.scale < 2) return false;
    const shown = [];
    for (let row = 0; row < scene.labels.length && shown.length <= THUMBS; row += 1) {
      const [x, y] = scene.place(row, frame);
      if (scene.labels[row] >= 0 && x > 0 && y > 0 && x < frame.width && y < frame.height) shown.push([row, x, y]);
    }
    if (shown.length > THUMBS) return false;
    thumbs.want(shown.map(([row]) => row));
    for (const [row, x, y] of shown) {
      context.strokeStyle = color(scene.labels[row]);
      context.lineWidth = 3;
      context.strokeRect(x - THUMB / 2, y - THUMB / 2, THUMB, THUMB);
      draw(context, row, x - THUMB / 2, y - THUMB / 2, THUMB, THUMB);
    }
    return true;
  }

  /** Names that do not cover each other; known classes in gray. */
  paintNames({ s, left, top, width, height }) {
    const { canvas, context, scene } = this;
    const boxes = [];
    context.font = "600 13px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    const style = getComputedStyle(document.body);
    const ground = getComputedStyle(canvas.parentElement).backgroundColor;
    for (const one of scene.centers) {
      const [x, y] = [left + one.x * s, top + one.y * s];
      const text = className(one.id).slice(0, 24);
      const half = context.measureText(text).width / 2 + 4;
      if (x < half || y < 10 || x > width - half || y > height - 10) continue;
      if (boxes.some(([a, b, c]) => Math.abs(a - x) < half + c && Math.abs(b - y) < 18)) continue;
      boxes.push([x, y, half]);
      context.lineWidth = 4;
      context.strokeStyle = ground;
      context.strokeText(text, x, y);
      context.fillStyle = one.id < scene.known ? style.getPropertyValue("--muted") : style.color;
      context.fillText(text, x, y);
    }
    canvas.dataset.names = boxes.length;
  }

  paintSelection(frame, dot) {
    const { context, scene } = this;
    context.strokeStyle = context.fillStyle = getComputedStyle(document.body).color;
    context.lineWidth = 1.5;
    context.beginPath();
    for (const row of scene.selected) {
      const [x, y] = scene.place(row, frame);
      context.moveTo(x + dot / 2 + 1.5, y);
      context.arc(x, y, dot / 2 + 1.5, 0, 7);
    }
    context.stroke();
    if (!scene.lasso) return;
    const path = scene.outline();
    context.globalAlpha = 0.12;
    context.fill(path);
    context.globalAlpha = 1;
    context.setLineDash([5, 4]);
    context.stroke(path);
  }
}
