// What is said of one node, leaf or gang, and of the fabric as a whole.

import { el, plural, table } from "./dom.mjs";
import { linksFull, milliseconds, signOf, swatchOf } from "./rows.mjs";

const pairs = (list) => el("dl", { class: "pairs" }, list.filter(([, value]) => value !== "" && value !== null && value !== undefined)
  .map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
// `to` ({kind, key}) stands in the element, too: two that read alike and lead elsewhere are not the same (update in dom.mjs).
const link = (text, to, open) => el("button", { class: "link", type: "button", data: { to: `${to.kind}/${to.key}` }, onclick: () => open(to) }, text);
const section = (title, content) => (content ? [el("h3", {}, title), content] : []);
const bullets = (sentences, className) => (sentences.length ? el("ul", { class: className }, sentences.map((one) => el("li", {}, one))) : null);
const gbps = (port) => (port.state === "Down" || port.usable <= 0
  ? el("span", { class: "bad" }, port.rate ? `0 of ${port.rate}` : "down")
  : port.usable < port.rate ? el("span", { class: "warn" }, `${port.usable} of ${port.rate}`) : String(port.usable));

function gpusHeld(gpus, count) {
  if (!gpus) return `all ${count} GPUs`;
  const held = [];
  for (let gpu = 0; gpu < 32; gpu++) if ((gpus >>> gpu) & 1) held.push(gpu);
  return held.length === count ? `all ${count} GPUs` : `GPU ${held.join(", ")}`;
}

export function nodePanel(model, node, open) {
  const state = node.state;
  const links = node.links.map((one) => {
    const leaf = model.leafOf(node, one);
    const name = leaf ? link(leaf.name, { kind: "leaf", key: `${leaf.fabric}/${leaf.index}` }, open) : el("span", { class: "soft" }, "unknown");
    return [one.rail >= 0 ? one.rail : "–", leaf?.plane || "–", leaf && one.supposed ? el("span", {}, name, " expected") : name, gbps(one)];
  });
  const planes = node.links.some((one) => model.leafOf(node, one)?.plane);
  const head = [{ title: "rail", number: true }, { title: "plane", number: true }, { title: "leaf" }, { title: "Gb/s", number: true }];
  const kept = (row) => (planes ? row : row.filter((_, i) => i !== 1));
  return [
    el("h2", {}, signOf(state), node.name),
    pairs([
      ["state", state],
      ["fabric", model.fabrics[node.fabric]?.name ?? "none"],
      ["unit", model.unitName(node)],
      ["NVLink domain", model.domainId(node) || (node.gpus ? "its own" : "")],
      ["GPUs", node.gpus ? `${node.gpus - node.badGpus} of ${node.gpus} healthy` : ""],
      ["rails", node.links.length ? `${linksFull(node)} of ${node.links.length} links at full rate` : ""],
    ]),
    bullets(node.reasons, state === "ok" ? "soft" : ""),
    section("Gangs", node.gangs.length ? el("ul", {}, node.gangs.map(({ gang, gpus }) =>
      el("li", {}, swatchOf(gang), " ", link(gang.key, { kind: "gang", key: gang.key }, open), `: ${gpusHeld(gpus, node.gpus)}`)))
      : el("p", { class: "soft" }, "none: all its GPUs are free of plans")),
    el("div", { "data-more": "" }, section("Rails", links.length ? table(kept(head), links.map(kept)) : null)),
  ];
}

// In place of the rails, once the operator has answered: GPU – NIC – rail – leaf, conditions, grants.
export function nodeDetails(detail) {
  const head = [{ title: "GPU", number: true }, { title: "NIC", name: true }, { title: "rail", number: true }, { title: "leaf port" }, { title: "Gb/s", number: true }];
  const dealt = new Set();
  const nicRows = (nic, first, distance) => nic.ports.map((port, i) => [
    i ? "" : first,
    i ? "" : el("span", { title: [distance, nic.netdev, nic.transport].filter(Boolean).join(", ") }, nic.name),
    i ? "" : typeof nic.rail === "number" ? String(nic.rail) : nic.rail,
    port.leaf ? `${port.leaf} ${port.leafPort}` : el("span", { class: "soft" }, port.leafMissing ?? "unknown"),
    el("span", { title: port.reason ?? port.fault ?? "" }, gbps(port)),
  ]);
  const rows = [];
  for (const gpu of detail.gpus) {
    const number = el("span", gpu.healthy ? { title: gpu.model } : { class: "bad", title: gpu.reason ?? "unhealthy" }, gpu.healthy ? String(gpu.index) : `${gpu.index} ×`);
    if (!gpu.nics.length) rows.push([number, "–", "", "", ""]);
    gpu.nics.forEach(([index, distance], i) => {
      dealt.add(index);
      rows.push(...nicRows(detail.nics[index], i ? "" : number, distance));
    });
  }
  const others = detail.nics.filter((_, index) => !dealt.has(index)).flatMap((nic) => nicRows(nic, nic.role, ""));
  const shown = detail.conditions.map((one) => [
    el("span", { class: one.status === "False" ? "bad" : one.status === "Unknown" ? "warn" : "" }, one.type),
    el("span", { title: `since ${one.since}` }, one.status === "True" ? one.reason : `${one.status}, ${one.reason}`, one.status === "True" ? "" : `: ${one.message}`),
  ]);
  return [
    section("GPU – NIC – rail – leaf", rows.length ? table(head, rows) : null),
    section("Other NICs", others.length ? table([{ title: "role" }, ...head.slice(1)], others) : null),
    section("Conditions", shown.length ? table([{ title: "condition", name: true }, { title: "what it says" }], shown) : null),
    section("Granted by the kubelet", detail.grants.length ? table([{ title: "pod" }, { title: "GPUs" }, { title: "NICs" }],
      detail.grants.map((one) => [one.pod, one.gpus.join(", "), one.nics.join(", ")])) : null),
    section("Machine", pairs([["machine", detail.machine], ["transport", detail.transport], ["site", detail.site], ["agent", detail.agent], ["reported", detail.observed]])),
  ].flat();
}

export function leafPanel(model, leaf, open) {
  const fabric = model.fabrics[leaf.fabric];
  const onLeaf = leaf.nodes.map((node) => ({ node, links: node.links.filter((one) => one.leaf === leaf.index) }));
  const whole = ({ links }) => links.every((one) => one.usable > 0 && one.usable >= one.rate);
  onLeaf.sort((a, b) => whole(a) - whole(b));
  const rows = onLeaf.slice(0, 200).map(({ node, links }) => [link(node.name, { kind: "node", key: node.name }, open), node.state, el("span", {}, links.map((one, i) => [i ? ", " : "", gbps(one)]))]);
  return [
    el("h2", {}, leaf.name),
    pairs([
      ["fabric", fabric.name],
      ["rail", leaf.rail >= 0 ? leaf.rail : leaf.rail === -1 ? "all rails of its hosts" : "unknown or several"],
      ["plane", fabric.leaves.some((one) => one.plane) ? leaf.plane : ""],
      ["unit", fabric.units[leaf.unit] ?? "none"],
      ["links", `${leaf.full} full, ${leaf.slow} slow, ${leaf.out} down`],
      ["to hosts", `${leaf.down.toLocaleString("en")} Gb/s`],
      ["up", leaf.up ? `${leaf.up.toLocaleString("en")} Gb/s` : "no way up is known"],
      ["spines", leaf.spines.map((one) => fabric.spines[one]?.name).join(", ")],
    ]),
    section("Nodes", rows.length ? table([{ title: "node" }, { title: "state" }, { title: "Gb/s", number: true }], rows) : null),
    leaf.nodes.length > rows.length ? el("p", { class: "soft" }, `and ${leaf.nodes.length - rows.length} more`) : null,
  ].flat();
}

export function gangPanel(model, gang, open) {
  const axes = (gang.axes ?? []).map(([name, size, crossings, edges, micros]) => [name, name === "gang" ? "" : size, edges ? `${crossings.toLocaleString("en")}/${edges.toLocaleString("en")}` : "0", milliseconds(micros)]);
  if (axes.length) axes.push([el("b", {}, "a step"), "", "", el("b", {}, milliseconds(gang.step))]);
  const bad = gang.nodes.filter((node) => node.state !== "ok");
  const units = new Set(gang.nodes.map((node) => model.unitName(node)).filter(Boolean));
  return [
    el("h2", {}, swatchOf(gang), gang.key),
    pairs([
      ["state", gang.summary],
      ["of", gang.owner],
      ["parallelism", gang.parallelism],
      ["pods", `${gang.pods.toLocaleString("en")} of ${plural(gang.gpus / Math.max(1, gang.pods), "GPU")}, ${plural(gang.gpus, "GPU")} in all`],
      ["priority", gang.priority],
      ["planned", gang.planned],
      ["lies on", gang.nodes.length ? plural(gang.nodes.length, "node") + (units.size ? ` in ${[...units].slice(0, 6).join(", ")}${units.size > 6 ? ", …" : ""}` : "") : gang.state === "ended" ? "nothing any more" : "nothing yet"],
    ]),
    gang.message ? el("p", { class: gang.state === "running" ? "soft" : "warn" }, gang.message) : null,
    section("Axes", axes.length ? table([{ title: "axis", name: true }, { title: "size", number: true }, { title: "leaf crossings", number: true }, { title: "per step", number: true }], axes) : null),
    gang.tp ? pairs([["TP in one NVLink domain", `${gang.tp[0]} of ${gang.tp[1]} groups`], ["rail-misaligned", plural(gang.misaligned, "pair")]]) : null,
    gang.observed ? section("Heddle would have", el("p", {}, gang.observed.step !== undefined ? `taken ${milliseconds(gang.observed.step)} a step` : `made it wait: ${gang.observed.refusal ?? ""}`)) : null,
    section("Nodes with something to say", bad.length ? el("ul", {}, bad.slice(0, 50).map((node) =>
      el("li", {}, signOf(node.state), " ", link(node.name, { kind: "node", key: node.name }, open), node.reasons.length ? `: ${node.reasons[0]}` : ""))) : null),
    el("div", { "data-more": "" }),
  ].flat();
}

export function gangDetails(detail) {
  const rows = detail.conditions.map((one) => [one.type, `${one.status}, ${one.reason}${one.message ? `: ${one.message}` : ""}`]);
  return [
    section("Why here", bullets(detail.why, "")),
    section("Conditions", rows.length ? table([{ title: "condition", name: true }, { title: "what it says" }], rows) : null),
  ].flat();
}

export function fabricFacts(model, open) {
  if (!model.fabrics.length) return [el("p", { class: "soft" }, "No fabric yet: it is made of what node agents report.")];
  return model.fabrics.flatMap((fabric) => {
    const nodes = model.nodes.filter((node) => node.fabric === fabric.number);
    const broken = fabric.leaves.filter((leaf) => leaf.out + leaf.slow).sort((a, b) => b.out + b.slow - a.out - a.slow);
    return [
      el("h2", {}, fabric.name),
      pairs([
        ["transport", fabric.transport], ["site", fabric.site], ["shape", fabric.shape], ["rails", fabric.rails],
        ["nodes", nodes.length.toLocaleString("en")], ["GPUs", nodes.reduce((sum, node) => sum + node.gpus, 0).toLocaleString("en")],
        ["units", fabric.units.length.toLocaleString("en")], ["leaves", fabric.leaves.length.toLocaleString("en")],
        ["spines", fabric.spines.length.toLocaleString("en")],
        ["NVLink domains", fabric.domains.length ? `${fabric.domains.length.toLocaleString("en")} over several nodes` : "one in each node"],
      ]),
      section("Cables", fabric.faults.length ? el("ul", {}, fabric.faults.map(([node, sentence]) => el("li", {}, link(node, { kind: "node", key: node }, open), `: ${sentence}`)))
        : el("p", { class: "soft" }, "every cable ends where it is expected")),
      section("Suspects", fabric.suspects.length ? el("ul", {}, fabric.suspects.map(([node, sentence]) => el("li", {}, ...(node ? [link(node, { kind: "node", key: node }, open), ": "] : []), sentence)))
        : el("p", { class: "soft" }, "nothing stands against any link that is watched")),
      section("Leaves with links that are not whole", broken.length ? table([{ title: "leaf" }, { title: "rail", number: true }, { title: "slow", number: true }, { title: "down", number: true }],
        broken.slice(0, 100).map((leaf) => [link(leaf.name, { kind: "leaf", key: `${leaf.fabric}/${leaf.index}` }, open), leaf.rail >= 0 ? leaf.rail : "–", leaf.slow, leaf.out])) : null),
      section("Taken for granted", bullets(fabric.assumptions, "soft")),
    ].flat();
  });
}
