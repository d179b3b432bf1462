// The map without its drawing: points, classes, what is selected, which part is in view, and which item is where.

const REACH = 9; // pixels from the pointer to a point

export class Scene {
  points = new Float32Array(0); // x and y of each item, 0..1
  labels = new Int32Array(0);
  fresh = new Uint8Array(0); // which items came without a label
  groups = new Map(); // rows by class
  centers = []; // where the name of each class stands, the most important first
  selected = new Set();
  lit = null; // the class that is pointed at
  lasso = null; // pixels of the line that is being drawn
  view = { scale: 1, x: 0, y: 0 };

  /** `known`: how many classes are known; they have the first numbers. */
  constructor(canvas, known) {
    this.canvas = canvas;
    this.known = known;
  }

  /** From coordinates to pixels: one scale and where the origin is. */
  frame() {
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const s = Math.min(width, height) * 0.92 * this.view.scale;
    return { width, height, s, left: width / 2 - s / 2 + this.view.x, top: height / 2 - s / 2 + this.view.y };
  }

  /** The pixels of an item. */
  place(row, { s, left, top }) {
    return [left + this.points[2 * row] * s, top + this.points[2 * row + 1] * s];
  }

  put(points) {
    this.points = points;
    this.findCenters();
  }

  label(labels) {
    this.labels = labels;
    this.groups = new Map();
    labels.forEach((id, row) => id >= 0 && (this.groups.get(id)?.push(row) ?? this.groups.set(id, [row])));
    this.findCenters();
  }

  /** The middle of every class: novel ones before known ones, the largest first. */
  findCenters() {
    if (!this.points.length) return;
    this.centers = [...this.groups].map(([id, rows]) => {
      const middle = (axis) => rows.map((row) => this.points[2 * row + axis]).sort((a, b) => a - b)[Math.floor(rows.length / 2)];
      return { id, x: middle(0), y: middle(1), size: rows.length };
    });
    this.centers.sort((a, b) => (b.id >= this.known) - (a.id >= this.known) || b.size - a.size);
  }

  /** New items of a class. */
  members(id) {
    return (this.groups.get(id) ?? []).filter((row) => this.fresh[row]);
  }

  /** The item nearest to a pixel; -1 where none is near. */
  nearest(x, y) {
    const frame = this.frame();
    let [best, far] = [-1, REACH * REACH];
    for (let row = 0; row < this.labels.length; row += 1) {
      const [px, py] = this.place(row, frame);
      const apart = (px - x) ** 2 + (py - y) ** 2;
      if (apart < far && this.labels[row] >= 0) [best, far] = [row, apart];
    }
    return best;
  }

  /** New items within the line that was drawn. */
  enclosed() {
    const frame = this.frame();
    const path = this.outline();
    const context = document.createElement("canvas").getContext("2d");
    const rows = [];
    for (let row = 0; row < this.labels.length; row += 1) {
      if (this.fresh[row] && this.labels[row] >= 0 && context.isPointInPath(path, ...this.place(row, frame))) rows.push(row);
    }
    return rows;
  }

  outline() {
    const path = new Path2D();
    this.lasso.forEach(([x, y], i) => (i ? path.lineTo(x, y) : path.moveTo(x, y)));
    path.closePath();
    return path;
  }

  zoom(by, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const scale = Math.max(0.5, Math.min(60, this.view.scale * by));
    const real = scale / this.view.scale;
    const [cx, cy] = [x - this.canvas.clientWidth / 2, y - this.canvas.clientHeight / 2];
    this.view = { scale, x: cx - (cx - this.view.x) * real, y: cy - (cy - this.view.y) * real };
  }

  pan(x, y) {
    this.view = { ...this.view, x: this.view.x + x, y: this.view.y + y };
  }

  whole() {
    this.view = { scale: 1, x: 0, y: 0 };
  }
}
