// msgpack, reading only, as far as Terrane's messages go. Integers beyond 2^53 become BigInt; bin is a Uint8Array.

function decode(bytes, at = 0) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const text = new TextDecoder();

  function wide(value) { return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value; }
  function take(size) { const from = at; at += size; if (at > bytes.length) throw new RangeError('the message ends within a value'); return from; }
  function array(count) { return Array.from({ length: count }, value); }
  function raw(size) { const from = take(size); return bytes.subarray(from, from + size); }

  function value() {
    const tag = view.getUint8(take(1));
    if (tag < 0x80) return tag;
    if (tag >= 0xe0) return tag - 256;
    if ((tag & 0xf0) === 0x90) return array(tag & 15);
    if ((tag & 0xe0) === 0xa0) return text.decode(raw(tag & 31));
    switch (tag) {
      case 0xc0: return null;
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xc4: return raw(view.getUint8(take(1)));
      case 0xc5: return raw(view.getUint16(take(2)));
      case 0xc6: return raw(view.getUint32(take(4)));
      case 0xca: return view.getFloat32(take(4));
      case 0xcb: return view.getFloat64(take(8));
      case 0xcc: return view.getUint8(take(1));
      case 0xcd: return view.getUint16(take(2));
      case 0xce: return view.getUint32(take(4));
      case 0xcf: return wide(view.getBigUint64(take(8)));
      case 0xd0: return view.getInt8(take(1));
      case 0xd1: return view.getInt16(take(2));
      case 0xd2: return view.getInt32(take(4));
      case 0xd3: return wide(view.getBigInt64(take(8)));
      case 0xd9: return text.decode(raw(view.getUint8(take(1))));
      case 0xda: return text.decode(raw(view.getUint16(take(2))));
      case 0xdc: return array(view.getUint16(take(2)));
      case 0xdd: return array(view.getUint32(take(4)));
      default: throw new RangeError(`0x${tag.toString(16)} is not in Terrane's messages`);
    }
  }
  const decoded = value();
  if (at !== bytes.length) throw new RangeError('bytes follow the value');
  return decoded;
}
