// Spaces side by side, coloured by the labels of any run, by the truth, or by a value.
(function () {
  const scatters = W.data.scatters;
  if (!scatters) return;
  const n = scatters.names.length, objects = W.decode(scatters.objects);
  const planes = scatters.spaces.map(() => null), labels = new Map();
  const values = Object.fromEntries(Object.entries(scatters.values).map(([k, v]) => [k, W.decode(v)]));
  const VALUES = {width: 'silhouette width', margin: 'margin', lcd: 'local connectivity disagreement'};
  const place = new Map([...objects].map((o, i) => [o, i]));
  const plane = (space) => planes[space] || (planes[space] = W.decode(scatters.spaces[space].plane));
  W.objectName = (object) => (place.has(object) ? scatters.names[place.get(object)] : null);

  function labelling(name) {
    if (!labels.has(name)) {
      const part = name === null ? scatters.truth : scatters.labels[name];
      if (!part) return null;
      const codes = W.decode(part.codes), none = part.codes.$ === 'u1' ? 255 : 65535;
      labels.set(name, {
        title: name === null ? 'truth' : name, clusters: part.clusters, colours: part.colours,
        codes: Int32Array.from(codes, (c) => (c === none ? -1 : c)),
      });
    }
    return labels.get(name);
  }
  // What colours the objects now: {title, codes, clusters, colours} or {title, values}.
  function colouring() {
    const by = W.state.colour;
    if (by === 'truth') return labelling(null);
    if (by && by.startsWith('value:')) {
      const key = by.slice(6);
      return {title: VALUES[key], values: values[key], key};
    }
    const name = W.data.partitions[by && by.startsWith('run:') ? Number(by.slice(4)) : W.state.run];
    return labelling(name) || labelling(Object.keys(scatters.labels)[0] ?? '') || {title: 'nothing', codes: new Int32Array(n).fill(0), clusters: [''], colours: [0]};
  }
  function shade(now) {
    const finite = [...now.values].filter(Number.isFinite);
    const most = Math.max(...finite.map(Math.abs), 1e-12);
    return (v) => (Number.isFinite(v) ? W.diverging(now.key === 'lcd' ? -v / most : now.key === 'width' ? v : v / most) : W.surface('noise'));
  }

  function paint(pen, space, size, radius, now) {
    const {x, y, w, h} = plane(space);
    const pad = radius + 5, unit = (size - 2 * pad) / 4095;
    const left = pad + (4095 - w) * unit / 2, low = size - pad - (4095 - h) * unit / 2;
    const px = (i) => left + x[i] * unit, py = (i) => low - y[i] * unit;
    pen.globalAlpha = n > 1200 ? 0.75 : 0.85;
    if (now.values) {
      const colour = shade(now);
      for (let i = 0; i < n; i++) {
        pen.fillStyle = colour(now.values[i]);
        pen.beginPath();
        W.trace(pen, 0, px(i), py(i), radius);
        pen.fill();
      }
    } else {
      const batches = new Map();
      for (let i = 0; i < n; i++) {
        const code = now.codes[i];
        const faint = W.state.cluster !== null && code !== W.state.cluster;
        const id = faint ? -2 : code < 0 ? -1 : now.colours[code];
        if (!batches.has(id)) batches.set(id, []);
        batches.get(id).push(i);
      }
      for (const id of [...batches.keys()].sort((a, b) => a - b)) {
        pen.fillStyle = id === -2 ? W.surface('line') : W.colour(id);
        pen.beginPath();
        for (const i of batches.get(id)) W.trace(pen, W.mark(id), px(i), py(i), radius);
        pen.fill();
      }
    }
    pen.globalAlpha = 1;
    return {px, py};
  }

  function words(i, now) {
    const lines = [scatters.names[i]];
    if (now.codes && now.clusters.length) lines.push(now.codes[i] < 0 ? 'noise' : `cluster ${now.clusters[now.codes[i]]}`);
    for (const [key, list] of Object.entries(values)) if (Number.isFinite(list[i])) lines.push(`${VALUES[key]} ${W.show(Number(list[i].toPrecision(3)))}`);
    return lines.join('\n');
  }

  class Panel {
    constructor(title, spaces, id) {
      this.spaces = spaces;
      this.space = spaces[0];
      this.figure = W.make('figure', {class: 'chart scatter', id});
      const header = W.make('header');
      this.pick = W.make('select', {'aria-label': `${title}: which space`});
      for (const s of spaces) this.pick.append(W.make('option', {value: s}, scatters.spaces[s].name));
      header.append(W.make('h3', {}, title), this.pick);
      this.holder = W.make('div', {class: 'canvas'});
      this.canvas = W.make('canvas', {tabindex: '0', role: 'img'});
      this.said = W.make('p', {class: 'said'});
      this.holder.append(this.canvas);
      this.figure.append(header, this.holder, this.said);
      this.pick.hidden = scatters.spaces.length === 1;
      this.pick.addEventListener('change', () => this.show(Number(this.pick.value)));
      this.canvas.addEventListener('pointermove', (e) => this.hover(e));
      this.canvas.addEventListener('pointerleave', () => W.tip(''));
      this.canvas.addEventListener('click', (e) => {
        const i = this.nearest(e);
        W.choose('object', i < 0 ? null : objects[i]);
      });
      this.canvas.addEventListener('keydown', (e) => this.walk(e));
      W.draw(this.holder, (width) => this.draw(width), 'run', 'colour', 'cluster', 'object', 'theme');
    }
    show(space) {
      this.space = space;
      this.pick.value = String(space);
      if (this.size) this.draw(Math.floor(this.holder.clientWidth));
    }
    draw(width) {
      this.size = Math.min(width, 560);
      const now = colouring();
      const pen = W.canvas(this.canvas, this.size, this.size);
      this.at = paint(pen, this.space, this.size, n > 1200 ? 2.4 : n > 300 ? 3 : 4, now);
      const chosen = place.get(W.state.object);
      if (chosen !== undefined) {
        pen.strokeStyle = W.surface('ink');
        pen.lineWidth = 2;
        pen.beginPath();
        pen.arc(this.at.px(chosen), this.at.py(chosen), 8, 0, 2 * Math.PI);
        pen.stroke();
      }
      const here = scatters.spaces[this.space];
      const fate = W.fate ? `${W.fate(this.space)}; ` : '';
      const picked = chosen === undefined ? '' : ` Marked: ${words(chosen, now).replaceAll('\n', ', ')}.`;
      this.said.textContent = `${here.name}: ${fate}drawn by ${here.axes}, coloured by ${now.title}.${picked}`;
      this.canvas.setAttribute('aria-label', `Scatter of ${this.said.textContent} Arrow keys walk from object to object.`);
    }
    nearest(event, reach = 14) {
      const box = this.canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      let best = -1, least = reach * reach;
      for (let i = 0; i < n; i++) {
        const d = (this.at.px(i) - x) ** 2 + (this.at.py(i) - y) ** 2;
        if (d < least) { least = d; best = i; }
      }
      return best;
    }
    hover(event) {
      const i = this.nearest(event);
      W.tip(i < 0 ? '' : words(i, colouring()), event.clientX, event.clientY);
    }
    walk(event) {
      const way = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1]}[event.key];
      if (!way) return;
      event.preventDefault();
      const from = place.get(W.state.object);
      const [x, y] = from === undefined ? [this.size / 2, this.size / 2] : [this.at.px(from), this.at.py(from)];
      let best = -1, least = Infinity;
      for (let i = 0; i < n; i++) {
        if (i === from) continue;
        const [dx, dy] = [this.at.px(i) - x, this.at.py(i) - y];
        const along = dx * way[0] + dy * way[1], aside = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
        const cost = from === undefined ? dx * dx + dy * dy : along > 0 ? along + 3 * aside : Infinity;
        if (cost < least) { least = cost; best = i; }
      }
      if (best < 0) return;
      W.choose('object', objects[best]);
      W.say(words(best, colouring()).replaceAll('\n', ', '));
    }
  }

  const {selected, excluded} = W.data.sides, panels = [];
  const titles = excluded.length ? ['Selected', 'Excluded'] : ['All objects', ''];
  [[titles[0], selected, 'selected'], [titles[1], excluded, 'excluded']].forEach(([title, spaces, id]) => {
    if (!spaces.length) return;
    const panel = new Panel(title, spaces, id);
    panels.push(panel);
    W.byId('scatters').append(panel.figure);
  });
  const showSpace = (space) => panels.forEach((panel) => { if (panel.spaces.includes(space)) panel.show(space); });
  W.on('run', () => { const s = W.spaceOf(W.state.run); if (s >= 0 && scatters.spaces.length > 1) showSpace(s); });

  // Colour by
  const by = W.byId('colour-by');
  by.append(W.make('option', {value: ''}, 'labels of the chosen run'));
  if (scatters.truth) by.append(W.make('option', {value: 'truth'}, 'the truth'));
  const kept = Object.keys(values).filter((k) => values[k].some(Number.isFinite));
  if (kept.length) {
    const group = W.make('optgroup', {label: `values in ${W.data.objects ? W.data.objects.partition : 'the best'}`});
    for (const key of kept) group.append(W.make('option', {value: `value:${key}`}, VALUES[key]));
    by.append(group);
  }
  const list = W.make('optgroup', {label: 'labels of'});
  for (const run of W.data.table.rows) if (scatters.labels[W.data.partitions[run]]) list.append(W.make('option', {value: `run:${run}`}, W.data.partitions[run]));
  by.append(list);
  by.addEventListener('change', () => { W.state.cluster = null; W.choose('colour', by.value || null); });
  W.byId('scatter-controls').hidden = false;
  W.byId('sample-note').textContent = n < scatters.n ? `${n.toLocaleString('en')} of ${scatters.n.toLocaleString('en')} objects are drawn.` : '';

  function legend() {
    const box = W.byId('legend'), now = colouring();
    box.textContent = '';
    if (!now.codes || now.title === 'nothing') return;
    now.clusters.forEach((cluster, code) => {
      const alone = W.state.cluster === code;
      const button = W.make('button', {type: 'button', 'aria-pressed': String(alone)}, W.swatch(now.colours[code]), W.make('span', {}, cluster));
      button.addEventListener('click', () => W.choose('cluster', alone ? null : code));
      box.append(button);
    });
    if (now.codes.includes(-1)) box.append(W.make('button', {type: 'button', disabled: true}, W.swatch(-1), W.make('span', {}, 'noise')));
  }
  for (const what of ['run', 'colour', 'cluster']) W.on(what, legend);
  legend();

  // All spaces, drawn only when they are opened.
  const fold = W.byId('all-spaces');
  fold.hidden = scatters.spaces.length < 2;
  const thumbs = [];
  function fill() {
    if (!fold.open) return;
    if (!thumbs.length) {
      [[titles[0], selected], [titles[1], excluded]].forEach(([title, spaces]) => {
        if (!spaces.length) return;
        W.byId('thumbs').append(W.make('h4', {}, title));
        for (const space of spaces) {
          const canvas = W.make('canvas', {'aria-hidden': 'true'});
          const button = W.make('button', {type: 'button', class: 'thumb', title: scatters.spaces[space].name}, canvas, W.make('span', {}, scatters.spaces[space].name));
          button.addEventListener('click', () => { showSpace(space); W.byId('scatters').scrollIntoView({block: 'nearest'}); });
          W.byId('thumbs').append(button);
          thumbs.push({space, canvas});
        }
      });
    }
    const now = colouring();
    for (const {space, canvas} of thumbs) {
      const pen = W.canvas(canvas, 110, 110);
      canvas.style.width = canvas.style.height = '';
      paint(pen, space, 110, 1.1, now);
    }
  }
  fold.addEventListener('toggle', fill);
  for (const what of ['run', 'colour', 'cluster', 'theme']) W.on(what, fill);

  W.tables.points = () => {
    const now = colouring();
    const shown = panels.map((panel) => ({name: scatters.spaces[panel.space].name, ...plane(panel.space)}));
    return {
      columns: ['object', 'position', now.title, ...shown.flatMap((p) => [`${p.name} x`, `${p.name} y`])],
      rows: scatters.names.map((name, i) => [
        name, objects[i], now.values ? now.values[i] : now.codes[i] < 0 ? 'noise' : now.clusters[now.codes[i]],
        ...shown.flatMap((p) => [Number(p.toX(p.x[i]).toPrecision(5)), Number(p.toY(p.y[i]).toPrecision(5))]),
      ]),
    };
  };
})();
