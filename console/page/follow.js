// One entity, followed wherever it goes: asked for by its id, several times a second.

import { model, colour, entity, pause } from './model.js';
import { view, move, redraw, currentTheme } from './map.js';

const EVERY_MS = 200, TRAIL = 900, OWNERS = 5, NEAR = 0.9;
const card = document.getElementById('follow');
let wanted = 0;

export function unfollow() {
  wanted++;
  view.follow = null;
  card.hidden = true;
  history.replaceState(null, '', location.pathname);
  redraw();
}

export function follow(id) {
  const turn = ++wanted;
  view.follow = { id, trail: [], owners: [], crossed: 0, centred: true, zoomed: false };
  history.replaceState(null, '', '#' + id);
  render({ found: false, pending: true });
  loop(turn, id);
}

export function centre() {
  if (!view.follow) return;
  view.follow.centred = !view.follow.centred;
  render(view.follow.last);
}

async function loop(turn, id) {
  while (turn === wanted) {
    try {
      const answer = await entity(id);
      if (turn === wanted) take(answer);
    } catch { /* the page says that the coordinator is away; it is asked again */ }
    await pause(document.hidden ? 1000 : EVERY_MS);
  }
}

function take(answer) {
  const f = view.follow, now = performance.now();
  f.last = answer;
  if (answer.x === undefined) { render(answer); return; }
  const name = answer.server ?? f.name ?? null, fresh = f.x === undefined;
  const jump = !fresh && Math.hypot(answer.x - f.x, answer.y - f.y) > 60;
  Object.assign(f, { x0: fresh || jump ? answer.x : f.x, y0: fresh || jump ? answer.y : f.y, x: answer.x, y: answer.y, began: now });
  if (name !== null && name !== f.name) owner(f, name);
  const last = f.trail[f.trail.length - 1];
  if (!last || last.x !== answer.x || last.y !== answer.y) f.trail.push({ x: answer.x, y: answer.y, name, jump });
  if (f.trail.length > TRAIL) f.trail.shift();
  if (f.centred) camera(f, fresh || jump);
  render(answer);
  redraw();
}

function owner(f, name) {
  if (f.name !== undefined) f.crossed++;
  f.name = name;
  f.owners.unshift({ name, at: new Date() });
  f.owners.length = Math.min(f.owners.length, OWNERS);
}

function camera(f, far) {
  const near = NEAR * Math.min(view.width, view.height) / 900;
  const scale = f.zoomed ? view.scale : Math.max(view.scale, near * 1.4);
  f.zoomed = true;
  move({ x: f.x, y: f.y, scale }, true);
  if (far) redraw();
}

const swatch = name => {
  const dot = document.createElement('i');
  dot.className = 'dot';
  dot.style.background = `rgb(${colour(name, currentTheme())})`;
  dot.style.margin = '0';
  return dot;
};

function text(tag, content, parent) {
  const node = document.createElement(tag);
  node.textContent = content;
  parent.append(node);
  return node;
}

function render(answer) {
  const f = view.follow;
  card.hidden = false;
  card.replaceChildren();
  const head = document.createElement('header');
  card.append(head);
  head.append(swatch(f.name ?? null));
  text('b', shorten(f.id), head).title = f.id;
  const keep = text('button', f.centred ? '\u25c9' : '\u25cb', head);
  keep.title = 'Keep it in the middle (C)';
  keep.setAttribute('aria-pressed', f.centred);
  keep.addEventListener('click', centre);
  const close = text('button', '\u2715', head);
  close.title = 'Stop following (Esc)';
  close.setAttribute('aria-label', 'Stop following');
  close.addEventListener('click', unfollow);
  const kv = document.createElement('div');
  kv.className = 'kv';
  card.append(kv);
  const row = (key, value) => { text('span', key, kv); text('span', value, kv).dataset.field = key; };
  if (answer.x === undefined) {
    row('state', answer.pending ? 'asking all servers\u2026' : 'nobody has this entity');
    return;
  }
  row('server', answer.server ?? (answer.pending ? 'between servers' : 'gone'));
  row('region', answer.leaf);
  row('place', `${answer.x.toFixed(1)}, ${answer.y.toFixed(1)} m`);
  row('servers changed', String(f.crossed));
  if (f.owners.length < 2) return;
  const list = document.createElement('ol');
  card.append(list);
  for (const { name, at } of f.owners) {
    const item = document.createElement('li');
    item.append(swatch(name), name);
    text('time', at.toLocaleTimeString([], { hour12: false }), item);
    list.append(item);
  }
}

const shorten = id => id.length > 14 ? `${id.slice(0, 6)}\u2026${id.slice(-6)}` : id;

export function fromAddress() {
  const id = location.hash.slice(1);
  if (/^[0-9]+$/.test(id)) follow(id);
}
