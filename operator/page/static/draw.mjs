// Draws a layout. What a cell shows depends on how large it is: of a few pixels a colour and a sign, of more its GPUs,
// links and name.

import { CELL } from "./layout.mjs";
import { colours, drawSign, drawStripes, gangColour, isStriped } from "./palette.mjs";

const FADED = 0.16;
const DETAILED = 30; // pixels of a cell that shows what is in a node

// view: {scale, x, y} from units of the map to pixels of the canvas.
export function drawAll(context, { model, layout, view, ratio, chosen, rail }) {
  const { canvas } = context;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.globalAlpha = 1;
  context.fillStyle = colours().ground;
  context.fillRect(0, 0, canvas.width, canvas.height);
  const seen = (x, y, width, height) => {
    const left = view.x + x * view.scale, top = view.y + y * view.scale;
    return left < canvas.width && top < canvas.height && left + width * view.scale > 0 && top + height * view.scale > 0;
  };
  const blocks = layout.blocks.filter((block) => seen(block.x, block.y, block.width, block.height));
  const pen = { context, model, view, ratio, chosen, rail, paint: colours() };
  for (const cell of layout.spineCells.values()) drawSpine(pen, cell);
  for (const block of blocks) drawBlock(pen, block, layout.title);
  const size = CELL * view.scale;
  if (size < DETAILED * ratio) drawSmall(pen, blocks);
  else for (const block of blocks) for (const cell of block.cells) drawNode(pen, cell);
}

const px = (pen, x, y) => [Math.round(pen.view.x + x * pen.view.scale), Math.round(pen.view.y + y * pen.view.scale)];

// What of a text has room. Measuring costs as much as drawing, and the next frame asks the same.
const fitted = new Map();
function fitting(context, text, limit) {
  const key = `${context.font}|${Math.round(limit)}|${text}`;
  let shown = fitted.get(key);
  if (shown !== undefined) return shown;
  shown = text;
  while (shown.length > 1 && context.measureText(shown).width > limit) shown = shown.length > 4 ? `${shown.slice(0, -3)}…` : shown.slice(0, -1);
  if (fitted.size > 20_000) fitted.clear();
  fitted.set(key, shown);
  return shown;
}

function write(pen, text, x, y, limit, { size, colour, bold, middle }) {
  const { context } = pen;
  context.font = `${bold ? "600 " : ""}${size}px system-ui, "DejaVu Sans", sans-serif`;
  context.fillStyle = colour;
  context.textBaseline = "middle";
  context.textAlign = middle ? "center" : "left";
  const shown = fitting(context, text, limit);
  if (shown.length >= Math.min(text.length, 2)) context.fillText(shown, x, y);
}

function drawSpine(pen, cell) {
  const { context, view, ratio, paint } = pen;
  const [x, y] = px(pen, cell.x, cell.y);
  const width = Math.max(1, cell.width * view.scale), height = Math.max(1, cell.height * view.scale);
  context.globalAlpha = 1;
  context.fillStyle = paint.block;
  context.strokeStyle = paint.edge;
  context.lineWidth = ratio;
  context.fillRect(x, y, width, height);
  context.strokeRect(x + 0.5, y + 0.5, width, height);
  if (height >= 9 * ratio && width > 24 * ratio) {
    const size = Math.min(12 * ratio, height * 0.7);
    write(pen, cell.spine.name, x + width / 2, y + height / 2, width - 4, { size, colour: paint.soft, middle: true });
  }
}

function drawBlock(pen, block, title) {
  const { context, view, ratio, paint } = pen;
  const [x, y] = px(pen, block.x, block.y);
  const width = Math.round(block.width * view.scale), height = Math.round(block.height * view.scale);
  context.globalAlpha = 1;
  context.fillStyle = paint.block;
  context.fillRect(x, y, width, height);
  context.strokeStyle = paint.edge;
  context.lineWidth = ratio;
  context.strokeRect(x + 0.5, y + 0.5, width, height);
  const room = title * view.scale;
  if (room >= 6 * ratio) {
    const size = Math.min(13 * ratio, Math.max(8 * ratio, room * 0.8));
    write(pen, block.name, x + 4 * view.scale, y + 1 + room * 0.62, width - 8 * view.scale, { size, colour: paint.soft, bold: true });
  }
  context.strokeStyle = paint.edge;
  for (const domain of block.domains) {
    if (view.scale * CELL < 5 * ratio) break;
    const [left, top] = px(pen, domain.x, domain.y);
    context.strokeRect(left + 0.5, top + 0.5, domain.width * view.scale, domain.height * view.scale);
  }
  for (const cell of block.leafCells) drawLeaf(pen, cell);
}

