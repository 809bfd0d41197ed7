// What is known of the world: fetched from /api/, kept, and told to whoever listens. No drawing here.

const PALETTE = {
  dark: [[96, 165, 250], [247, 185, 85], [52, 205, 168], [176, 148, 248], [248, 122, 146], [160, 208, 96], [84, 200, 232], [248, 148, 98]],
  light: [[47, 108, 212], [214, 142, 24], [18, 150, 122], [124, 88, 214], [208, 62, 98], [110, 152, 28], [20, 136, 172], [214, 98, 36]],
};
const MAX_EVENTS = 400;
const LIVE_MS = 250, RETRY_MS = 500, SECOND_MS = 1000, SURVEY_MS = 500;
const GONE_MS = 8000; // a coordinator that is started again is back before

export const model = {
  world: null,       // constants; x and y of `origin`, `side` in metres
  map: null,         // as /api/map
  regions: [],       // {key, x, y, size, epoch, since, primary, standby, level, owned}; primary, standby: names or null
  byKey: new Map(),
  servers: [],       // {name, node, colour index, state, rates ...}
  byNode: new Map(), // node id -> name, also of servers that are gone
  events: [], crossings: [],
  survey: null,      // the last picture of entities
  connected: false, stale: true, instance: null, leaderHttp: '', consoles: [], failing: 0,
  handoffsPerS: 0,
};

const listeners = [];
export function listen(listener) { listeners.push(listener); }
function tell(what, detail) { for (const listener of listeners) listener(what, detail); }

// Colours belong to names: a server that comes back keeps its own.
const colourOf = new Map();
export function colour(name, theme) {
  if (!name) return theme === 'dark' ? [110, 116, 126] : [150, 152, 156];
  if (!colourOf.has(name)) colourOf.set(name, colourOf.size);
  const index = colourOf.get(name), table = PALETTE[theme];
  if (index < table.length) return table[index];
  return fromHue((index * 137.508 + 20) % 360, theme === 'dark' ? 0.66 : 0.42);
}

function fromHue(hue, light) {
  const saturation = 0.55 * Math.min(light, 1 - light);
  return [0, 8, 4].map(n => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (light - saturation * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  });
}

const natural = new Intl.Collator('en', { numeric: true }).compare;

async function get(path) {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), 4000);
  try {
    const answer = await fetch('api/' + path, { signal: controller.signal, cache: 'no-store' });
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    return await answer.json();
  } finally {
    clearTimeout(timer);
  }
}

function place(key) {
  let x = 0, y = 0, size = 1;
  for (const digit of key) {
    size /= 2;
    if (digit & 1) x += size;
    if (digit & 2) y += size;
  }
  const side = model.world.side;
  return { x: model.world.x + x * side, y: model.world.y + y * side, size: size * side };
}

function takeMap(map) {
  const w = map.world, first = model.world === null;
  model.world = { x: w.origin_x, y: w.origin_y, side: w.cell_size * 2 ** w.depth, cell: w.cell_size };
  const names = map.servers.map(server => server.name);
  for (const name of [...names].sort(natural)) colour(name, 'dark');
  for (const server of map.servers) model.byNode.set(server.node, server.name);
  const changed = [], former = model.byKey;
  const anew = model.map === null || model.map.term !== map.term || model.map.rev !== map.rev ||
    model.regions.length !== map.regions.length;
  if (map.leads || map.regions.some(region => region[3] !== null)) {
    model.regions = map.regions.map(([key, epoch, since, primary, standby, level, owned, load]) => {
      const before = former.get(key);
      const region = before ? { ...before } : { key, ...place(key) };
      Object.assign(region, { epoch, since, level, owned, load: load ?? 0, primary: primary === null ? null : names[primary],
        standby: standby === null ? null : names[standby] });
      if (before && before.primary !== region.primary) changed.push({ region, from: before.primary });
      return region;
    });
    model.byKey = new Map(model.regions.map(region => [region.key, region]));
    takeMembers(map);
    // Splits and merges: children flash in their own colour.
    if (former.size > 0)
      for (const region of model.regions) if (!former.has(region.key)) changed.push({ region, from: region.primary, split: true });
  }
  model.map = map;
  tell('map', { first, anew, changed });
}

