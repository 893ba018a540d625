// What the operator told, put together: pieces come in, and nodes, leaves and gangs that know each other come out.

export const STATES = ["ok", "degraded", "down", "stale", "unknown"]; // as operator/page/fabric_view.h
const WORST_FIRST = [4, 1, 0, 2, 3];
export const SIGNS = { ok: "", degraded: "!", down: "×", stale: "~", unknown: "?" };

const byName = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

function readNode([name, fabric, state, unit, domain, gpus, badGpus, flat, reasons]) {
  const links = [];
  for (let i = 0; i + 3 < flat.length; i += 4) links.push({ rail: flat[i], leaf: flat[i + 1], rate: flat[i + 2], usable: flat[i + 3] });
  return { name, fabric, state: STATES[state] ?? "unknown", unit, domain, gpus, badGpus, links, reasons, gangs: [], said: null };
}

function readFabric(piece, number) {
  const leaves = piece.leaves.map(([name, rail, plane, unit, spines, down, up], index) =>
    ({ name, rail, plane, unit, spines, down, up, index, fabric: number, nodes: [], full: 0, slow: 0, out: 0 }));
  const spines = piece.spines.map(([name, tier, uplinks], index) => ({ name, tier, uplinks, index, fabric: number }));
  const domains = piece.domains.map(([id, nodes, gpus]) => ({ id, nodes, gpus }));
  return { ...piece, leaves, spines, domains, number };
}

export class Model {
  fabrics = [];
  nodes = [];           // sorted by name
  byName = new Map();
  gangs = new Map();    // by key
  gangsLeftOut = 0;     // that have not ended, of more than are sent
  rails = [];           // numbers, of all fabrics
  #pieces = new Map();  // nodes by name
  #colours = new Map(); // gang key: number of its colour, for as long as it is there

  // `anything`: something came; `places`: of it what says which nodes there are, or where one stands.
  apply(document) {
    const came = (part) => Boolean(document[part]?.length);
    let places = Boolean(document.full || document.fabrics) || came("goneNodes");
    const anything = places || came("nodes") || came("gangs") || came("goneGangs") || document.gangsLeftOut !== undefined;
    if (!anything) return { anything, places };
    if (document.full) {
      this.#pieces.clear();
      this.gangs.clear();
    }
    this.gangsLeftOut = document.gangsLeftOut ?? this.gangsLeftOut;
    if (document.fabrics) this.fabrics = document.fabrics.map(readFabric);
    for (const name of document.goneNodes ?? []) this.#pieces.delete(name);
    for (const key of document.goneGangs ?? []) this.gangs.delete(key);
    for (const piece of document.nodes ?? []) {
      const node = readNode(piece), had = this.#pieces.get(node.name);
      places ||= !had || had.fabric !== node.fabric || had.unit !== node.unit || had.domain !== node.domain;
      this.#pieces.set(node.name, node);
    }
    for (const gang of document.gangs ?? []) this.gangs.set(gang.key, gang);
    this.#join();
    return { anything, places };
  }

  #join() {
    this.nodes = [...this.#pieces.values()].sort((a, b) => byName(a.name, b.name));
    for (const node of this.nodes) Object.assign(node, { gangs: [], said: null });
    this.byName = new Map(this.nodes.map((node) => [node.name, node]));
    const rails = new Set();
    const ofRail = new Map(); // "fabric/unit/rail": its leaf, null where there are several
    for (const fabric of this.fabrics) {
      for (const leaf of fabric.leaves) {
        Object.assign(leaf, { nodes: [], full: 0, slow: 0, out: 0 });
        const key = `${fabric.number}/${leaf.unit}/${leaf.rail}`;
        ofRail.set(key, ofRail.has(key) ? null : leaf.index);
      }
    }
    for (const node of this.nodes) {
      for (const link of node.links) {
        if (link.rail >= 0) rails.add(link.rail);
        // A link that is down often cannot say where it ends. Where its unit has one leaf for that rail, it is that one.
        if (link.supposed) link.leaf = -1;
        link.supposed = link.leaf < 0 && link.rail >= 0;
        if (link.supposed) link.leaf = ofRail.get(`${node.fabric}/${node.unit}/${link.rail}`) ?? -1;
        const leaf = this.fabrics[node.fabric]?.leaves[link.leaf];
        if (!leaf) continue;
        if (leaf.nodes.at(-1) !== node) leaf.nodes.push(node);
        if (link.usable <= 0) leaf.out++;
        else if (link.usable < link.rate) leaf.slow++;
        else leaf.full++;
      }
    }
    this.rails = [...rails].sort((a, b) => a - b);
    this.#place();
  }

  #place() {
    for (const key of this.#colours.keys()) if (!this.gangs.get(key)?.places) this.#colours.delete(key);
    const used = new Map();
    for (const colour of this.#colours.values()) used.set(colour, (used.get(colour) ?? 0) + 1);
    for (const key of [...this.gangs.keys()].sort(byName)) {
      const gang = this.gangs.get(key);
      gang.nodes = [];
      for (let i = 0; i + 1 < (gang.places?.length ?? 0); i += 2) {
        const node = this.nodes[gang.places[i]];
        if (!node) continue;
        node.gangs.push({ gang, gpus: gang.places[i + 1] });
        gang.nodes.push(node);
      }
      if (!gang.places) continue;
      if (!this.#colours.has(key)) {
        // The colour that the fewest have.
        let colour = 0;
        for (let other = 0; other < COLOURS; other++) if ((used.get(other) ?? 0) < (used.get(colour) ?? 0)) colour = other;
        this.#colours.set(key, colour);
        used.set(colour, (used.get(colour) ?? 0) + 1);
      }
      gang.colour = this.#colours.get(key);
    }
  }

  // The state of a node, or of its links on one rail; null where it has none there.
  stateOf(node, rail) {
    if (rail === null || node.state === "stale" || node.state === "unknown") return node.state;
    let links = 0, usable = 0, slow = 0;
    for (const link of node.links) {
      if (link.rail !== rail) continue;
      links++;
      if (link.usable > 0) usable++;
      if (link.usable < link.rate) slow++;
    }
    if (!links) return null;
    return usable === 0 ? "down" : usable < links || slow ? "degraded" : "ok";
  }

  unitName(node) {
    return this.fabrics[node.fabric]?.units[node.unit] ?? "";
  }
  domainId(node) {
    return this.fabrics[node.fabric]?.domains[node.domain]?.id ?? "";
  }
  leafOf(node, link) {
    return this.fabrics[node.fabric]?.leaves[link.leaf] ?? null;
  }
  gpuCount() {
    return this.nodes.reduce((sum, node) => sum + node.gpus, 0);
  }
}

export const COLOURS = 16; // eight, and the same eight striped

export function worstFirst(model, rail) {
  const rank = (node) => WORST_FIRST[STATES.indexOf(model.stateOf(node, rail) ?? "ok")];
  return (a, b) => rank(a) - rank(b) || byName(a.name, b.name);
}
