// A list box of any length: only the rows in sight are elements, and each says where among all it stands.

import { el, onceAFrame, update } from "./dom.mjs";

export class List {
  // rows: [{key, sign, title, note, right}] with elements or texts; onMark(key), onOpen(key)
  constructor(host, { onMark, onOpen }) {
    Object.assign(this, { host, onMark, onOpen, rows: [], at: -1 });
    this.inner = el("div", { class: "rows", role: "presentation" });
    this.nothing = el("p", { class: "none", hidden: true });
    host.append(this.inner, this.nothing);
    this.render = onceAFrame(() => this.#render());
    host.addEventListener("scroll", this.render);
    new ResizeObserver(this.render).observe(host);
    host.addEventListener("keydown", (event) => this.#key(event));
    host.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (!row) return;
      this.#go(Number(row.dataset.index));
      this.onOpen(this.rows[this.at].key);
    });
  }

  show(rows, label, nothing) {
    const key = this.rows[this.at]?.key;
    this.rows = rows;
    this.at = rows.findIndex((row) => row.key === key);
    this.host.setAttribute("aria-label", label);
    this.nothing.textContent = nothing;
    this.nothing.hidden = rows.length > 0;
    this.render();
  }
  mark(key, scroll = true) {
    this.at = this.rows.findIndex((row) => row.key === key);
    if (scroll && this.at >= 0) this.#scrollTo(this.at);
    this.render();
  }

  get #height() {
    return Math.round(parseFloat(getComputedStyle(document.documentElement).fontSize) * 3.1);
  }
  #scrollTo(index) {
    const height = this.#height, top = index * height;
    if (top < this.host.scrollTop) this.host.scrollTop = top;
    else if (top + height > this.host.scrollTop + this.host.clientHeight) this.host.scrollTop = top + height - this.host.clientHeight;
  }
  #go(index) {
    this.at = Math.min(Math.max(index, 0), this.rows.length - 1);
    if (this.at < 0) return;
    this.#scrollTo(this.at);
    this.onMark(this.rows[this.at].key);
    this.render();
  }
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.host.clientHeight / this.#height) - 1);
    const to = { ArrowDown: this.at + 1, ArrowUp: this.at < 0 ? 0 : this.at - 1, PageDown: this.at + page, PageUp: this.at - page, Home: 0, End: this.rows.length - 1 }[event.key];
    if (to !== undefined) this.#go(to);
    else if (event.key === "Enter" && this.at >= 0) this.onOpen(this.rows[this.at].key);
    else return;
    event.preventDefault();
  }
  #render() {
    if (this.host.hidden) return;
    const height = this.#height;
    this.inner.style.height = `${this.rows.length * height}px`;
    const first = Math.max(0, Math.floor(this.host.scrollTop / height) - 4);
    const last = Math.min(this.rows.length, Math.ceil((this.host.scrollTop + this.host.clientHeight) / height) + 4);
    const elements = [];
    for (let i = first; i < last; i++) elements.push(this.#row(i, height));
    // The marked one must be there for who reads by it, also out of sight.
    if (this.at >= 0 && (this.at < first || this.at >= last)) elements.push(this.#row(this.at, height));
    // A row that is taken away between press and release of the button gets no click: what is equal stays.
    update(this.inner, elements);
    if (this.at >= 0) this.host.setAttribute("aria-activedescendant", `row-${this.at}`);
    else this.host.removeAttribute("aria-activedescendant");
  }
  #row(i, height) {
    const { sign, title, note, right, spoken } = this.rows[i];
    const element = el("div", {
      class: i === this.at ? "row at" : "row", role: "option", id: `row-${i}`, "data-index": i, "aria-posinset": i + 1,
      "aria-setsize": this.rows.length, "aria-selected": i === this.at ? "true" : "false", "aria-label": spoken,
    }, sign(), el("span", {}, el("b", { title }, title), el("i", { title: note }, note)), el("span", { class: "right" }, right));
    element.style.top = `${i * height}px`;
    element.style.height = `${height}px`;
    return element;
  }
}
