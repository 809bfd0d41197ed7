// The map: one canvas, redrawn only while something moves. From below: regions, density, borders, what has just
// happened, dots, the followed entity, names.

import { model, colour, listen, lookAt } from './model.js';

const FLASH_MS = 2600, CROSSING_MS = 1300, DOT_MS = 700, GLIDE_MS = 260;
const DOTS_MOST = 4000, DOTS_FAR = 1500, STEP_PARTS = 32;

const canvas = document.getElementById('map'), ctx = canvas.getContext('2d');
const heat = document.createElement('canvas'), heatCtx = heat.getContext('2d');

export const view = { x: 0, y: 0, scale: 1, width: 1, height: 1, hovered: null, chosen: null, server: null, follow: null };
// How long frames took to draw, for who measures: the last 600.
export const frames = { count: 0, ms: [] };

let dirty = true, glide = null, theme = 'light', ink = '#000', ground = '#fff', paper = '#fff', line = '#ddd', soft = '#888';
let segments = [], loadMost = 1, heatMost = 1, heatPlace = null;
const flashes = [], ripples = [], dots = new Map();

const rgb = ([r, g, b], a) => `rgba(${r},${g},${b},${a})`;
const toScreenX = x => (x - view.x) * view.scale + view.width / 2;
const toScreenY = y => view.height / 2 - (y - view.y) * view.scale;
export const toWorldX = px => (px - view.width / 2) / view.scale + view.x;
export const toWorldY = py => (view.height / 2 - py) / view.scale + view.y;
export const redraw = () => { dirty = true; };

export function setTheme(name) {
  theme = name;
  const style = getComputedStyle(document.documentElement);
  [ink, ground, paper, line, soft] = ['--ink', '--ground', '--paper', '--line', '--soft'].map(n => style.getPropertyValue(n).trim());
  if (model.survey) paintHeat();
  dirty = true;
}
export const currentTheme = () => theme;

// ---- the view ----

function limits() {
  const side = model.world?.side ?? 1;
  return { least: 0.6 * Math.min(view.width, view.height) / side, most: 12 };
}

export function fit(glides) {
  if (!model.world) return;
  const side = model.world.side, scale = Math.min(view.width, view.height) * 0.93 / side;
  move({ x: model.world.x + side / 2, y: model.world.y + side / 2, scale }, glides);
}

export function move(to, glides) {
  const { least, most } = limits(), side = model.world?.side ?? 1, w = model.world ?? { x: 0, y: 0 };
  const target = { x: Math.min(w.x + side, Math.max(w.x, to.x ?? view.x)), y: Math.min(w.y + side, Math.max(w.y, to.y ?? view.y)),
    scale: Math.min(most, Math.max(least, to.scale ?? view.scale)) };
  const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
  glide = glides && !still ? { from: { x: view.x, y: view.y, scale: view.scale }, to: target, began: performance.now() } : null;
  if (!glide) Object.assign(view, target);
  dirty = true;
}

export function zoomAt(factor, px, py, glides) {
  const x = toWorldX(px), y = toWorldY(py), { least, most } = limits();
  const scale = Math.min(most, Math.max(least, view.scale * factor));
  move({ scale, x: x - (px - view.width / 2) / scale, y: y + (py - view.height / 2) / scale }, glides);
}

export function showRegion(region, glides = true) {
  move({ x: region.x + region.size / 2, y: region.y + region.size / 2, scale: Math.min(view.width, view.height) * 0.6 / region.size }, glides);
}

function glideOn(now) {
  if (!glide) return;
  const t = Math.min(1, (now - glide.began) / GLIDE_MS), e = 1 - (1 - t) ** 3, { from, to } = glide;
  view.scale = from.scale * (to.scale / from.scale) ** e;
  view.x = from.x + (to.x - from.x) * e;
  view.y = from.y + (to.y - from.y) * e;
  if (t === 1) glide = null;
  dirty = true;
}

