// The panel: sums, servers, events. Rows are kept and filled anew, so that focus and selection stay where they are.

import { model, colour, listen } from './model.js';
import { view, redraw, currentTheme, showRegion } from './map.js';

const number = new Intl.NumberFormat('en');
const SHOWN_EVENTS = 150;
// Told only where all are wanted: they come in swarms and change nothing that people see.
const QUIET = new Set(['map', 'stop', 'refused', 'late_ticks', 'standby', 'link_refused', 'dropped']);
const $ = id => document.getElementById(id);

// ---- sums ----

function sums() {
  const m = model.map;
  if (!m) return;
  const owned = model.servers.reduce((sum, server) => sum + (server.owned ?? 0), 0);
  const able = m.servers.filter(server => !server.lapsed && !server.silent && !server.expected).length;
  const protectedShare = model.regions.length === 0 ? 0 : 1 - (m.unprotected + m.unowned) / model.regions.length;
  const cells = [
    ['entities', number.format(owned), '', false],
    ['regions', number.format(model.regions.length), protectedShare < 1 ? `${Math.floor(100 * protectedShare)}% safe` : '', protectedShare < 1],
    ['servers', String(able), able < m.servers.length ? `of ${m.servers.length}` : '', able < m.servers.length],
    ['hand-offs', number.format(Math.round(model.handoffsPerS)), '/s', false],
  ];
  const list = $('sums');
  if (list.children.length !== cells.length)
    list.replaceChildren(...cells.map(([name]) => { const cell = document.createElement('div'); cell.append(document.createElement('dt'), document.createElement('dd')); cell.firstChild.textContent = name; return cell; }));
  cells.forEach(([, value, small, warn], i) => {
    const cell = list.children[i], dd = cell.lastChild, key = value + small;
    cell.classList.toggle('warn', warn);
    if (dd.dataset.key === key) return;
    dd.dataset.key = key;
    dd.textContent = value;
    if (small) { const unit = document.createElement('small'); unit.textContent = ' ' + small; dd.append(unit); }
  });
}

// ---- servers ----

const rows = new Map();

function newRow(name) {
  const row = document.createElement('tr');
  row.tabIndex = 0;
  for (let i = 0; i < 6; i++) row.append(document.createElement('td'));
  const dot = document.createElement('i'), label = document.createElement('span'), state = document.createElement('em');
  dot.className = 'dot';
  label.textContent = name;
  row.cells[0].append(dot, label, state);
  const bar = document.createElement('span'), fill = document.createElement('i');
  bar.className = 'bar';
  bar.append(fill);
  row.cells[1].append(bar, document.createElement('span'));
  const light = () => { view.server = name; redraw(); };
  const unlight = () => { view.server = chosenServer; redraw(); };
  row.addEventListener('mouseenter', light);
  row.addEventListener('mouseleave', unlight);
  row.addEventListener('focus', light);
  row.addEventListener('blur', unlight);
  const choose = () => {
    chosenServer = chosenServer === name ? null : name;
    view.server = chosenServer;
    for (const [other, r] of rows) r.classList.toggle('chosen', other === chosenServer);
    redraw();
  };
  row.addEventListener('click', choose);
  row.addEventListener('keydown', event => { if (event.key === 'Enter' || event.key === ' ') { choose(); event.preventDefault(); } });
  row.setAttribute('aria-label', name);
  return row;
}

let chosenServer = null;

function fill(cell, text) { if (cell.textContent !== text) cell.textContent = text; }

