// W holds what the parts share: data, state, small tools. Text enters the page as text only.
const W = {data: JSON.parse(document.getElementById('data').textContent), tables: {}, redraw: {}, recorder: null};

W.byId = (id) => document.getElementById(id);
W.chart = (id) => document.querySelector(`[data-chart="${id}"]`);

// Characters that turn text round are shown as a mark.
W.plain = (text) => text.replace(/[\u202A-\u202E\u2066-\u2069]/g, '␣');

W.make = function (tag, attributes = {}, ...children) {
  const svg = ['svg', 'path', 'circle', 'line', 'rect', 'text', 'polygon', 'title', 'defs', 'linearGradient', 'stop', 'image'];
  const node = svg.includes(tag) ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children) node.append(typeof child === 'string' ? W.plain(child) : child);
  return node;
};

// Packed arrays: base64 of little-endian numbers, of bits, or of points in three bytes.
W.decode = function (packed) {
  if (!packed) return null;
  const raw = atob(packed.b), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  if (packed.$ === 'u1') return bytes;
  if (packed.$ === 'u2') return new Uint16Array(bytes.buffer);
  if (packed.$ === 'i4') return new Int32Array(bytes.buffer);
  if (packed.$ === 'f4') return new Float32Array(bytes.buffer);
  if (packed.$ === 'bits') return Uint8Array.from({length: packed.n}, (_, i) => (bytes[i >> 3] >> (7 - (i & 7))) & 1);
  const n = bytes.length / 3;
  const x = new Uint16Array(n), y = new Uint16Array(n);
  for (let i = 0; i < n; i++) {
    const [a, b, c] = [bytes[3 * i], bytes[3 * i + 1], bytes[3 * i + 2]];
    x[i] = (a << 4) | (b >> 4);
    y[i] = ((b & 15) << 8) | c;
  }
  return {x, y, w: packed.w, h: packed.h, toX: (q) => packed.x + q * packed.s, toY: (q) => packed.y + q * packed.s};
};

// Position of the pair (i, j), i < j, in the row-wise upper triangle of an n × n table.
W.pairAt = (i, j, n) => (i < j ? i * n - (i * (i + 1)) / 2 + j - i - 1 : W.pairAt(j, i, n));

W.show = function (value, kind) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  if (kind === 'interval') return `${value[0]}–${value[1]}`;
  if (kind === 'share') return `${Math.round(value * 100)}%`;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value !== 'number' || Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(4)));
};

