// What the lists say of a node and of a gang.

import { el } from "./dom.mjs";
import { SIGNS } from "./model.mjs";
import { gangColour, isStriped } from "./palette.mjs";

export const signOf = (state) => el("span", { class: "sign", "data-state": state, "aria-hidden": "true" }, SIGNS[state]);

export function swatchOf(gang) {
  const swatch = el("span", { class: "swatch", "aria-hidden": "true" });
  if (gang.colour === undefined) swatch.style.visibility = "hidden";
  else if (isStriped(gang)) swatch.style.background = `repeating-linear-gradient(${gangColour(gang)} 0 4px, #ffffff90 4px 6px)`;
  else swatch.style.background = gangColour(gang);
  return swatch;
}

export const linksFull = (node) => node.links.filter((link) => link.usable > 0 && link.usable >= link.rate).length;

export function nodeRow(model, node, rail) {
  const state = model.stateOf(node, rail);
  const gangs = node.gangs.map(({ gang }) => gang.title).join(", ");
  const where = model.unitName(node);
  const note = node.reasons[0] ?? [where, gangs || "free"].filter(Boolean).join(" · ");
  const links = rail === null ? node.links : node.links.filter((link) => link.rail === rail);
  const full = links.filter((link) => link.usable > 0 && link.usable >= link.rate).length;
  return {
    key: node.name,
    sign: () => signOf(state),
    title: node.name,
    note,
    right: links.length ? `${full}/${links.length} rails` : "–",
    spoken: [node.name, state, where, node.reasons.join("; "), gangs ? `gang ${gangs}` : "free", `${full} of ${links.length} rails`].filter(Boolean).join(", "),
  };
}

const MOST_URGENT = ["degraded", "waiting", "starting", "running", "ended"];

export const gangOrder = (a, b) => MOST_URGENT.indexOf(a.state) - MOST_URGENT.indexOf(b.state) || (a.key < b.key ? -1 : 1);

export const milliseconds = (micros) => `${(micros / 1000).toLocaleString("en", { maximumFractionDigits: micros < 10_000 ? 2 : 0 })} ms`;

export function gangRow(gang) {
  const note = [gang.summary, gang.parallelism].filter(Boolean).join(" · ");
  return {
    key: gang.key,
    sign: () => swatchOf(gang),
    title: gang.key,
    note,
    right: `${gang.gpus.toLocaleString("en")} GPUs`,
    spoken: [gang.key, note, `${gang.gpus} GPUs`, gang.message].filter(Boolean).join(", "),
  };
}