// The rectangle in view and a rim, snapped so that a small move asks nothing new.
function look() {
  const w = model.world;
  if (!w) return;
  const broad = Math.max(view.width, view.height) / view.scale;
  let step = w.side;
  while (step > broad / 3 && step > w.side / 4096) step /= 2;
  const snap = (v, origin, up) => Math.min(w.side, Math.max(0, (up ? Math.ceil : Math.floor)((v - origin) / step) * step));
  const x0 = snap(toWorldX(0), w.x, false), x1 = snap(toWorldX(view.width), w.x, true);
  const y0 = snap(toWorldY(view.height), w.y, false), y1 = snap(toWorldY(0), w.y, true);
  if (x1 <= x0 || y1 <= y0) return;
  const parts = Math.max(4, Math.min(STEP_PARTS, Math.floor(256 / (Math.max(x1 - x0, y1 - y0) / step))));
  lookAt({ min_x: w.x + x0, min_y: w.y + y0, max_x: w.x + x1, max_y: w.y + y1, columns: Math.round((x1 - x0) / step) * parts,
    rows: Math.round((y1 - y0) / step) * parts, most: step > w.side / 8 ? DOTS_FAR : DOTS_MOST });
}

// ---- what is drawn, prepared when it changes ----

// Borders between servers, as segments: each leaf's west and south edge against what lies beyond it.
function prepareBorders() {
  segments = [];
  loadMost = 1;
  for (const region of model.regions) {
    loadMost = Math.max(loadMost, loadOf(region));
    for (const side of ['west', 'south', 'east', 'north']) edges(region, side);
  }
}

const loadOf = region => region.load > 0 ? region.load : region.owned / Math.max(1, region.size / model.world.cell) ** 0.5;

function edges(region, side) {
  const { x, y, size } = region, tiny = model.world.cell / 4, across = side === 'west' || side === 'east';
  for (let at = 0; at < size;) {
    const px = side === 'west' ? x - tiny : side === 'east' ? x + size + tiny : x + at + tiny;
    const py = side === 'south' ? y - tiny : side === 'north' ? y + size + tiny : y + at + tiny;
    const other = regionAt(px, py);
    if (other === null) return;
    const run = Math.min(size - at, (across ? other.y : other.x) + other.size - (across ? y : x) - at);
    if (other.primary !== region.primary) {
      const fixed = side === 'west' ? x : side === 'east' ? x + size : side === 'south' ? y : y + size;
      segments.push(across ? { x0: fixed, y0: y + at, x1: fixed, y1: y + at + run, nx: side === 'west' ? 1 : -1, ny: 0, server: region.primary }
        : { x0: x + at, y0: fixed, x1: x + at + run, y1: fixed, nx: 0, ny: side === 'south' ? 1 : -1, server: region.primary });
    }
    if (!(run > 0)) return;
    at += run;
  }
}

export function regionAt(x, y) {
  const w = model.world;
  if (!w || x < w.x || y < w.y || x >= w.x + w.side || y >= w.y + w.side) return null;
  let fx = (x - w.x) / w.side, fy = (y - w.y) / w.side, key = '';
  for (let depth = 0; depth <= 30; depth++) {
    const region = model.byKey.get(key);
    if (region) return region;
    fx *= 2; fy *= 2;
    const right = fx >= 1, up = fy >= 1;
    key += (right ? 1 : 0) + (up ? 2 : 0);
    fx -= right; fy -= up;
  }
  return null;
}

// Each number spread over its neighbours, 1:2:1 both ways, so that a crowd glows and a grid does not show.
function soften(sums, columns, rows) {
  const pass = new Float32Array(sums.length), row = 4 * columns;
  for (let i = 0; i < sums.length; i++) {
    const column = (i % row) >> 2;
    pass[i] = (2 * sums[i] + (column > 0 ? sums[i - 4] : 0) + (column < columns - 1 ? sums[i + 4] : 0)) / 4;
  }
  for (let i = 0; i < sums.length; i++)
    sums[i] = (2 * pass[i] + (i >= row ? pass[i - row] : 0) + (i + row < sums.length ? pass[i + row] : 0)) / 4;
}

