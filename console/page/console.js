// Ties it together: pointer, keys, theme, the tip beside the pointer.

import { model, listen, run, colour } from './model.js';
import * as map from './map.js';
import * as panel from './panel.js';
import { follow, unfollow, centre, fromAddress } from './follow.js';

const { view } = map, $ = id => document.getElementById(id), canvas = $('map'), tip = $('tip');
const number = new Intl.NumberFormat('en');

// ---- theme ----

function stored() { try { return localStorage.getItem('theme'); } catch { return null; } }
function theme(name, keep) {
  document.documentElement.dataset.theme = name;
  if (keep) try { localStorage.setItem('theme', name); } catch { /* private windows keep nothing */ }
  map.setTheme(name);
  panel.refresh();
}
const system = matchMedia('(prefers-color-scheme: dark)');
system.addEventListener('change', () => { if (!stored()) theme(system.matches ? 'dark' : 'light', false); });
const otherTheme = () => theme(map.currentTheme() === 'dark' ? 'light' : 'dark', true);

// ---- the tip ----

function fillTip(region) {
  const rows = [['standby', region.standby ? region.standby + (region.level ? '' : ' (catching up)') : 'none'], ['epoch', `${region.epoch}, since ${region.since}`],
    ['entities', number.format(region.owned)]];
  if (region.load > 0) rows.push(['load', `${(region.load / 1000).toFixed(2)} ms/tick`]);
  rows.push(['size', `${number.format(region.size)} m`]);
  const head = document.createElement('b'), dot = document.createElement('i'), kv = document.createElement('div');
  dot.className = 'dot';
  dot.style.background = `rgb(${colour(region.primary, map.currentTheme())})`;
  head.append(dot, `${region.primary ?? 'no server'} \u00b7 ${region.key || 'world'}`);
  kv.className = 'kv';
  for (const [key, value] of rows) {
    const a = document.createElement('span'), b = document.createElement('span');
    a.textContent = key;
    b.textContent = value;
    kv.append(a, b);
  }
  tip.replaceChildren(head, kv);
}

function showTip(region, px, py) {
  tip.hidden = region === null;
  if (!region) return;
  fillTip(region);
  const box = tip.getBoundingClientRect();
  tip.style.left = `${px + 18 + box.width > view.width ? Math.max(4, px - 14 - box.width) : px + 18}px`;
  tip.style.top = `${Math.min(view.height - box.height - 6, Math.max(6, py + 14))}px`;
}

function tipOfChosen() {
  const region = model.byKey.get(view.chosen) ?? null;
  if (!region) { showTip(null); return; }
  const scale = view.scale, x = (region.x + region.size - view.x) * scale + view.width / 2, y = view.height / 2 - (region.y + region.size - view.y) * scale;
  showTip(region, Math.min(view.width - 20, x - 10), y);
}

// ---- pointer ----

const pointers = new Map();
let dragged = 0, hover = null;

canvas.addEventListener('pointerdown', event => {
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
  dragged = 0;
});
canvas.addEventListener('pointermove', event => {
  const held = pointers.get(event.pointerId);
  if (!held) { hoverAt(event.offsetX, event.offsetY); return; }
  if (pointers.size === 1) {
    dragged += Math.abs(event.offsetX - held.x) + Math.abs(event.offsetY - held.y);
    if (dragged > 4) {
      canvas.classList.add('drag');
      if (view.follow) view.follow.centred = false;
      map.move({ x: view.x - (event.offsetX - held.x) / view.scale, y: view.y + (event.offsetY - held.y) / view.scale });
      showTip(null);
    }
  } else {
    const [a, b] = [...pointers.values()], before = Math.hypot(a.x - b.x, a.y - b.y);
    pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    const [c, d] = [...pointers.values()];
    map.zoomAt(Math.hypot(c.x - d.x, c.y - d.y) / Math.max(1, before), (c.x + d.x) / 2, (c.y + d.y) / 2);
    dragged = 99;
  }
  pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
});
function released(event) {
  if (pointers.delete(event.pointerId) && dragged <= 4 && event.type === 'pointerup') clicked(event.offsetX, event.offsetY);
  canvas.classList.remove('drag');
}
canvas.addEventListener('pointerup', released);
canvas.addEventListener('pointercancel', released);
canvas.addEventListener('pointerleave', () => { hover = view.hovered = null; showTip(null); map.redraw(); });
canvas.addEventListener('dblclick', event => map.zoomAt(2.2, event.offsetX, event.offsetY, true));
canvas.addEventListener('wheel', event => {
  event.preventDefault();
  if (view.follow && !event.ctrlKey) map.zoomAt(Math.exp(-event.deltaY * 0.0016), view.width / 2, view.height / 2);
  else map.zoomAt(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), event.offsetX, event.offsetY);
}, { passive: false });

