// Joins the parts: what the feed brings goes into the model, what a person does into the filter and the selection, and
// both onto the map, the lists and the panel.

import { $, el, onceAFrame, plural, update } from "./dom.mjs";
import { about, Feed } from "./feed.mjs";
import { chosen, FREE, isFiltering, NO_FILTER } from "./filter.mjs";
import { List } from "./list.mjs";
import { FabricMap } from "./map.mjs";
import { Model, STATES, worstFirst } from "./model.mjs";
import { colours, drawSign, onTheme } from "./palette.mjs";
import { fabricFacts, gangDetails, gangPanel, leafPanel, nodeDetails, nodePanel } from "./panels.mjs";
import { gangOrder, gangRow, nodeRow } from "./rows.mjs";

const MEANINGS = {
  ok: "nothing against it", degraded: "less than it should be", down: "no rail, or no GPU, can be used",
  stale: "its agent has fallen silent", unknown: "nothing is known of it",
};

const model = new Model();
let filter = { ...NO_FILTER };
let selected = null; // {kind: node, leaf or gang, key}
let tab = "nodes";
let structure = "";  // what the layout depends on
let details = { key: "", content: null }; // of the selected, as last answered
let asked = 0;       // how often for details

const map = new FabricMap({ onPick: select, onMark: markNode, onHover: showTip });
const list = new List($("list"), {
  onMark: (key) => (tab === "nodes" ? markNode(model.byName.get(key), false) : map.select({ kind: "gang", key })),
  onOpen: (key) => select({ kind: tab === "nodes" ? "node" : "gang", key }),
});

// ---- what comes

function onDocument(document_) {
  const leaf = selected?.kind === "leaf" ? leafOf(selected.key) : null;
  const ofFabric = leaf && model.fabrics[leaf.fabric].name;
  const came = model.apply(document_);
  if (!came.anything) {
    // What more there is to say of one is asked for by itself, and has no part in this.
    if (selected && selected.kind !== "leaf") askDetails(selected.kind, selected.key);
    return;
  }
  const now = !came.places ? structure : JSON.stringify([model.fabrics.map((fabric) => [fabric.name, fabric.units, fabric.leaves.map((leaf) => [leaf.name, leaf.unit]), fabric.spines.length]),
    model.nodes.map((node) => [node.name, node.fabric, node.unit, node.domain])]);
  const changed = now !== structure;
  structure = now;
  fillChoices();
  if (leaf && came.places) follow(ofFabric, leaf.name);
  if (selected && !exists(selected)) select(null);
  refresh(changed);
  if (selected) openPanel(true);
}

function onState(state, text, why) {
  const live = $("live");
  if (live.textContent !== text) live.textContent = text;
  live.dataset.state = state;
  live.title = why;
  const nothing = $("empty");
  nothing.hidden = model.nodes.length > 0;
  nothing.textContent = state === "live" ? "No node has a NodeTopology yet.\nHeddle's operator makes one for each Node." : why || "Reading the fabric…";
}

// ---- what is shown

const refreshSoon = onceAFrame(() => refresh(false));

// With a gang selected the others' nodes step back.
function shownNames() {
  const names = chosen(model, filter);
  const gang = selected?.kind === "gang" ? model.gangs.get(selected.key) : null;
  if (!gang || !gang.nodes.length) return names;
  return new Set(gang.nodes.map((node) => node.name).filter((name) => !names || names.has(name)));
}

