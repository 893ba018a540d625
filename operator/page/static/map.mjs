// The map: two canvases, one for what is there and one for what is pointed at, with zoom, drag and keys.

import { $, onceAFrame } from "./dom.mjs";
import { drawAll, drawOver } from "./draw.mjs";
import { CELL, findAt, layOut, neighbour, STEP } from "./layout.mjs";
import { onTheme } from "./palette.mjs";

const MARGIN = 14;
const LARGEST_CELL = 150; // pixels, of what "fit" shows
const ARROWS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];

export class FabricMap {
  // onPick({kind, key}), onMark(node), onHover({node} or {leaf} or null, x, y)
  constructor({ onPick, onMark, onHover }) {
    Object.assign(this, { onPick, onMark, onHover });
    this.host = $("map");
    this.base = $("base").getContext("2d", { alpha: false });
    this.over = $("over").getContext("2d");
    this.shown = { model: null, chosen: null, rail: null };
    this.selected = this.hovered = this.marked = null;
    this.view = { scale: 1, x: 0, y: 0 };
    this.fitted = true; // until somebody moves it
    this.draw = onceAFrame(() => this.#drawNow());
    this.drawOver = onceAFrame(() => this.#drawOverNow());
    new ResizeObserver(() => this.#resized()).observe(this.host);
    onTheme(() => this.draw());
    this.#listen();
  }

  // A rail of null is all of them, chosen of null all nodes.
  show(model, chosen, rail, structureChanged) {
    this.shown = { model, chosen, rail };
    if (structureChanged || !this.layout) this.#layOut();
    else this.#rebind();
    this.draw();
  }
  select(selected) {
    this.selected = selected;
    this.drawOver();
  }
  mark(name) {
    this.marked = name;
    const cell = this.layout?.cells.get(name);
    if (cell && !this.fitted) this.#bringIntoView(cell);
    this.drawOver();
  }
  zoom(direction) {
    if (direction === "fit") this.#fit();
    else this.#zoomAt(direction === "in" ? 1.4 : 1 / 1.4, this.base.canvas.width / 2, this.base.canvas.height / 2);
  }

  #layOut() {
    if (!this.base.canvas.width) return;
    this.layout = layOut(this.shown.model, this.base.canvas.width, this.base.canvas.height);
    if (this.fitted) this.#fit();
  }
  // The places stay; nodes and leaves are new objects.
  #rebind() {
    const { model } = this.shown;
    for (const [name, cell] of this.layout.cells) cell.node = model.byName.get(name) ?? cell.node;
    for (const cell of this.layout.leafCells.values()) cell.leaf = model.fabrics[cell.leaf.fabric]?.leaves[cell.leaf.index] ?? cell.leaf;
  }
  #resized() {
    this.ratio = devicePixelRatio || 1;
    const { clientWidth, clientHeight } = this.host;
    for (const { canvas } of [this.base, this.over]) {
      canvas.width = Math.round(clientWidth * this.ratio);
      canvas.height = Math.round(clientHeight * this.ratio);
    }
    this.overEmpty = true;
    if (this.shown.model) this.#layOut();
    this.draw();
  }
  #fit() {
    if (!this.layout) return;
    const { width, height } = this.base.canvas;
    const margin = MARGIN * this.ratio;
    const scale = Math.min((width - 2 * margin) / this.layout.width, (height - 2 * margin) / this.layout.height, (LARGEST_CELL * this.ratio) / CELL);
    // Small cells lie whole pixels apart, or their gaps are of one pixel here and of none there.
    const step = scale * STEP;
    const even = step >= 4 && step < 16 ? Math.floor(step) / STEP : scale;
    this.view = { scale: even, x: Math.round((width - this.layout.width * even) / 2), y: Math.round(Math.max(margin, (height - this.layout.height * even) / 2)) };
    this.fitted = true;
    this.draw();
  }
  #zoomAt(factor, x, y) {
    if (!this.layout) return;
    const { scale } = this.view;
    const wanted = Math.min(Math.max(scale * factor, 0.05), (240 * this.ratio) / CELL);
    this.view = { scale: wanted, x: x - ((x - this.view.x) * wanted) / scale, y: y - ((y - this.view.y) * wanted) / scale };
    this.fitted = false;
    this.draw();
  }
  #bringIntoView(cell) {
    const { width, height } = this.base.canvas;
    const { scale } = this.view;
    const x = this.view.x + cell.x * scale, y = this.view.y + cell.y * scale, size = CELL * scale, edge = 30 * this.ratio;
    if (x < edge) this.view.x += edge - x;
    if (y < edge) this.view.y += edge - y;
    if (x + size > width - edge) this.view.x -= x + size - width + edge;
    if (y + size > height - edge) this.view.y -= y + size - height + edge;
    this.draw();
  }

  #drawNow() {
    if (!this.layout) return;
    const begun = performance.now();
    drawAll(this.base, { ...this.shown, layout: this.layout, view: this.view, ratio: this.ratio });
    this.host.dataset.drawMs = (performance.now() - begun).toFixed(1);
    // What lies there now may be another, or say something else.
    if (this.hovered) this.#hover(this.#at(this.pointer).found, this.pointer);
    this.#drawOverNow();
  }
  #drawOverNow() {
    if (!this.layout) return;
    const focused = document.activeElement === this.host || document.activeElement === $("list");
    const { marked, hovered, selected, view, ratio, layout } = this;
    // An empty canvas that is cleared again is put together with the other again: half of a frame's time.
    const nothing = !selected && !hovered && !(focused && marked);
    if (nothing && this.overEmpty) return;
    this.overEmpty = nothing;
    drawOver(this.over, { model: this.shown.model, layout, view, ratio, marked, hovered, selected, focused });
  }

  #at(event) {
    const box = this.host.getBoundingClientRect();
    const x = (event.clientX - box.left) * this.ratio, y = (event.clientY - box.top) * this.ratio;
    const found = this.layout && findAt(this.layout, (x - this.view.x) / this.view.scale, (y - this.view.y) / this.view.scale);
    return { x, y, found };
  }

  #listen() {
    const { host } = this;
    let drag = null, moved = false;
    host.addEventListener("pointerdown", (event) => {
      if (!this.layout || event.button !== 0 || event.target.closest("button")) return;
      drag = { x: event.clientX, y: event.clientY, view: { ...this.view } };
      moved = false;
      host.setPointerCapture(event.pointerId);
    });
    host.addEventListener("pointermove", (event) => {
      if (drag) {
        const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
        if (!moved && Math.abs(dx) + Math.abs(dy) < 4) return;
        moved = true;
        host.classList.add("dragging");
        this.fitted = false;
        this.view = { scale: this.view.scale, x: drag.view.x + dx * this.ratio, y: drag.view.y + dy * this.ratio };
        this.#hover(null, event);
        this.draw();
      } else {
        this.#hover(event.target.closest("button") ? null : this.#at(event).found, event);
      }
    });
    host.addEventListener("pointerup", (event) => {
      if (drag && !moved) this.#pick(this.#at(event).found);
      drag = null;
      host.classList.remove("dragging");
    });
    host.addEventListener("pointercancel", () => { drag = null; });
    host.addEventListener("pointerleave", (event) => this.#hover(null, event));
    host.addEventListener("wheel", (event) => {
      event.preventDefault();
      const { x, y } = this.#at(event);
      this.#zoomAt(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), x, y);
    }, { passive: false });
    host.addEventListener("focus", () => this.drawOver());
    host.addEventListener("blur", () => this.drawOver());
    host.addEventListener("keydown", (event) => this.#key(event));
    $("zoom").addEventListener("click", (event) => event.target.dataset.zoom && this.zoom(event.target.dataset.zoom));
  }

  #key(event) {
    if (event.target !== this.host || event.ctrlKey || event.metaKey || event.altKey) return;
    if (ARROWS.includes(event.key) && this.layout) {
      const node = neighbour(this.layout, this.marked, event.key);
      if (node) this.onMark(node);
    } else if (event.key === "Enter" && this.marked) {
      this.onPick({ kind: "node", key: this.marked });
    } else {
      return;
    }
    event.preventDefault();
  }
  #pick(found) {
    if (found?.node) this.onPick({ kind: "node", key: found.node.name });
    else if (found?.leaf) this.onPick({ kind: "leaf", key: `${found.leaf.fabric}/${found.leaf.index}` });
    else this.onPick(null);
  }
  #hover(found, event) {
    const same = found?.node === this.hovered?.node && found?.leaf === this.hovered?.leaf;
    this.hovered = found ?? null;
    this.pointer = { clientX: event.clientX, clientY: event.clientY };
    this.onHover(this.hovered, event.clientX, event.clientY);
    if (!same) this.drawOver();
  }
}