function takeMembers(map) {
  const known = new Map(model.servers.map(server => [server.name, server]));
  const sums = new Map();
  for (const region of model.regions) {
    const sum = sums.get(region.primary) ?? { regions: 0, owned: 0 };
    sum.regions++;
    sum.owned += region.owned;
    sums.set(region.primary, sum);
  }
  model.servers = map.servers.map(member => {
    const before = known.get(member.name);
    const server = before && before.node === member.node ? before : { name: member.name, node: member.node };
    const state = member.expected ? 'awaited' : member.lapsed ? 'lapsed' : member.silent ? 'silent' : member.draining ? 'draining' : '';
    const sum = sums.get(member.name) ?? { regions: 0, owned: 0 };
    // A coordinator that was started a moment ago knows of no entities yet.
    if (member.expected || (sum.owned === 0 && map.entities === 0)) sum.owned = server.owned ?? 0;
    return Object.assign(server, { state, capacity: member.capacity, ghosts: member.expected ? server.ghosts : member.ghosts }, sum);
  }).sort((a, b) => natural(a.name, b.name));
}

// Rates and percentiles come from two answers of the same incarnation.
function takeStatus(answer) {
  const now = performance.now(), byNode = new Map(model.servers.map(server => [server.node, server]));
  let handoffs = 0;
  for (const { node, age_ms, status } of answer.servers) {
    const server = byNode.get(node);
    if (!server || !status) continue;
    const at = now - age_ms, io = status.io ?? {}, last = server.sample;
    server.age = age_ms;
    server.owned = status.owned;
    server.ghosts = status.ghosts;
    const sample = { at, cpu: io.process_cpu_seconds_total ?? null, handoffs: status.handoffs_in + status.handoffs_local,
      moves: status.moves, buckets: buckets(io) };
    server.drops = drops(status, io);
    if (!last || at - last.at < 400) {
      if (!last) server.sample = sample;
      handoffs += server.handoffsPerS ?? 0;
      continue;
    }
    const seconds = (at - last.at) / 1000;
    if (sample.cpu !== null) server.cpu = (sample.cpu - last.cpu) / seconds;
    server.handoffsPerS = (sample.handoffs - last.handoffs) / seconds;
    server.movesPerS = (sample.moves - last.moves) / seconds;
    server.p50 = quantile(last.buckets, sample.buckets, 0.5);
    server.p99 = quantile(last.buckets, sample.buckets, 0.99);
    server.sample = sample;
    handoffs += server.handoffsPerS;
  }
  model.handoffsPerS = handoffs;
  tell('servers');
}

function drops(status, io) {
  let sum = status.dropped + status.views_dropped;
  for (const [name, value] of Object.entries(io)) if (name.startsWith('terrane_io_dropped_total')) sum += value;
  return sum;
}

// [upper bound in s, ticks up to it] of the histogram.
function buckets(io) {
  const h = io.terrane_tick_seconds;
  return h ? [...h.le.map((bound, i) => [bound, h.count[i]]), [Infinity, h.total]] : [];
}

// Milliseconds, linear within a bucket; null where nothing was counted.
function quantile(before, after, share) {
  if (after.length === 0 || before.length !== after.length) return null;
  const counts = after.map(([, n], i) => n - before[i][1]), all = counts[counts.length - 1];
  if (!(all > 0)) return null;
  for (let i = 0; i < counts.length; i++) {
    if (counts[i] < share * all) continue;
    const low = i === 0 ? 0 : after[i - 1][0], below = i === 0 ? 0 : counts[i - 1];
    const high = after[i][0] === Infinity ? low : after[i][0];
    return 1000 * (low + (high - low) * (share * all - below) / Math.max(1, counts[i] - below));
  }
  return null;
}