// One pixel a part, in the colours of those who own what is there; the canvas scales it softly.
function paintHeat() {
  const s = model.survey, { columns, rows } = s;
  if (columns === 0) return;
  heat.width = columns;
  heat.height = rows;
  const image = heatCtx.createImageData(columns, rows), sums = new Float32Array(columns * rows * 4);
  for (const share of s.servers) {
    const [r, g, b] = colour(model.byNode.get(share.node) ?? null, theme);
    let index = -1;
    for (let i = 0; i < share.cells.length; i += 2) {
      index += share.cells[i] + 1;
      const n = share.cells[i + 1] * share.stride;
      sums[4 * index] += r * n; sums[4 * index + 1] += g * n; sums[4 * index + 2] += b * n; sums[4 * index + 3] += n;
    }
  }
  soften(sums, columns, rows);
  let most = 1;
  for (let i = 3; i < sums.length; i += 4) most = Math.max(most, sums[i]);
  heatMost = Math.max(2, 0.7 * heatMost + 0.3 * most);
  const full = Math.log1p(3 * heatMost), strength = theme === 'dark' ? 235 : 215, lift = theme === 'dark' ? 0.32 : 0;
  for (let i = 0, row = rows - 1; row >= 0; row--) {
    for (let column = 0; column < columns; column++, i += 4) {
      const at = 4 * (row * columns + column), n = sums[at + 3];
      if (n < 0.01) continue;
      const t = Math.min(1, Math.log1p(3 * n) / full), white = lift * t;
      for (let k = 0; k < 3; k++) image.data[i + k] = sums[at + k] / n * (1 - white) + 255 * white;
      image.data[i + 3] = strength * t;
    }
  }
  heatCtx.putImageData(image, 0, 0);
  heatPlace = { x0: s.min_x, y0: s.min_y, x1: s.max_x, y1: s.max_y };
}

// Dots glide from where they are shown to where they have been seen now.
function takeDots() {
  const now = performance.now(), seen = new Set();
  for (const share of model.survey.servers) {
    const name = model.byNode.get(share.node) ?? null;
    for (let i = 0; i < share.entities.length; i += 3) {
      const id = share.entities[i], x = share.entities[i + 1], y = share.entities[i + 2], dot = dots.get(id);
      seen.add(id);
      if (!dot) {
        dots.set(id, { x0: x, y0: y, x, y, began: now, name });
        continue;
      }
      const [sx, sy] = shown(dot, now);
      const far = Math.hypot(x - sx, y - sy) > 60; /* a teleport is no glide */
      Object.assign(dot, { x0: far ? x : sx, y0: far ? y : sy, x, y, began: now, name });
    }
  }
  for (const id of dots.keys()) if (!seen.has(id)) dots.delete(id);
}

function shown(dot, now) {
  const t = Math.min(1, (now - dot.began) / DOT_MS);
  return [dot.x0 + (dot.x - dot.x0) * t, dot.y0 + (dot.y - dot.y0) * t];
}

// The dot nearest to the pointer, as an id.
export function dotAt(px, py, within = 9) {
  const now = performance.now();
  let best = null, least = within ** 2;
  for (const [id, dot] of dots) {
    const [x, y] = shown(dot, now), d = (toScreenX(x) - px) ** 2 + (toScreenY(y) - py) ** 2;
    if (d < least) { least = d; best = id; }
  }
  return best;
}

// ---- drawing ----

function rectOf(region, grow = 0) {
  const x = Math.round(toScreenX(region.x)), y = Math.round(toScreenY(region.y + region.size));
  const right = Math.round(toScreenX(region.x + region.size)), bottom = Math.round(toScreenY(region.y));
  return [x - grow, y - grow, right - x + 2 * grow, bottom - y + 2 * grow];
}

const inView = ([x, y, w, h]) => x < view.width && y < view.height && x + w > 0 && y + h > 0;

