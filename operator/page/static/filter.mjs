// Which nodes are meant. Words must all be found, in any of what is said of a node; a rail makes the states those of
// that rail alone.

export const NO_FILTER = Object.freeze({ text: "", states: Object.freeze([]), gang: "", rail: null });

export const isFiltering = (filter) => Boolean(filter.text.trim() || filter.states.length || filter.gang || filter.rail !== null);

function saidOf(model, node) {
  const leaves = node.links.map((link) => model.leafOf(node, link)?.name ?? "");
  return [node.name, model.unitName(node), model.domainId(node), ...leaves, ...node.reasons, ...node.gangs.map(({ gang }) => gang.key)]
    .join("\n").toLowerCase();
}

// A set of node names, or null for all.
export function chosen(model, filter) {
  if (!isFiltering(filter)) return null;
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  const names = new Set();
  for (const node of model.nodes) {
    const state = model.stateOf(node, filter.rail);
    if (state === null) continue;
    if (filter.states.length && !filter.states.includes(state)) continue;
    if (filter.gang === FREE ? node.gangs.length > 0 : filter.gang && !node.gangs.some(({ gang }) => gang.key === filter.gang)) continue;
    if (words.length) {
      const said = (node.said ??= saidOf(model, node));
      if (!words.every((word) => said.includes(word))) continue;
    }
    names.add(node.name);
  }
  return names;
}

export const FREE = "-"; // in place of a gang: nodes without one. No Kubernetes name is that.