function serverRow(server) {
  if (!rows.has(server.name)) rows.set(server.name, newRow(server.name));
  const row = rows.get(server.name), away = server.state === 'lapsed' || server.state === 'silent';
  row.cells[0].firstChild.style.background = `rgb(${colour(server.name, currentTheme())})`;
  fill(row.cells[0].lastChild, server.state);
  row.classList.toggle('gone', away);
  row.title = `${server.regions} regions, capacity ${server.capacity}, ${number.format(Math.round(server.movesPerS ?? 0))} moves/s, ` +
    `${(server.handoffsPerS ?? 0).toFixed(1)} hand-offs/s`;
  const cpu = server.cpu, known = cpu !== undefined && !away;
  row.cells[1].firstChild.firstChild.style.width = known ? `${Math.min(100, 100 * cpu)}%` : '0';
  fill(row.cells[1].lastChild, known ? `${Math.round(100 * cpu)}%` : '\u2013');
  const ms = v => v === null || v === undefined ? '\u2013' : v < 10 ? v.toFixed(1) : String(Math.round(v));
  fill(row.cells[2], away ? '\u2013' : `${ms(server.p50)} / ${ms(server.p99)}`);
  row.cells[2].classList.toggle('hot', !away && server.p99 > 40);
  fill(row.cells[3], number.format(server.owned ?? 0));
  fill(row.cells[4], away ? '\u2013' : number.format(server.ghosts ?? 0));
  fill(row.cells[5], server.drops === undefined ? '\u2013' : number.format(server.drops));
  return row;
}

function servers() {
  const wanted = model.servers.map(serverRow), body = $('server-rows');
  for (const [name] of rows) if (!model.servers.some(server => server.name === name)) rows.delete(name);
  if (wanted.length === body.rows.length && wanted.every((row, i) => body.rows[i] === row)) return;
  body.replaceChildren(...wanted);
}

// ---- events ----

const regionsOf = e => e.leaves === '1' ? `region ${e.first}` : `${e.leaves} regions`;
const ofNamed = e => e.role === 'gateway' ? `gateway ${e.name}` : e.name;
// What a line says to a person; the reason stands below it. Unknown ones show what they have.
const TELL = {
  promoted: e => `${e.server} takes over ${regionsOf(e)} from ${e.from || 'nobody'}`,
  assigned: e => `${e.server} gets ${regionsOf(e)}`,
  orphaned: e => `${regionsOf(e)} of ${e.from} without a server`,
  standby: e => e.standby ? `${e.standby} stands by for ${regionsOf(e)} of ${e.server}` : `${regionsOf(e)} of ${e.server} without a standby`,
  unprotected: e => e.leaves === '0' ? 'every region is protected' : `${e.leaves} regions unprotected`,
  dead: e => `${ofNamed(e)} is dead`,
  lapsed: e => `${ofNamed(e)} is not heard`,
  silent: e => `${ofNamed(e)} is silent`,
  heard_again: e => `${ofNamed(e)} is heard again`,
  joined: e => `${ofNamed(e)} joined`,
  left: e => `${ofNamed(e)} left`,
  draining: e => `${e.name} is being drained`,
  leads: () => 'this coordinator leads',
  follows: e => `coordinator ${e.leader} leads`,
  deposed: () => 'this coordinator leads no more',
  stalled: () => 'the store does not answer: nothing is decided',
  leads_on: () => 'the store is back',
  store_lost: () => 'the store had lost writes: all is written again',
  split: e => `region ${e.leaf} is split`,
  merge: e => `region ${e.leaf} is merged`,
  move: e => `region ${e.leaf} goes from ${e.from} to ${e.to}`,
  split_given_up: e => `region ${e.leaf} is not split after all`,
  merge_given_up: e => `region ${e.leaf} is not merged after all`,
  move_given_up: e => `region ${e.leaf} does not go to ${e.to} after all`,
  ready: e => `the map is there: ${e.leaves} regions`,
  took_over: e => `took the world over in term ${e.term}: ${e.leaves} regions, ${e.servers} servers`,
  store_up: () => 'the store answers',
  store_down: () => 'the store does not answer',
};
const PLAIN = new Set(['seq', 'at', 'level', 'event', 'reason', 'node', 'from_node', 'standby_node', 'inbox']);

function sentence(event) {
  try {
    if (TELL[event.event]) return TELL[event.event](event);
  } catch { /* fields that are not there: as they come */ }
  const rest = Object.entries(event).filter(([key]) => !PLAIN.has(key)).map(([key, value]) => `${key} ${value}`);
  return [event.event.replaceAll('_', ' '), ...rest].join(', ');
}