function drawRegions() {
  const dark = theme === 'dark', floor = dark ? 0.10 : 0.13, span = dark ? 0.20 : 0.30;
  for (const region of model.regions) {
    const rect = rectOf(region);
    if (!inView(rect)) continue;
    const away = view.server !== null && view.server !== region.primary;
    const shade = floor + span * Math.sqrt(loadOf(region) / loadMost);
    ctx.fillStyle = rgb(colour(region.primary, theme), away ? 0.35 * shade : shade);
    ctx.fillRect(...rect);
  }
  ctx.strokeStyle = dark ? 'rgba(255,255,255,.07)' : 'rgba(255,255,255,.75)';
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (const region of model.regions) {
    const rect = rectOf(region);
    if (inView(rect) && rect[2] > 5) ctx.rect(rect[0] + 0.5, rect[1] + 0.5, rect[2], rect[3]);
  }
  ctx.stroke();
  drawUnprotected();
}

// Hatched: nobody could take over.
function drawUnprotected() {
  for (const region of model.regions) {
    if (region.primary !== null && region.standby !== null && region.level) continue;
    const [x, y, w, h] = rectOf(region);
    if (!inView([x, y, w, h]) || w < 6) continue;
    ctx.save();
    ctx.beginPath();
    ctx.rect(x, y, w, h);
    ctx.clip();
    ctx.strokeStyle = rgb(colour(region.primary, theme), 0.34);
    ctx.beginPath();
    const gap = 9, from = Math.max(-h, -x - h), to = Math.min(w, view.width - x);
    for (let d = Math.floor(from / gap) * gap; d < to; d += gap) { ctx.moveTo(x + d, y + h); ctx.lineTo(x + d + h, y); }
    ctx.stroke();
    ctx.restore();
  }
}

function drawHeat() {
  if (!heatPlace || model.survey.columns === 0) return;
  const x = toScreenX(heatPlace.x0), y = toScreenY(heatPlace.y1);
  ctx.save();
  ctx.globalAlpha = dots.size > 0 ? 0.34 : 0.95;
  if (theme === 'dark') ctx.globalCompositeOperation = 'screen';
  ctx.imageSmoothingEnabled = true;
  ctx.imageSmoothingQuality = 'high';
  ctx.drawImage(heat, x, y, toScreenX(heatPlace.x1) - x, toScreenY(heatPlace.y0) - y);
  ctx.restore();
}

function drawBorders() {
  ctx.lineWidth = 1.5;
  const paths = new Map();
  for (const s of segments) {
    if (!paths.has(s.server)) paths.set(s.server, new Path2D());
    const path = paths.get(s.server), nudge = 1.25;
    path.moveTo(Math.round(toScreenX(s.x0)) + s.nx * nudge, Math.round(toScreenY(s.y0)) - s.ny * nudge);
    path.lineTo(Math.round(toScreenX(s.x1)) + s.nx * nudge, Math.round(toScreenY(s.y1)) - s.ny * nudge);
  }
  for (const [server, path] of paths) {
    ctx.strokeStyle = rgb(colour(server, theme), view.server === null || view.server === server ? 0.85 : 0.25);
    ctx.stroke(path);
  }
}

function drawFlashes(now) {
  for (let i = flashes.length; i-- > 0;) {
    const flash = flashes[i], t = (now - flash.began) / FLASH_MS;
    if (t >= 1) { flashes.splice(i, 1); continue; }
    const region = model.byKey.get(flash.key), rect = region && rectOf(region);
    if (!rect || !inView(rect)) continue;
    const fade = (1 - t) ** 2, to = colour(region.primary, theme);
    ctx.fillStyle = rgb(theme === 'dark' ? [255, 255, 255] : to, (theme === 'dark' ? 0.42 : 0.5) * fade);
    ctx.fillRect(...rect);
    const grow = flash.split ? 0 : 12 * t;
    ctx.strokeStyle = rgb(to, fade);
    ctx.lineWidth = 2;
    ctx.strokeRect(rect[0] - grow, rect[1] - grow, rect[2] + 2 * grow, rect[3] + 2 * grow);
  }
}

