// Colours that people with any colour vision tell apart, and never colour alone: a state is also a sign, and of two
// gangs of one colour one is striped.

// The names of leaves stand in `halo` on `link`, `slow` and `bad`: 4.5:1 at least.
const LIGHT = {
  ground: "#f6f7f8", block: "#ffffff", edge: "#c9d0d6", ink: "#1b2126", soft: "#5b6670", free: "#dbe2e8", gpu: "#f7fafc",
  link: "#5f7688", slow: "#b85b00", bad: "#b3261e", warn: "#ee9b3a", halo: "#ffffff", accent: "#1a5f8a",
  gangs: ["#4c6fb1", "#2a9d8f", "#8e6bbf", "#88b04b", "#56b4e9", "#b8688f", "#7a7a3a", "#a3c9c7"],
};
const DARK = {
  ground: "#14181c", block: "#1c2228", edge: "#3c4752", ink: "#e6eaee", soft: "#9da9b4", free: "#3a444e", gpu: "#20272e",
  link: "#7f93a3", slow: "#ffb366", bad: "#ff6b5e", warn: "#ffae4d", halo: "#0c0f12", accent: "#7cc0ea",
  gangs: ["#6f93d6", "#3cb8a8", "#a98bd8", "#96bd5c", "#6ac2f0", "#cf86a8", "#a09f56", "#5c8583"],
};

const dark = matchMedia("(prefers-color-scheme: dark)");
export const colours = () => (dark.matches ? DARK : LIGHT);
export const onTheme = (told) => dark.addEventListener("change", told);

export const gangColour = (gang) => colours().gangs[gang.colour % 8];
export const isStriped = (gang) => gang.colour >= 8;

// The sign of a state in the square (x, y, size); small ones are the same shapes, thinner.
export function drawSign(context, state, x, y, size) {
  const paint = colours();
  if (state === "ok") return;
  const line = Math.max(1, size / 7);
  const stroke = (path) => {
    context.lineCap = "butt";
    context.strokeStyle = paint.halo;
    context.lineWidth = line * 2.2;
    context.stroke(path);
    context.strokeStyle = state === "down" ? paint.bad : state === "degraded" ? paint.warn : paint.ink;
    context.lineWidth = line;
    context.stroke(path);
  };
  const path = new Path2D();
  if (size < 11 && (state === "down" || state === "degraded")) {
    // Too small for lines and corners to be found among ten thousand.
    context.fillStyle = paint.ink;
    context.fillRect(x - 1, y - 1, size + 2, size + 2);
    context.fillStyle = state === "down" ? paint.bad : paint.warn;
    context.fillRect(x, y, size, size);
    if (state === "degraded") return;
    path.moveTo(x, y), path.lineTo(x + size, y + size);
    path.moveTo(x + size, y), path.lineTo(x, y + size);
    context.strokeStyle = paint.halo;
    context.lineWidth = line;
    context.stroke(path);
  } else if (state === "down") {
    path.moveTo(x + line, y + line), path.lineTo(x + size - line, y + size - line);
    path.moveTo(x + size - line, y + line), path.lineTo(x + line, y + size - line);
    stroke(path);
  } else if (state === "degraded") {
    path.moveTo(x, y), path.lineTo(x + size * 0.72, y), path.lineTo(x, y + size * 0.72), path.closePath();
    context.fillStyle = paint.warn;
    context.fill(path);
    context.strokeStyle = paint.halo;
    context.lineWidth = Math.max(1, line / 2);
    context.stroke(path);
  } else if (state === "stale") {
    for (let at = size / 3; at < size * 2; at += size / 3) {
      path.moveTo(x + Math.max(0, at - size), y + Math.min(size, at)), path.lineTo(x + Math.min(size, at), y + Math.max(0, at - size));
    }
    stroke(path);
  } else {
    context.strokeStyle = paint.ink;
    context.lineWidth = line;
    context.setLineDash([line, line]);
    context.strokeRect(x + line / 2, y + line / 2, size - line, size - line);
    context.setLineDash([]);
  }
}

// Two bars: a clip for slanted ones costs more than all the rest of a cell.
export function drawStripes(context, x, y, width, height) {
  const bar = Math.max(1, Math.round(height / 6));
  const alpha = context.globalAlpha;
  context.fillStyle = colours().halo;
  context.globalAlpha = alpha * 0.6;
  context.fillRect(x, y + Math.round(height / 4), width, bar);
  if (height >= 8) context.fillRect(x, y + Math.round((height * 5) / 8), width, bar);
  context.globalAlpha = alpha;
}