function refresh(structureChanged) {
  const names = chosen(model, filter);
  map.show(model, shownNames(), filter.rail, structureChanged);
  const nodes = model.nodes.filter((node) => !names || names.has(node.name)).sort(worstFirst(model, filter.rail));
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  const gangs = [...model.gangs.values()].filter((gang) => {
    const said = [gang.key, gang.owner, gang.summary, gang.message ?? ""].join("\n").toLowerCase();
    return (!filter.gang || filter.gang === gang.key) && words.every((word) => said.includes(word) || gang.nodes.some((node) => names?.has(node.name)));
  }).sort(gangOrder);
  $("tab-nodes").textContent = `Nodes ${nodes.length.toLocaleString("en")}`;
  $("tab-gangs").textContent = `Gangs ${gangs.length.toLocaleString("en")}${model.gangsLeftOut ? `, ${model.gangsLeftOut.toLocaleString("en")} left out` : ""}`;
  if (tab === "nodes") {
    list.show(nodes.map((node) => lazily(() => nodeRow(model, node, filter.rail), node.name)), `Nodes, ${nodes.length} of ${model.nodes.length}`,
      isFiltering(filter) ? "No node is like that." : "No nodes yet.");
  } else if (tab === "gangs") {
    list.show(gangs.map((gang) => lazily(() => gangRow(gang), gang.key)), `Gangs, ${gangs.length} of ${model.gangs.size}`,
      isFiltering(filter) ? "No gang is like that." : "No gangs: nothing that trains has been seen yet.");
  } else {
    update($("facts"), fabricFacts(model, select));
  }
  showCounts();
}

// A row is made when it comes into sight.
function lazily(make, key) {
  let row = null;
  const get = (name) => (row ??= make())[name];
  return {
    key, get sign() { return get("sign"); }, get title() { return get("title"); }, get note() { return get("note"); },
    get right() { return get("right"); }, get spoken() { return get("spoken"); },
  };
}

function showCounts() {
  const counts = Object.fromEntries(STATES.map((state) => [state, 0]));
  for (const node of model.nodes) {
    const state = model.stateOf(node, filter.rail);
    if (state) counts[state]++;
  }
  for (const label of $("states").querySelectorAll("label")) label.querySelector(".count").textContent = counts[label.dataset.state].toLocaleString("en");
  const held = [...model.gangs.values()].filter((gang) => gang.places);
  $("summary").textContent = model.nodes.length
    ? [model.fabrics.map((fabric) => fabric.name).join(", "), plural(model.nodes.length, "node"), plural(model.gpuCount(), "GPU"),
      plural(held.length, "gang"), `${plural(new Set(held.flatMap((gang) => gang.nodes)).size, "node")} taken`].filter(Boolean).join(" · ") : "";
  $("clear").hidden = !isFiltering(filter);
}

// ---- selection

function exists({ kind, key }) {
  return kind === "node" ? model.byName.has(key) : kind === "gang" ? model.gangs.has(key) : leafOf(key) !== undefined;
}
function leafOf(key) {
  const [fabric, index] = key.split("/").map(Number);
  return model.fabrics[fabric]?.leaves[index];
}

// A leaf's key is its place in a list, which others that come or go move: the one that was selected is found by its name.
function follow(ofFabric, name) {
  const fabric = model.fabrics.find((one) => one.name === ofFabric);
  selected = { kind: "leaf", key: `${fabric?.number}/${fabric?.leaves.findIndex((one) => one.name === name)}` };
  map.select(selected);
}

function select(what) {
  const had = selected;
  selected = what && exists(what) ? what : null;
  details = { key: "", content: null };
  map.select(selected);
  if (selected?.kind === "node") {
    map.mark(selected.key);
    if (tab === "nodes") list.mark(selected.key);
  }
  if (selected) openPanel(false);
  else closePanel();
  if (had?.kind === "gang" || selected?.kind === "gang") refresh(false);
}

function openPanel(again) {
  const { kind, key } = selected;
  const content = (kind === "node" ? nodePanel(model, model.byName.get(key), select)
    : kind === "leaf" ? leafPanel(model, leafOf(key), select) : gangPanel(model, model.gangs.get(key), select)).flat(Infinity).filter(Boolean);
  const more = content.find((one) => one.matches("[data-more]"));
  if (more && details.key === key) update(more, details.content());
  const back = el("button", { class: "back", type: "button", title: "Esc", onclick: () => select(null) }, "close");
  const panel = $("panel");
  const top = panel.scrollTop;
  update(panel, [back, ...content]);
  panel.hidden = false;
  $("list").hidden = $("facts").hidden = true;
  if (again) panel.scrollTop = top;
  else panel.focus({ preventScroll: true });
  if (kind !== "leaf") askDetails(kind, key);
}