// A hand-off: a ring in the colour of the new owner, with what is left of the old one inside.
function drawRipples(now) {
  for (let i = ripples.length; i-- > 0;) {
    const r = ripples[i], t = (now - r.began) / CROSSING_MS;
    if (t >= 1) { ripples.splice(i, 1); continue; }
    if (t < 0) continue;
    const x = toScreenX(r.x), y = toScreenY(r.y);
    if (x < -20 || y < -20 || x > view.width + 20 || y > view.height + 20) continue;
    const to = colour(r.to, theme), small = r.from === r.to ? 0.55 : 1;
    ctx.lineWidth = 1.6 * small;
    ctx.strokeStyle = rgb(to, small * (1 - t));
    ctx.beginPath();
    ctx.arc(x, y, (2 + 11 * Math.sqrt(t)) * small, 0, 2 * Math.PI);
    ctx.stroke();
    if (t > 0.35 || r.from === r.to) continue;
    ctx.fillStyle = rgb(colour(r.from, theme), 1 - t / 0.35);
    ctx.beginPath();
    ctx.arc(x, y, 2.4, 0, 2 * Math.PI);
    ctx.fill();
  }
}

function drawDots(now) {
  if (dots.size === 0) return;
  const size = Math.min(4.2, Math.max(1.3, 1.1 + view.scale * 0.9)), paths = new Map();
  for (const dot of dots.values()) {
    const [wx, wy] = shown(dot, now), x = toScreenX(wx), y = toScreenY(wy);
    if (x < -5 || y < -5 || x > view.width + 5 || y > view.height + 5) continue;
    if (!paths.has(dot.name)) paths.set(dot.name, new Path2D());
    const path = paths.get(dot.name);
    if (dots.size > 2000 && size < 2) { path.rect(x - size, y - size, 2 * size, 2 * size); continue; }
    path.moveTo(x + size, y);
    path.arc(x, y, size, 0, 2 * Math.PI);
  }
  for (const [name, path] of paths) {
    const away = view.server !== null && view.server !== name;
    ctx.fillStyle = rgb(colour(name, theme), away ? 0.3 : 1);
    ctx.fill(path);
    if (size < 2.4) continue;
    ctx.strokeStyle = ground;
    ctx.lineWidth = 0.8;
    ctx.stroke(path);
  }
}

function drawFollow(now) {
  const f = view.follow;
  if (!f || f.x === undefined) return;
  ctx.lineJoin = 'round';
  ctx.lineCap = 'round';
  ctx.lineWidth = 2.4;
  for (let i = 1; i < f.trail.length; i++) {
    const a = f.trail[i - 1], b = f.trail[i];
    if (b.jump) continue;
    ctx.strokeStyle = rgb(colour(b.name, theme), 0.25 + 0.75 * i / f.trail.length);
    ctx.beginPath();
    ctx.moveTo(toScreenX(a.x), toScreenY(a.y));
    ctx.lineTo(toScreenX(b.x), toScreenY(b.y));
    ctx.stroke();
  }
  const [wx, wy] = shown(f, now), x = toScreenX(wx), y = toScreenY(wy), pulse = 1 + 0.12 * Math.sin(now / 300);
  ctx.fillStyle = rgb(colour(f.name, theme), 1);
  ctx.strokeStyle = ink;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  ctx.arc(x, y, 5, 0, 2 * Math.PI);
  ctx.fill();
  ctx.stroke();
  ctx.beginPath();
  ctx.arc(x, y, 13 * pulse, 0, 2 * Math.PI);
  for (let k = 0; k < 4; k++) {
    const dx = [1, 0, -1, 0][k], dy = [0, 1, 0, -1][k];
    ctx.moveTo(x + dx * 13 * pulse, y + dy * 13 * pulse);
    ctx.lineTo(x + dx * 20, y + dy * 20);
  }
  ctx.stroke();
}

function drawNames() {
  ctx.textBaseline = 'top';
  for (const region of model.regions) {
    const rect = rectOf(region);
    const x = Math.max(rect[0], 0) + 7, y = Math.max(rect[1], 0) + 6;
    if (rect[2] < 92 || rect[0] + rect[2] - x < 62 || rect[1] + rect[3] - y < 34 || !inView(rect)) continue;
    ctx.font = '11px ui-monospace, "DejaVu Sans Mono", monospace';
    ctx.fillStyle = rgb(colour(region.primary, theme), theme === 'dark' ? 0.8 : 0.95);
    ctx.fillText(region.key || 'world', x, y);
    if (rect[2] < 150) continue;
    ctx.font = '11px system-ui, "DejaVu Sans", sans-serif';
    ctx.fillStyle = soft;
    ctx.fillText(region.primary ?? 'no server', x, y + 15);
  }
}