// A coordinator that was started again counts anew.
let seen = { event: 0, crossing: 0 };
let mapDue = 0, serversDue = 0, surveyDue = 0;

function takeLive(live) {
  if (model.instance !== live.instance) {
    if (model.instance !== null) tell('restarted');
    model.instance = live.instance;
    if (seen.event > 0) { seen = { event: 0, crossing: 0 }; return false; }
  }
  const first = seen.event === 0 && model.events.length === 0;
  seen = { event: live.event, crossing: live.crossing };
  model.leads = live.leads;
  model.leaderHttp = live.leader_http ?? '';
  model.consoles = live.consoles ?? [];
  if (live.events.length > 0) {
    model.events.push(...live.events);
    model.events.splice(0, Math.max(0, model.events.length - MAX_EVENTS));
    tell('events', { fresh: first ? [] : live.events });
  }
  if (live.crossings.length > 0 && !first) tell('crossings', live.crossings);
  return true;
}

async function turn() {
  const live = await get(`live?event=${seen.event}&crossing=${seen.crossing}`);
  const counted = takeLive(live), now = performance.now();
  const stale = model.map === null || model.map.term !== live.term || model.map.rev !== live.rev || now >= mapDue;
  const wants = [];
  if (stale) { mapDue = now + SECOND_MS; wants.push(get('map').then(takeMap)); }
  if (now >= serversDue) { serversDue = now + SECOND_MS; wants.push(get('servers').then(takeStatus)); }
  await Promise.all(wants);
  return counted;
}

// The rectangle that the map shows, asked for by map.js; its answers go to `survey`.
let rectangle = null;
export function lookAt(wanted) {
  if (rectangle !== null && Object.keys(wanted).every(name => rectangle[name] === wanted[name])) return;
  rectangle = wanted;
  surveyDue = 0;
}

async function surveys() {
  for (;;) {
    await pause(60);
    const now = performance.now();
    if (document.hidden || !model.connected || rectangle === null || now < surveyDue) continue;
    surveyDue = now + SURVEY_MS;
    const asked = rectangle;
    try {
      const answer = await get('survey?' + new URLSearchParams(asked));
      if (asked !== rectangle) continue;
      if (answer.pending) surveyDue = performance.now() + 80;
      if (answer.servers.length === 0) continue;
      model.survey = answer;
      tell('survey');
    } catch { surveyDue = performance.now() + RETRY_MS; }
  }
}

export async function entity(id) { return get('entity?id=' + id); }

export function pause(ms) { return new Promise(done => setTimeout(done, ms)); }

// Another coordinator's page, when this one's has been gone for long: the first that answers, whatever it says. What
// follows is that one's to tell; the address keeps what is looked at.
async function moveOn() {
  for (const url of model.consoles) {
    if (url === location.origin) continue;
    try {
      await fetch(url + '/healthz', { mode: 'no-cors', cache: 'no-store', signal: AbortSignal.timeout(1000) });
      location.replace(url + '/' + location.hash);
      return true;
    } catch { /* not there either */ }
  }
  return false;
}

export async function run() {
  surveys();
  let heard = performance.now();
  for (;;) {
    if (document.hidden) { await pause(LIVE_MS); continue; }
    const began = performance.now();
    try {
      await turn();
      if (!model.connected) { model.connected = true; tell('connected'); }
      model.failing = 0;
      heard = performance.now();
      await pause(Math.max(30, LIVE_MS - (performance.now() - began)));
    } catch (error) {
      model.failing++;
      if (model.connected && model.failing > 1) { model.connected = false; tell('disconnected', String(error)); }
      if (performance.now() - heard > GONE_MS && await moveOn()) return;
      await pause(RETRY_MS / 2);
    }
  }
}