function goButton(key, text) {
  const go = document.createElement('button');
  go.textContent = text;
  go.addEventListener('click', () => {
    const region = model.byKey.get(key);
    if (!region) return;
    view.chosen = key;
    showRegion(region);
  });
  return go;
}

function eventItem(event, fresh) {
  const item = document.createElement('li'), time = document.createElement('time'), box = document.createElement('div');
  const what = document.createElement('p'), at = new Date(event.at);
  item.className = event.level + (fresh ? ' fresh' : '');
  item.dataset.seq = event.seq;
  time.textContent = at.toLocaleTimeString([], { hour12: false });
  time.dateTime = at.toISOString();
  what.className = 'what';
  what.textContent = sentence(event);
  box.append(what);
  const key = event.first ?? event.leaf, figures = [];
  if (event.entities) figures.push(`${number.format(event.entities)} entities`);
  if (event.load) figures.push(`load ${event.load}`);
  if (event.reason || key || figures.length > 0) {
    const why = document.createElement('p');
    why.textContent = [event.reason, ...figures].filter(Boolean).join(', ') + ' ';
    if (key && model.byKey.has(key)) why.append(goButton(key, event.leaves === '1' || event.leaf ? key : `from ${key} on`));
    box.append(why);
  }
  item.append(time, box);
  return item;
}

const isShown = event => $('events-all').checked || !(QUIET.has(event.event) || (event.event === 'joined' && event.role === 'gateway'));

function allEvents() {
  const shown = model.events.filter(isShown).slice(-SHOWN_EVENTS).reverse().map(event => eventItem(event, false));
  if (shown.length === 0) {
    const none = document.createElement('li');
    none.className = 'empty';
    none.textContent = 'Nothing has happened yet.';
    shown.push(none);
  }
  $('event-list').replaceChildren(...shown);
}

function freshEvents(fresh) {
  const list = $('event-list');
  const items = fresh.filter(isShown).reverse().map(event => eventItem(event, true));
  if (items.length === 0) return;
  list.querySelector('.empty')?.remove();
  list.prepend(...items);
  while (list.children.length > SHOWN_EVENTS) list.lastChild.remove();
}

// ---- the coordinator ----

function state() {
  const pill = $('state'), banner = $('banner'), m = model.map;
  let text = 'live', kind = 'good', said = '';
  if (!model.connected) {
    [text, kind] = [m ? 'reconnecting' : 'connecting', 'bad'];
    if (m) said = 'The coordinator does not answer. The world goes on without it; this picture is the last one known.';
  } else if (m && !m.leads) {
    [text, kind] = ['not leading', 'warn'];
    said = m.leader && m.leader !== m.name ? `This coordinator waits: ${m.leader} leads. ` : 'No coordinator leads: is the store there? ';
  } else if (m && m.unprotected + m.unowned > 0) [text, kind] = ['protecting', 'warn'];
  pill.textContent = text;
  pill.className = 'pill ' + kind;
  pill.title = m ? `coordinator ${m.name}, term ${m.term}, revision ${m.rev}` : '';
  banner.hidden = said === '';
  if (banner.dataset.said === said + model.leaderHttp) return;
  banner.dataset.said = said + model.leaderHttp;
  banner.textContent = said;
  if (!model.leaderHttp || !model.connected) return;
  const link = document.createElement('a');
  link.href = model.leaderHttp + '/' + location.hash;
  link.textContent = 'Open its console.';
  banner.append(link);
}

export function refresh() { sums(); servers(); state(); }

export function start() {
  $('events-all').addEventListener('change', allEvents);
  allEvents();
  listen((what, detail) => {
    if (what === 'map' || what === 'servers') { sums(); servers(); }
    if (what === 'map' || what === 'connected' || what === 'disconnected') state();
    if (what === 'map' && detail.first) allEvents();
    if (what === 'events') detail.fresh.length > 0 ? freshEvents(detail.fresh) : allEvents();
  });
}