function drawOutline(region, width, alpha) {
  if (!region) return;
  const [x, y, w, h] = rectOf(region);
  ctx.strokeStyle = ink;
  ctx.globalAlpha = alpha;
  ctx.lineWidth = width;
  ctx.strokeRect(x + 0.5, y + 0.5, w, h);
  ctx.globalAlpha = 1;
}

function drawScale() {
  const bar = document.getElementById('scale-bar'), text = document.getElementById('scale-text');
  const metres = 110 / view.scale, unit = 10 ** Math.floor(Math.log10(metres));
  const nice = [5, 2, 1].map(k => k * unit).find(v => v <= metres) ?? unit;
  bar.style.width = `${nice * view.scale}px`;
  text.textContent = nice >= 1000 ? `${nice / 1000} km` : `${nice} m`;
}

function draw(now) {
  const ratio = devicePixelRatio || 1;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = ground;
  ctx.fillRect(0, 0, view.width, view.height);
  if (!model.world) return;
  const w = model.world, world = rectOf({ x: w.x, y: w.y, size: w.side });
  ctx.fillStyle = paper;
  ctx.fillRect(...world);
  drawRegions();
  drawHeat();
  drawBorders();
  drawFlashes(now);
  drawDots(now);
  drawRipples(now);
  drawNames();
  drawFollow(now);
  drawOutline(model.byKey.get(view.chosen), 2, 1);
  if (view.hovered !== view.chosen) drawOutline(model.byKey.get(view.hovered), 1.5, 0.55);
  ctx.strokeStyle = line;
  ctx.lineWidth = 1;
  ctx.strokeRect(world[0] - 0.5, world[1] - 0.5, world[2] + 1, world[3] + 1);
  if (!model.connected) {
    ctx.fillStyle = ground;
    ctx.globalAlpha = 0.45;
    ctx.fillRect(0, 0, view.width, view.height);
    ctx.globalAlpha = 1;
  }
}

function moves(now) {
  if (flashes.length > 0 || ripples.length > 0 || view.follow) return true;
  for (const dot of dots.values()) return now - dot.began < DOT_MS;
  return false;
}

function frame(now) {
  requestAnimationFrame(frame);
  glideOn(now);
  if (!dirty && !moves(now)) return;
  dirty = false;
  const began = performance.now();
  draw(now);
  frames.ms[frames.count++ % 600] = performance.now() - began;
}

function resize() {
  const ratio = devicePixelRatio || 1, box = canvas.getBoundingClientRect(), first = view.width === 1;
  view.width = box.width;
  view.height = box.height;
  canvas.width = Math.round(box.width * ratio);
  canvas.height = Math.round(box.height * ratio);
  if (first) fit(false);
  dirty = true;
}

listen((what, detail) => {
  if (what === 'map') {
    if (detail.first) fit(false);
    if (detail.anew) prepareBorders();
    for (const { region, from, split } of detail.changed) if (from !== undefined && !detail.first) flashes.push({ key: region.key, split, began: performance.now() });
  } else if (what === 'survey') {
    paintHeat();
    takeDots();
  } else if (what === 'crossings') {
    const now = performance.now();
    for (const c of detail.slice(-300))
      ripples.push({ x: c.x, y: c.y, from: model.byNode.get(c.from_node), to: model.byNode.get(c.to_node), began: now + Math.random() * 480 });
  }
  dirty = true;
});

export function start() {
  new ResizeObserver(resize).observe(canvas);
  resize();
  let last = '';
  setInterval(() => {
    const at = `${view.x} ${view.y} ${view.scale} ${view.width}`;
    if (at !== last) drawScale();
    last = at;
    look();
  }, 120);
  requestAnimationFrame(frame);
}