function hoverAt(px, py) {
  hover = { px, py };
  const region = map.regionAt(map.toWorldX(px), map.toWorldY(py));
  view.hovered = region?.key ?? null;
  canvas.classList.toggle('pick', map.dotAt(px, py) !== null);
  showTip(region, px, py);
  map.redraw();
}

function clicked(px, py) {
  const id = map.dotAt(px, py);
  if (id !== null) { follow(id); return; }
  const region = map.regionAt(map.toWorldX(px), map.toWorldY(py));
  view.chosen = region && region.key !== view.chosen ? region.key : null;
  map.redraw();
}

// ---- keys ----

const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

function chooseNext([dx, dy]) {
  const from = model.byKey.get(view.chosen) ?? map.regionAt(view.x, view.y) ?? model.regions[0];
  if (!from) return;
  const tiny = model.world.cell / 4, x = from.x + from.size / 2 + dx * (from.size / 2 + tiny), y = from.y + from.size / 2 + dy * (from.size / 2 + tiny);
  const next = view.chosen === null ? from : map.regionAt(x - (dx === 0 ? tiny : 0), y - (dy === 0 ? tiny : 0)) ?? from;
  view.chosen = next.key;
  const px = (next.x + next.size / 2 - view.x) * view.scale, py = (next.y + next.size / 2 - view.y) * view.scale;
  if (Math.abs(px) > view.width / 2 || Math.abs(py) > view.height / 2) map.move({ x: next.x + next.size / 2, y: next.y + next.size / 2 });
  tipOfChosen();
  map.redraw();
}

const KEYS = {
  '+': () => map.zoomAt(1.6, view.width / 2, view.height / 2, true),
  '=': () => KEYS['+'](),
  '-': () => map.zoomAt(1 / 1.6, view.width / 2, view.height / 2, true),
  '0': () => { if (view.follow) view.follow.centred = false; map.fit(true); },
  '/': () => $('search-id').focus(),
  c: centre, t: otherTheme,
  '?': () => $('keys').showModal(),
  Escape: () => { unfollow(); view.chosen = null; showTip(null); map.redraw(); },
};

document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || $('keys').open) return;
  if (event.target instanceof HTMLInputElement) {
    if (event.key === 'Escape') { event.target.blur(); canvas.focus(); }
    return;
  }
  const way = event.target === canvas ? WAYS[event.key] : undefined;
  if (way && event.shiftKey) {
    if (view.follow) view.follow.centred = false;
    map.move({ x: view.x + way[0] * 90 / view.scale, y: view.y + way[1] * 90 / view.scale }, true);
  } else if (way) chooseNext(way);
  else if (event.key === 'Enter' && event.target === canvas && view.chosen !== null) map.showRegion(model.byKey.get(view.chosen));
  else if (KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key]) KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key]();
  else return;
  event.preventDefault();
});

$('search').addEventListener('submit', event => {
  event.preventDefault();
  const id = $('search-id').value.trim();
  if (/^[0-9]{1,20}$/.test(id) && id !== '0') { follow(id); canvas.focus(); }
});
$('zoom-in').addEventListener('click', KEYS['+']);
$('zoom-out').addEventListener('click', KEYS['-']);
$('zoom-all').addEventListener('click', KEYS['0']);
$('theme').addEventListener('click', otherTheme);
$('help').addEventListener('click', KEYS['?']);

// ---- start ----

listen(what => {
  if (what !== 'map') return;
  if (hover) hoverAt(hover.px, hover.py);
  else if (!tip.hidden) tipOfChosen();
});

map.start();
panel.start();
theme(stored() ?? (system.matches ? 'dark' : 'light'), false);
fromAddress();
run();

// For tests: what the page believes.
globalThis.terraneConsole = { model, view, frames: map.frames };