async function askDetails(kind, key) {
  const mine = ++asked;
  let content;
  try {
    const answer = await about(kind, key);
    content = () => (kind === "node" ? nodeDetails(answer) : gangDetails(answer));
  } catch (error) {
    // Of a node what stands there already is from the same source, and still true; but not of one that cannot be read.
    if (kind === "gang" || error.status === 422) content = () => [el("p", { class: "soft" }, `more cannot be read: ${error.message}`)];
  }
  if (!content || mine !== asked || selected?.key !== key) return;
  details = { key, content };
  const more = $("panel").querySelector("[data-more]");
  if (more) update(more, content());
}

function closePanel() {
  const panel = $("panel");
  const inside = panel.contains(document.activeElement);
  panel.hidden = true;
  $("list").hidden = tab === "fabric";
  $("facts").hidden = tab !== "fabric";
  list.render();
  if (inside) (tab === "fabric" ? $("facts") : $("list")).focus();
}

function markNode(node, fromMap = true) {
  if (!node) return;
  map.mark(node.name);
  if (!fromMap) return;
  if (tab === "nodes") list.mark(node.name);
  $("spoken").textContent = nodeRow(model, node, filter.rail).spoken;
}

function showTip(found, x, y) {
  const tip = $("tip");
  tip.hidden = !found;
  if (!found) return;
  const { node, leaf } = found;
  if (node) {
    const gangs = node.gangs.map(({ gang }) => gang.key).join(", ");
    tip.replaceChildren(el("b", {}, node.name), el("span", {}, [model.stateOf(node, filter.rail), model.unitName(node), gangs || "free"].filter(Boolean).join(" · ")),
      ...node.reasons.map((reason) => el("span", {}, reason)));
  } else {
    tip.replaceChildren(el("b", {}, leaf.name), el("span", {}, `${leaf.rail >= 0 ? `rail ${leaf.rail} · ` : ""}${leaf.full} links full, ${leaf.slow} slow, ${leaf.out} down`));
  }
  const box = $("map").getBoundingClientRect();
  tip.style.left = `${Math.max(0, Math.min(x - box.left + 14, box.width - tip.offsetWidth - 4))}px`;
  tip.style.top = `${y - box.top + 18 + tip.offsetHeight > box.height ? y - box.top - tip.offsetHeight - 10 : y - box.top + 18}px`;
}

function showTab(name) {
  tab = name;
  for (const one of ["nodes", "gangs", "fabric"]) {
    $(`tab-${one}`).setAttribute("aria-selected", String(one === name));
    $(`tab-${one}`).tabIndex = one === name ? 0 : -1;
  }
  $("list").scrollTop = 0;
  select(null);
  refresh(false);
  (name === "fabric" ? $("facts") : $("list")).focus();
}

// ---- filters

function setFilter(change) {
  filter = { ...filter, ...change };
  refreshSoon();
}

function fillChoices() {
  const fill = (select_, choices, value) => {
    const now = JSON.stringify(choices);
    if (select_.dataset.choices === now) return;
    select_.dataset.choices = now;
    select_.replaceChildren(...choices.map(([key, text]) => el("option", { value: key }, text)));
    select_.value = value;
    if (select_.selectedIndex < 0) select_.selectedIndex = 0, select_.dispatchEvent(new Event("change"));
  };
  const gangs = [...model.gangs.values()].filter((gang) => gang.nodes.length).sort(gangOrder);
  fill($("gang"), [["", "any"], [FREE, "none (free)"], ...gangs.map((gang) => [gang.key, gang.key])], filter.gang);
  fill($("rail"), [["", "all"], ...model.rails.map((rail) => [String(rail), String(rail)])], filter.rail === null ? "" : String(filter.rail));
}

