// Where everything lies on the map, in units of the map: a cell is CELL wide. Scalable units are blocks, with their
// leaves on top, one for each rail, and their nodes below, NVLink domain by NVLink domain. Spines lie above all blocks.

export const CELL = 16;
export const STEP = CELL + 2;
const PAD = 4;
const GAP = 8;
const LEAF = 9;
const SPINE = 7;

function columnsFor(count) {
  const least = Math.max(1, Math.ceil(Math.sqrt(count)));
  for (let columns = least; columns <= Math.min(2 * least, count); columns++) if (count % columns === 0) return columns;
  return least + (least > 3 ? 1 : 0);
}

function blocksOf(model) {
  const blocks = new Map();
  const block = (fabric, unit) => {
    const key = `${fabric}/${unit}`;
    if (!blocks.has(key)) {
      const name = model.fabrics[fabric]?.units[unit] ?? (fabric < 0 ? "no fabric" : model.fabrics[fabric].name);
      blocks.set(key, { key, fabric, unit, name, nodes: [], leaves: [] });
    }
    return blocks.get(key);
  };
  for (const node of model.nodes) block(node.fabric, node.unit).nodes.push(node);
  for (const fabric of model.fabrics) {
    for (const leaf of fabric.leaves) {
      if (leaf.nodes.length || leaf.unit >= 0) block(fabric.number, leaf.unit).leaves.push(leaf);
    }
  }
  // Those of no unit and of no fabric last.
  const place = (at) => (at < 0 ? 1e9 : at);
  return [...blocks.values()].sort((a, b) => place(a.fabric) - place(b.fabric) || place(a.unit) - place(b.unit));
}

// Places of a block's parts, from its own corner; sets its width and height.
function arrange(block, title) {
  const groups = new Map();
  for (const node of block.nodes) {
    if (!groups.has(node.domain)) groups.set(node.domain, []);
    groups.get(node.domain).push(node);
  }
  const largest = Math.max(1, ...[...groups.values()].map((group) => group.length));
  const columns = columnsFor(groups.size > 1 && largest > 1 ? Math.min(largest, 36) : block.nodes.length || 1);
  const leafColumns = Math.min(block.leaves.length, Math.max(16, 2 * columns)) || 1;
  const leafRows = block.leaves.length ? Math.ceil(block.leaves.length / leafColumns) : 0;
  const width = Math.max(columns * STEP - 2, Math.min(leafColumns, 8) * 7);
  block.cells = [];
  block.leafCells = block.leaves.map((leaf, i) => ({
    leaf,
    x: PAD + (i % leafColumns) * (width / leafColumns),
    y: title + PAD + Math.floor(i / leafColumns) * LEAF,
    width: width / leafColumns - 1,
    height: LEAF - 1,
  }));
  let y = title + PAD + leafRows * LEAF + (leafRows ? 3 : 0);
  block.domains = [];
  for (const [domain, group] of [...groups].sort((a, b) => a[0] - b[0])) {
    const rows = Math.ceil(group.length / columns);
    group.forEach((node, i) => block.cells.push({ node, x: PAD + (i % columns) * STEP, y: y + Math.floor(i / columns) * STEP }));
    if (domain >= 0) block.domains.push({ y: y - 1.5, height: rows * STEP + 1, width: Math.min(columns, group.length) * STEP + 1 });
    y += rows * STEP + (domain >= 0 ? 4 : 0);
  }
  block.width = width + 2 * PAD;
  block.height = y + PAD - 2;
}

// Shelves of at most that width; the size of all.
function shelve(blocks, limit) {
  let x = 0, y = 0, shelf = 0, widest = 0;
  for (const block of blocks) {
    if (x > 0 && x + block.width > limit) {
      y += shelf + GAP;
      x = shelf = 0;
    }
    block.x = x;
    block.y = y;
    x += block.width + GAP;
    shelf = Math.max(shelf, block.height);
    widest = Math.max(widest, x - GAP);
  }
  return { width: widest, height: y + shelf };
}

export function layOut(model, viewWidth, viewHeight) {
  const blocks = blocksOf(model);
  const title = blocks.length > 24 ? 7 : 5;
  for (const block of blocks) arrange(block, title);
  const spines = model.fabrics.flatMap((fabric) => fabric.spines);
  const above = spines.length ? SPINE + GAP : 0;
  const widths = blocks.map((block) => block.width + GAP);
  const total = widths.reduce((sum, width) => sum + width, 0);
  let best = null;
  // Of all numbers of shelves the one that shows everything largest.
  for (let shelves = 1; shelves <= Math.min(blocks.length, 120); shelves++) {
    const size = shelve(blocks, Math.max(total / shelves, ...widths));
    const scale = Math.min(viewWidth / Math.max(1, size.width), viewHeight / Math.max(1, size.height + above));
    if (!best || scale > best.scale * 1.0001) best = { scale, limit: Math.max(total / shelves, ...widths) };
  }
  const size = best ? shelve(blocks, best.limit) : { width: 1, height: 1 };
  const cells = new Map(), leafCells = new Map(), spineCells = new Map();
  for (const block of blocks) {
    block.y += above;
    for (const cell of [...block.cells, ...block.leafCells]) cell.x += block.x, cell.y += block.y;
    for (const domain of block.domains) domain.x = block.x + PAD - 1.5, domain.y += block.y;
    for (const cell of block.cells) cells.set(cell.node.name, cell);
    for (const cell of block.leafCells) leafCells.set(`${cell.leaf.fabric}/${cell.leaf.index}`, cell);
  }
  const each = Math.min(60, size.width / Math.max(1, spines.length));
  const from = (size.width - each * spines.length) / 2;
  spines.forEach((spine, i) => spineCells.set(`${spine.fabric}/${spine.index}`,
    { spine, x: from + i * each, y: 0, width: each * 0.94, height: SPINE }));
  return { blocks, cells, leafCells, spineCells, title, width: size.width, height: size.height + above };
}

export function findAt(layout, x, y) {
  for (const block of layout.blocks) {
    if (x < block.x || y < block.y || x > block.x + block.width || y > block.y + block.height) continue;
    for (const cell of block.leafCells) {
      if (x >= cell.x && y >= cell.y && x <= cell.x + cell.width && y <= cell.y + cell.height) return { leaf: cell.leaf };
    }
    for (const cell of block.cells) {
      if (x >= cell.x - 1 && y >= cell.y - 1 && x <= cell.x + CELL + 1 && y <= cell.y + CELL + 1) return { node: cell.node };
    }
    return null;
  }
  return null;
}

// The nearest node in a direction: sideways counts three times.
export function neighbour(layout, name, key) {
  const from = layout.cells.get(name);
  if (!from) return layout.blocks[0]?.cells[0]?.node ?? null;
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  let best = null, least = Infinity;
  for (const cell of layout.cells.values()) {
    const along = (cell.x - from.x) * dx + (cell.y - from.y) * dy;
    if (along <= 0) continue;
    const across = Math.abs((cell.x - from.x) * dy) + Math.abs((cell.y - from.y) * dx);
    if (along + 3 * across < least) least = along + 3 * across, best = cell.node;
  }
  return best;
}