// Tables as files. A cell that a spreadsheet would run as a formula is made text again.
W.cell = function (value) {
  if (value === null || value === undefined || Number.isNaN(value)) return '';
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
W.csv = ({columns, rows}) => [columns, ...rows].map((row) => row.map(W.cell).join(',')).join('\r\n') + '\r\n';
W.records = ({columns, rows}) => rows.map((row) => Object.fromEntries(columns.map((c, i) => [c, row[i] ?? null])));

W.listeners = {};
W.on = (what, tell) => (W.listeners[what] = W.listeners[what] || []).push(tell);
W.emit = (what) => (W.listeners[what] || []).forEach((tell) => tell());

// What is chosen now: a run (partition), one to compare with, a drawn object, a cluster to see alone,
// a colouring, the objects inside a loop.
W.state = {run: W.data.best, other: null, object: null, cluster: null, colour: null, picked: null};
W.choose = function (what, value) {
  if (W.state[what] === value) return;
  W.state[what] = value;
  W.emit(what);
};
W.chooseRun = function (run) {
  W.state.cluster = null;
  W.choose('run', run);
  W.say(run < 0 ? 'No row is chosen.' : `${W.data.partitions[run]} is chosen.`);
};
// What a scatter plot shows of a run; where rows are clusters, the whole clustering.
W.runName = (run) => W.data.whole ?? W.data.partitions[run];
W.spaceOf = (run) => W.data.made_in[run];
W.runOf = (space) => W.data.made_in.indexOf(space);
W.chooseSpace = function (space) {
  const run = W.runOf(space);
  if (run >= 0) W.chooseRun(run);
};

W.theme = function () {
  if (W.printing) return 'light';
  const asked = document.documentElement.dataset.theme;
  return asked || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
};
W.surface = (name) => W.data.palette.surfaces[W.theme()][name];
W.colour = function (code) {
  const list = W.data.palette.clusters[W.theme()];
  return code < 0 ? W.surface('noise') : list[code % list.length];
};
W.paint = (code) => (code < 0 ? 'var(--noise)' : `var(--c${code % W.data.palette.clusters.light.length})`);
W.mark = (code) => (code < 0 ? 0 : Math.floor(code / 8) % 5);

// The image of an object, where the page has one; four times as large for the tip.
const placeOfTile = new Map((W.data.sheet ? W.data.sheet.tiles : []).map((object, at) => [object, at]));
W.tile = function (object) {
  const at = placeOfTile.get(object);
  if (at === undefined) return null;
  const {across, size} = W.data.sheet;
  return W.make('i', {class: 'tile', 'data-object': object, style: `background-position:${-(at % across) * size}px ${-Math.floor(at / across) * size}px`});
};
// Codes of clusters as they are packed; the largest number is noise.
W.codes = function (packed) {
  const none = packed.$ === 'u1' ? 255 : 65535;
  return Int32Array.from(W.decode(packed), (c) => (c === none ? -1 : c));
};

W.say = (text) => { W.byId('live').textContent = W.plain(text); };
W.tip = function (text, x, y, object = null) {
  const tip = W.byId('tip'), tile = object === null ? null : W.tile(object);
  tip.hidden = !text;
  if (!text) return;
  tip.replaceChildren(...(tile ? [tile] : []), W.plain(text));
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 6))}px`;
  tip.style.top = `${y + box.height + 24 > innerHeight ? y - box.height - 10 : y + 16}px`;
};

// A holder that is drawn now, whenever its width changes, and when asked to.
W.draw = function (holder, drawer, ...occasions) {
  if (!holder) return;
  let width = 0;
  const again = () => { if (width > 0) drawer(width); };
  new ResizeObserver(() => {
    const now = Math.floor(holder.clientWidth);
    if (now === width || now === 0) return;
    width = now;
    again();
  }).observe(holder);
  for (const what of occasions) W.on(what, again);
};

W.canvas = function (canvas, width, height) {
  if (W.recorder) return W.recorder.start(width, height);
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext('2d');
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
};

// Many small cells as one picture: (i, j) => [red, green, blue].
W.pixels = function (pen, rows, columns, rgb, x, y, width, height) {
  const small = document.createElement('canvas');
  small.width = columns;
  small.height = rows;
  const ink = small.getContext('2d'), data = ink.createImageData(columns, rows);
  for (let i = 0, at = 0; i < rows; i++) for (let j = 0; j < columns; j++, at += 4) {
    const [r, g, b] = rgb(i, j);
    data.data[at] = r; data.data[at + 1] = g; data.data[at + 2] = b; data.data[at + 3] = 255;
  }
  ink.putImageData(data, 0, 0);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(small, x, y, width, height);
};

// A pen that writes SVG: the drawing of a canvas as a file that can be scaled.
W.Recorder = class {
  start(width, height) {
    Object.assign(this, {width, height, parts: [], d: '', fillStyle: '#000', strokeStyle: '#000', lineWidth: 1, globalAlpha: 1, font: '12px sans-serif', textAlign: 'left', textBaseline: 'alphabetic'});
    return this;
  }
  beginPath() { this.d = ''; }
  moveTo(x, y) { this.d += `M${x.toFixed(1)} ${y.toFixed(1)}`; }
  lineTo(x, y) { this.d += `L${x.toFixed(1)} ${y.toFixed(1)}`; }
  closePath() { this.d += 'Z'; }
  rect(x, y, w, h) { this.d += `M${x.toFixed(1)} ${y.toFixed(1)}h${w.toFixed(1)}v${h.toFixed(1)}h${(-w).toFixed(1)}Z`; }
  arc(x, y, r) { const s = r.toFixed(1), t = (2 * r).toFixed(1); this.d += `M${(x - r).toFixed(1)} ${y.toFixed(1)}a${s} ${s} 0 1 0 ${t} 0a${s} ${s} 0 1 0 -${t} 0`; }
  fill() { this.put('path', {d: this.d, fill: this.fillStyle}); }
  stroke() { this.put('path', {d: this.d, fill: 'none', stroke: this.strokeStyle, 'stroke-width': this.lineWidth}); }
  fillRect(x, y, w, h) { this.put('rect', {x: x.toFixed(1), y: y.toFixed(1), width: w.toFixed(1), height: h.toFixed(1), fill: this.fillStyle}); }
  strokeRect(x, y, w, h) { this.put('rect', {x, y, width: w, height: h, fill: 'none', stroke: this.strokeStyle, 'stroke-width': this.lineWidth}); }
  fillText(words, x, y) {
    this.put('text', {x, y: this.textBaseline === 'middle' ? y + 4 : y, fill: this.fillStyle, 'text-anchor': {right: 'end', center: 'middle'}[this.textAlign] || 'start', style: `font:${this.font}`}, words);
  }
  strokeText() {}
  drawImage(picture, x, y, width, height) { this.put('image', {x, y, width, height, href: picture.toDataURL(), style: 'image-rendering:pixelated'}); }
  put(tag, attributes, ...words) {
    if (this.globalAlpha < 1) attributes.opacity = this.globalAlpha;
    this.parts.push(W.make(tag, attributes, ...words));
  }
  svg() { return W.make('svg', {viewBox: `0 0 ${this.width} ${this.height}`, width: this.width, height: this.height}, ...this.parts); }
};
