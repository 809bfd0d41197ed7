// Follows region streams: what each frame says, step by step as docs/PROTOCOL.md has it, without snapshots.

const leaves = new Map(); // topic -> {epoch, seq, tick, slots: slot -> {id, x, y}, moves, gaps}
const totals = { frames: 0, wrong: 0 };

// Codes name slots: c >= 0 goes on by c + 1 and takes that one, c < 0 takes the next -c.
function* slotsOf(codes) {
  let slot = -1;
  for (const code of codes)
    if (code >= 0) yield slot += code + 1;
    else for (let i = 0; i < -code; i++) yield ++slot;
}

function apply(leaf, [, , , codes, deltas, ...sections]) {
  const section = number => sections.find(items => items[0] === number)?.slice(1) ?? [];
  for (const [slot] of section(1)) leaf.slots.delete(slot);
  for (const [slot, record] of section(2)) leaf.slots.set(slot, { id: record[0], x: record[5], y: record[6] });
  let at = 0;
  for (const slot of slotsOf(codes)) {
    const entity = leaf.slots.get(slot);
    leaf.moves++;
    if (entity) { entity.x += deltas[at]; entity.y += deltas[at + 1]; }
    at += 2;
  }
  if (at !== deltas.length) throw new RangeError('codes and deltas do not match');
}

function take(topic, frame) {
  const [epoch, seq, tick] = frame;
  let leaf = leaves.get(topic);
  if (leaf && epoch < leaf.epoch) return;
  if (!leaf || epoch > leaf.epoch) leaves.set(topic, leaf = { epoch, seq: null, slots: new Map(), moves: 0, gaps: leaf?.gaps ?? 0 });
  leaf.tick = tick;
  if (leaf.seq !== null && seq <= leaf.seq) return; // a beat
  if (leaf.seq !== null && seq > leaf.seq + 1) { leaf.gaps++; leaf.slots.clear(); }
  leaf.seq = seq;
  apply(leaf, frame);
}

function heard(bytes) {
  const second = bytes.indexOf(0x2f, bytes.indexOf(0x2f) + 1), topic = new TextDecoder().decode(bytes.subarray(0, second + 1));
  if (!topic.startsWith('r/')) return; // SUB filters at the reader: here
  totals.frames++;
  try { take(topic, decode(bytes.subarray(second + 1))); } catch (error) { totals.wrong++; console.error(topic, error); }
}

function dial(url) {
  const socket = new WebSocket(url, 'pub.sp.nanomsg.org'); // nng wants the publisher's name here
  socket.binaryType = 'arraybuffer';
  socket.onmessage = event => heard(new Uint8Array(event.data));
  socket.onclose = () => setTimeout(dial, 1000, url);
}

function draw() {
  const canvas = document.getElementById('world'), context = canvas.getContext('2d');
  const all = [...leaves.values()].flatMap(leaf => [...leaf.slots.values()]);
  const side = Math.max(1, ...all.map(entity => Math.max(entity.x, entity.y))) * 1.05;
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = '#60a5fa';
  for (const { x, y } of all) context.fillRect(x / side * canvas.width - 1, canvas.height - y / side * canvas.height - 1, 3, 3);
  document.getElementById('rows').replaceChildren(...[...leaves].sort(([a], [b]) => a < b ? -1 : 1).map(([topic, leaf]) => {
    const row = document.createElement('tr');
    for (const cell of [topic, leaf.epoch, leaf.seq, leaf.tick, leaf.slots.size, leaf.moves, leaf.gaps])
      row.insertCell().textContent = cell;
    return row;
  }));
  document.getElementById('said').textContent = `${totals.frames} frames, ${all.length} entities known, ${totals.wrong} not understood`;
}

const urls = location.search.slice(1).split(',').filter(Boolean);
urls.forEach(dial);
if (urls.length > 0) setInterval(draw, 100);

globalThis.terraneFeeds = { leaves, totals }; // for tests