// A leaf is filled as far as its links are whole; the rest is one stretch, red where any link is down, else orange.
function drawLeaf(pen, cell) {
  const { context, view, ratio, paint, rail } = pen;
  const { leaf } = cell;
  const [x, y] = px(pen, cell.x, cell.y);
  const width = Math.max(1, Math.round(cell.width * view.scale)), height = Math.max(1, Math.round(cell.height * view.scale));
  const aside = (rail !== null && leaf.rail >= 0 && leaf.rail !== rail) || (pen.chosen !== null && !leaf.nodes.some((node) => pen.chosen.has(node.name)));
  context.globalAlpha = aside ? FADED : 1;
  context.fillStyle = paint.link;
  context.fillRect(x, y, width, height);
  const all = leaf.full + leaf.slow + leaf.out;
  if (all && leaf.slow + leaf.out) {
    // At least two pixels: one link of 64 must be seen, too.
    const bad = Math.max(Math.min(width, 2 * ratio), Math.round((width * (leaf.slow + leaf.out)) / all));
    context.fillStyle = leaf.out ? paint.bad : paint.slow;
    context.fillRect(x + width - bad, y, bad, height);
  }
  if (height >= 9 * ratio && width >= 12 * ratio) {
    const short = leaf.rail >= 0 ? `r${leaf.rail}` : leaf.name;
    const text = width > leaf.name.length * 7 * ratio ? leaf.name : short;
    write(pen, text, x + width / 2, y + height / 2 + 0.5, width - 2, { size: Math.min(11 * ratio, height * 0.75), colour: paint.halo, bold: true, middle: true });
  }
  context.globalAlpha = 1;
}

const fillOf = (pen, node) => (node.gangs.length ? gangColour(node.gangs[0].gang) : pen.paint.free);

// Thousands of cells: one colour after the other, since changing it costs more than a rectangle.
function drawSmall(pen, blocks) {
  const { context, view, model, chosen, rail } = pen;
  const size = Math.max(1, Math.round(CELL * view.scale));
  const batches = new Map();
  const signs = [], stripes = [];
  for (const block of blocks) {
    for (const { node, x: left, y: top } of block.cells) {
      const faded = chosen !== null && !chosen.has(node.name);
      const fill = fillOf(pen, node);
      const key = faded ? `${fill} ` : fill;
      if (!batches.has(key)) batches.set(key, { fill, faded, at: [] });
      const [x, y] = px(pen, left, top);
      batches.get(key).at.push(x, y);
      if (faded) continue;
      if (node.gangs.length && isStriped(node.gangs[0].gang)) stripes.push(x, y);
      const state = model.stateOf(node, rail);
      if (state !== null && state !== "ok") signs.push([state, x, y]);
    }
  }
  for (const { fill, faded, at } of batches.values()) {
    context.globalAlpha = faded ? FADED : 1;
    context.fillStyle = fill;
    for (let i = 0; i < at.length; i += 2) context.fillRect(at[i], at[i + 1], size, size);
  }
  context.globalAlpha = 1;
  if (size >= 4) for (let i = 0; i < stripes.length; i += 2) drawStripes(context, stripes[i], stripes[i + 1], size, size);
  for (const [state, x, y] of signs) drawSign(context, state, x, y, size);
}

function gpuColours(pen, node) {
  const fills = [];
  for (let gpu = 0; gpu < node.gpus; gpu++) {
    const holder = node.gangs.find(({ gpus }) => gpus === 0 || (gpus >>> gpu) & 1);
    fills.push(holder ? gangColour(holder.gang) : pen.paint.gpu);
  }
  return fills;
}

function drawNode(pen, { node, x: left, y: top }) {
  const { context, view, ratio, model, chosen, rail, paint } = pen;
  const [x, y] = px(pen, left, top);
  const size = Math.round(CELL * view.scale);
  const faded = chosen !== null && !chosen.has(node.name);
  context.globalAlpha = faded ? FADED : 1;
  context.fillStyle = paint.free;
  context.fillRect(x, y, size, size);
  drawInside(pen, node, x, y, size);
  const state = model.stateOf(node, rail);
  if (state !== null) drawSign(context, state, x, y, Math.round(size * 0.3));
  if (state === "down" || state === "degraded") {
    context.strokeStyle = state === "down" ? paint.bad : paint.warn;
    context.lineWidth = 2 * ratio;
    context.strokeRect(x, y, size, size);
  }
  context.globalAlpha = 1;
}

