// Elements by hand. Text goes in as text: names and sentences come from the cluster and are never markup.

export const $ = (id) => document.getElementById(id);

export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") element.className = value;
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Puts `content` in the place of what `host` holds. What is equal stays as it is, and with it the focus and the text that a
// person has selected in it; a focused button that goes is followed by the one that leads to the same place.
export function update(host, content) {
  const fresh = content.flat(Infinity).filter(Boolean);
  const focused = host.contains(document.activeElement) ? document.activeElement : null;
  const alike = () => [...host.querySelectorAll("button")].filter((one) => one.dataset.to === focused.dataset.to);
  const nth = focused ? alike().indexOf(focused) : -1;
  fresh.forEach((one, i) => {
    const old = host.childNodes[i];
    if (!old) host.append(one);
    else if (!old.isEqualNode(one)) old.replaceWith(one);
  });
  while (host.childNodes.length > fresh.length) host.lastChild.remove();
  if (!focused || focused.isConnected) return;
  (alike()[Math.max(nth, 0)] ?? alike()[0] ?? host.closest("[tabindex]"))?.focus({ preventScroll: true });
}

export const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : noun.endsWith("f") ? "" : "s"}`;

// One call a frame, however often it is asked for.
export function onceAFrame(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      work();
    });
  };
}

export function table(head, rows) {
  const cell = (tag, content, column) => el(tag, { class: column.number ? "number" : column.name ? "name" : null }, content);
  return el("table", {},
    el("thead", {}, el("tr", {}, head.map((column) => cell("th", column.title, column)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((content, i) => cell("td", content, head[i]))))));
}