function readStates() {
  setFilter({ states: [...$("states").querySelectorAll("input:checked")].map((input) => input.value) });
}

function clearFilter() {
  $("filters").reset();
  filter = { ...NO_FILTER };
  refresh(false);
}

// ---- signs and keys

function signCanvas(size, state, fill) {
  const ratio = devicePixelRatio || 1;
  const canvas = el("canvas", { width: size * ratio, height: size * ratio, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  context.fillStyle = fill;
  context.fillRect(0, 0, size * ratio, size * ratio);
  drawSign(context, state, 0, 0, size * ratio);
  return canvas;
}

function showLegend() {
  const paint = colours();
  $("legend").replaceChildren(
    ...STATES.map((state) => el("span", { title: MEANINGS[state] }, signCanvas(16, state, paint.free), state)),
    el("span", {}, signCanvas(16, "ok", paint.gangs[0]), "held by a gang; one colour each, striped when colours repeat"),
    el("span", {}, signCanvas(16, "ok", paint.link), "leaf"), el("span", {}, signCanvas(16, "ok", paint.bad), "its links down"), el("span", {}, signCanvas(16, "ok", paint.slow), "slow"));
  $("signs").replaceChildren(...STATES.flatMap((state) => [el("dt", {}, signCanvas(24, state, paint.free)), el("dd", {}, el("b", {}, state), `: ${MEANINGS[state]}`)]));
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  const typing = event.target.matches("input[type=search], select");
  if (event.key === "Escape") {
    if (typing && filter.text) clearFilter();
    else if (typing) $("list").focus();
    else if (selected) select(null);
    else if (isFiltering(filter)) clearFilter();
    return;
  }
  if (typing && !(event.key === "Enter" || event.key === "ArrowDown")) return;
  if (typing) {
    if (event.target.matches("select")) return;
    $("list").focus();
    event.preventDefault();
    return;
  }
  const act = {
    "/": () => $("text").focus(), "?": () => $("help").showModal(), m: () => $("map").focus(), n: () => showTab("nodes"), g: () => showTab("gangs"),
    f: () => showTab("fabric"), "+": () => map.zoom("in"), "=": () => map.zoom("in"), "-": () => map.zoom("out"), 0: () => map.zoom("fit"),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

$("states").append(...STATES.map((state) => el("label", { "data-state": state, title: MEANINGS[state] },
  el("input", { type: "checkbox", value: state, onchange: readStates }), el("span", { class: "sign", "data-state": state, "aria-hidden": "true" }, { degraded: "!", down: "×", stale: "~", unknown: "?" }[state] ?? ""),
  state, el("span", { class: "count" }, "0"))));
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("text").addEventListener("input", (event) => setFilter({ text: event.target.value }));
$("gang").addEventListener("change", (event) => setFilter({ gang: event.target.value }));
$("rail").addEventListener("change", (event) => setFilter({ rail: event.target.value === "" ? null : Number(event.target.value) }));
$("clear").addEventListener("click", clearFilter);
$("help-open").addEventListener("click", () => $("help").showModal());
for (const name of ["nodes", "gangs", "fabric"]) $(`tab-${name}`).addEventListener("click", () => showTab(name));
$("tabs").addEventListener("keydown", (event) => {
  const order = ["nodes", "gangs", "fabric"];
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  showTab(order[(order.indexOf(tab) + step + order.length) % order.length]);
  $(`tab-${tab}`).focus();
  event.preventDefault();
});
$("list").addEventListener("focus", () => map.drawOver());
document.addEventListener("keydown", onKey);
onTheme(() => {
  showLegend();
  refresh(false);
});
showLegend();
new Feed({ onDocument, onState }).run();