// Links on top, as high as they are usable; GPUs below, in the colours of who has them; the name at the foot.
function drawInside(pen, node, x, y, size) {
  const { context, ratio, paint, rail } = pen;
  const pad = Math.max(2, Math.round(size * 0.06));
  const inner = size - 2 * pad;
  const links = node.links.slice(0, 32);
  const linkHeight = Math.round(inner * 0.2);
  const edge = (i, of, room) => Math.round((i * room) / of);
  links.forEach((link, i) => {
    const part = link.rate > 0 ? Math.min(1, link.usable / link.rate) : link.usable > 0 ? 1 : 0;
    const at = [x + pad + edge(i, links.length, inner + 1), y + pad, Math.max(1, edge(i + 1, links.length, inner + 1) - edge(i, links.length, inner + 1) - 1), linkHeight];
    if (part < 1) {
      context.fillStyle = paint.block;
      context.fillRect(...at);
    }
    const filled = Math.round(linkHeight * part);
    context.fillStyle = part >= 1 ? (rail === null || rail === link.rail ? paint.link : paint.edge) : paint.slow;
    context.fillRect(at[0], at[1] + linkHeight - filled, at[2], filled);
    if (part > 0) return;
    context.strokeStyle = paint.bad;
    context.lineWidth = Math.max(1, ratio);
    context.beginPath();
    context.moveTo(at[0], at[1]), context.lineTo(at[0] + at[2], at[1] + at[3]);
    context.moveTo(at[0] + at[2], at[1]), context.lineTo(at[0], at[1] + at[3]);
    context.stroke();
  });
  const named = size >= 44 * ratio;
  const gpuTop = y + pad + linkHeight + 2;
  const gpuRoom = y + size - pad - gpuTop - (named ? 12 * ratio : 0);
  const fills = gpuColours(pen, node);
  const columns = fills.length > 4 ? Math.ceil(fills.length / 2) : Math.max(1, fills.length);
  const rows = Math.max(1, Math.ceil(fills.length / columns));
  fills.forEach((fill, gpu) => {
    const column = gpu % columns, row = Math.floor(gpu / columns);
    const [left, right] = [edge(column, columns, inner + 1), edge(column + 1, columns, inner + 1)];
    const [top, bottom] = [edge(row, rows, gpuRoom + 1), edge(row + 1, rows, gpuRoom + 1)];
    context.fillStyle = fill;
    context.fillRect(x + pad + left, gpuTop + top, Math.max(1, right - left - 1), Math.max(1, bottom - top - 1));
  });
  const striped = node.gangs.find(({ gang }) => isStriped(gang));
  if (striped) drawStripes(context, x + pad, gpuTop, inner, gpuRoom);
  if (named) write(pen, node.name, x + size / 2, y + size - 6.5 * ratio, size - 4, { size: Math.min(11 * ratio, size / 6), colour: paint.ink, middle: true });
}

// What is marked, pointed at or selected, over all the rest: frames, and the lines of a node to its leaves and spines.
export function drawOver(context, { model, layout, view, ratio, marked, hovered, selected, focused }) {
  const { canvas } = context;
  const paint = colours();
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  const frame = (cell, colour, width) => {
    if (!cell) return;
    const [x, y] = [view.x + cell.x * view.scale, view.y + cell.y * view.scale];
    const wide = (cell.width ?? CELL) * view.scale, high = (cell.height ?? CELL) * view.scale;
    context.strokeStyle = paint.halo;
    context.lineWidth = (width + 2) * ratio;
    context.strokeRect(x - width, y - width, wide + 2 * width, high + 2 * width);
    context.strokeStyle = colour;
    context.lineWidth = width * ratio;
    context.strokeRect(x - width, y - width, wide + 2 * width, high + 2 * width);
  };
  if (selected?.kind === "node") drawLines(context, { model, layout, view, ratio, paint }, model.byName.get(selected.key));
  if (selected?.kind === "leaf") {
    const leaf = layout.leafCells.get(selected.key)?.leaf;
    for (const node of leaf?.nodes ?? []) frame(layout.cells.get(node.name), paint.accent, 1);
    for (const spine of leaf?.spines ?? []) frame(layout.spineCells.get(`${leaf.fabric}/${spine}`), paint.accent, 2);
    frame(layout.leafCells.get(selected.key), paint.accent, 2);
  }
  if (selected?.kind === "node") frame(layout.cells.get(selected.key), paint.accent, 3);
  if (hovered?.node) frame(layout.cells.get(hovered.node.name), paint.ink, 1);
  if (hovered?.leaf) frame(layout.leafCells.get(`${hovered.leaf.fabric}/${hovered.leaf.index}`), paint.ink, 1);
  if (focused && marked) frame(layout.cells.get(marked), paint.accent, 2);
}

function drawLines(context, { model, layout, view, ratio, paint }, node) {
  const cell = node && layout.cells.get(node.name);
  if (!cell) return;
  const point = (x, y) => [view.x + x * view.scale, view.y + y * view.scale];
  const spines = new Set();
  for (const link of node.links) {
    const leaf = layout.leafCells.get(`${node.fabric}/${link.leaf}`);
    if (!leaf) continue;
    for (const spine of leaf.leaf.spines) spines.add(spine);
    context.beginPath();
    context.moveTo(...point(cell.x + CELL / 2, cell.y));
    context.lineTo(...point(leaf.x + leaf.width / 2, leaf.y + leaf.height));
    context.strokeStyle = link.usable <= 0 ? paint.bad : link.usable < link.rate ? paint.slow : paint.accent;
    context.lineWidth = (link.usable < link.rate ? 2.5 : 1.2) * ratio;
    context.setLineDash(link.usable <= 0 ? [4 * ratio, 4 * ratio] : []);
    context.stroke();
  }
  context.setLineDash([]);
  context.strokeStyle = paint.accent;
  context.lineWidth = 1.5 * ratio;
  for (const spine of spines) {
    const at = layout.spineCells.get(`${node.fabric}/${spine}`);
    if (at) context.strokeRect(...point(at.x, at.y), at.width * view.scale, at.height * view.scale);
  }
}
