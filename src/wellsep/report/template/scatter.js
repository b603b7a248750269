// Two runs side by side in any space: zoom, a loop around objects, colours, where the runs differ.
(function () {
  const scatters = W.data.scatters;
  if (!scatters) return;
  const objects = W.decode(scatters.objects), n = objects.length;
  const planes = new Map(), labels = new Map();
  const values = Object.fromEntries(Object.entries(scatters.values).map(([k, v]) => [k, W.decode(v)]));
  const VALUES = {width: 'silhouette width', margin: 'margin', lcd: 'local connectivity disagreement'};
  const best = W.data.objects ? W.data.objects.partition : null;
  const place = new Map([...objects].map((o, i) => [o, i]));
  const LAYOUT = -1;
  const here = (space) => (space === LAYOUT ? {name: scatters.layout.name, axes: 'one layout for all runs', plane: scatters.layout.plane} : scatters.spaces[space]);
  W.objectName = (object) => (place.has(object) ? scatters.names[place.get(object)] : null);
  // The first run of the ranking that is the same clustering; its clusters bear their names there.
  const firstOf = new Map(), classAt = new Map();
  W.data.table.rows.forEach((run, i) => {
    const own = W.data.table.classes ? W.data.table.classes[i] : run;
    if (!firstOf.has(own)) firstOf.set(own, W.data.partitions[run]);
    classAt.set(W.data.partitions[run], own);
  });
  W.sameAs = (name) => firstOf.get(classAt.get(name)) ?? name;

  // All objects in the layout, with their clusters in the best run.
  let everyone = null;
  const allObjects = () => (everyone ??= {...W.decode(scatters.whole.plane), codes: W.codes(scatters.whole.codes)});
  // A plane with the limits that show most objects: a few far ones must not press the others together.
  function plane(space) {
    if (!planes.has(space)) {
      const all = space === LAYOUT && scatters.whole ? allObjects() : null;
      const found = all ? {...all, x: Uint16Array.from(objects, (o) => all.x[o]), y: Uint16Array.from(objects, (o) => all.y[o])} : W.decode(here(space).plane);
      const ends = (list) => { const s = Float32Array.from(list).sort(); return [s[Math.floor(0.01 * (n - 1))], s[Math.ceil(0.99 * (n - 1))]]; };
      const [a, b] = ends(found.x), [c, d] = ends(found.y);
      const wide = Math.max(b - a, d - c, 1) * 1.12, whole = Math.max(found.w, found.h, 1);
      found.view = wide < 0.6 * whole ? {x: (a + b) / 2, y: (c + d) / 2, span: wide} : {x: found.w / 2, y: found.h / 2, span: whole};
      found.whole = {x: found.w / 2, y: found.h / 2, span: whole};
      planes.set(space, found);
    }
    return planes.get(space);
  }
  function unpack(part, title) {
    return {title, clusters: part.clusters, colours: part.colours, sizes: part.sizes, codes: W.codes(part.codes)};
  }
  function labelling(name) {
    if (!labels.has(name)) {
      const part = name === null ? scatters.truth : scatters.labels[name] ?? scatters.labels[W.sameAs(name)];
      if (!part) return null;
      labels.set(name, unpack(part, name === null ? 'truth' : name));
    }
    return labels.get(name);
  }
  const known = new Map();
  function column(name) {
    if (!known.has(name)) {
      const part = scatters.known[name];
      known.set(name, part.values ? {title: name, values: W.decode(part.values), key: name} : part.codes ? unpack(part, name) : {title: name, texts: part.texts});
    }
    return known.get(name);
  }
  // What colours the objects of a run: {title, codes, clusters, colours} or {title, values, key}.
  function colouring(run = W.state.run) {
    const by = W.state.colour;
    if (by === 'truth') return labelling(null);
    if (by && by.startsWith('value:')) return {title: `${VALUES[by.slice(6)]} in ${best}`, values: values[by.slice(6)], key: by.slice(6)};
    if (by && by.startsWith('known:')) return column(by.slice(6));
    const name = W.runName(by && by.startsWith('run:') ? Number(by.slice(4)) : run);
    return labelling(name) || labelling(Object.keys(scatters.labels)[0] ?? '') || {title: 'nothing', codes: new Int32Array(n).fill(0), clusters: [''], colours: [0]};
  }
  function limits(now) {
    const [low, high] = W.range(now.values);
    if (now.key === 'lcd') return [0, high];
    if (now.key === 'width') return [-1, 1];
    if (now.key === 'margin') { const most = Math.max(-low, high); return [-most, most]; }
    return [low, high];
  }
  function shade(now) {
    const [low, high] = limits(now), ramp = W.ramp(), none = W.surface('noise');
    const centred = low < 0 && high > 0;
    return (v) => (!Number.isFinite(v) ? none : ramp(now.key === 'lcd' ? -v / (high || 1) : centred ? v / Math.max(-low, high) : 0.12 + 0.88 * (v - low) / (high - low || 1)));
  }

  function paint(pen, space, size, radius, now, view) {
    const {x, y} = plane(space), pad = radius + 5, unit = (size - 2 * pad) / view.span;
    const px = (i) => size / 2 + (x[i] - view.x) * unit, py = (i) => size / 2 - (y[i] - view.y) * unit;
    pen.globalAlpha = n > 1200 ? 0.75 : 0.85;
    const inside = (i) => px(i) > -radius && px(i) < size + radius && py(i) > -radius && py(i) < size + radius;
    if (space === LAYOUT && scatters.whole && now.title === best && now.codes && !W.recorder && size > 200) {
      const all = allObjects(), chosen = W.state.cluster;
      const hue = now.colours.map((own) => (chosen !== null && own !== chosen ? -2 : own));
      W.dots(pen, size, all.x.length, {px: (i) => size / 2 + (all.x[i] - view.x) * unit, py: (i) => size / 2 - (all.y[i] - view.y) * unit}, (i) => (all.codes[i] < 0 ? -1 : hue[all.codes[i]]), () => false);
    } else if (now.values) {
      const colour = shade(now);
      for (let i = 0; i < n; i++) {
        if (!inside(i)) continue;
        pen.fillStyle = colour(now.values[i]);
        pen.beginPath();
        W.trace(pen, 0, px(i), py(i), radius);
        pen.fill();
      }
    } else {
      const batches = new Map();
      for (let i = 0; i < n; i++) {
        if (!inside(i)) continue;
        const code = now.codes[i];
        const own = code < 0 ? -1 : now.colours[code], id = W.state.cluster !== null && own !== W.state.cluster ? -2 : own;
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
  // Dots of a map: filled or open, as pixels where they are many.
  W.dots = function (pen, size, count, at, hue, open) {
    if (count > 3000 && !W.recorder) {
      const ratio = pen.canvas.width / size, wide = pen.canvas.width, image = pen.createImageData(wide, wide), ink = new Uint32Array(image.data.buffer);
      const shades = new Map(), side = Math.max(1, Math.round(ratio * (count > 30000 ? 1 : 1.6)));
      const shade = (h) => { if (!shades.has(h)) { const hex = h === -2 ? W.surface('line') : W.colour(h); shades.set(h, 0xff000000 | (parseInt(hex.slice(5, 7), 16) << 16) | (parseInt(hex.slice(3, 5), 16) << 8) | parseInt(hex.slice(1, 3), 16)); } return shades.get(h); };
      for (let i = 0; i < count; i++) {
        const left = Math.round(at.px(i) * ratio), top = Math.round(at.py(i) * ratio), colour = shade(hue(i));
        for (let a = 0; a < side; a++) for (let b = 0; b < side; b++) if (left + a >= 0 && left + a < wide && top + b >= 0 && top + b < wide) ink[(top + b) * wide + left + a] = colour;
      }
      pen.putImageData(image, 0, 0);
      return;
    }
    const radius = count > 1200 ? 2.2 : 3, batches = new Map();
    for (let i = 0; i < count; i++) { const key = `${hue(i)} ${open(i)}`; (batches.get(key) || batches.set(key, []).get(key)).push(i); }
    for (const [key, list] of batches) {
      const [h, hollow] = [Number(key.split(' ')[0]), key.endsWith('true')];
      pen.fillStyle = pen.strokeStyle = h === -2 ? W.surface('line') : W.colour(h);
      pen.lineWidth = 1;
      pen.beginPath();
      for (const i of list) W.trace(pen, hollow ? 0 : W.mark(h), at.px(i), at.py(i), hollow ? radius - 0.4 : radius);
      if (hollow) pen.stroke(); else pen.fill();
    }
  };
  // The plane that suits every clustering: a layout, else that of the best run.
  W.layout = function () {
    const space = scatters.layout ? LAYOUT : Math.max(0, W.spaceOf(W.data.best) ?? 0), found = plane(space);
    if (space === LAYOUT && scatters.whole) { const all = allObjects(); return {x: all.x, y: all.y, objects: Int32Array.from(all.x.keys()), view: found.view}; }
    return {x: found.x, y: found.y, objects, view: found.view};
  };
  W.nameGroups = function (pen, at, groups, size) {
    pen.font = '600 12px system-ui, sans-serif';
    pen.textAlign = 'center';
    pen.textBaseline = 'middle';
    for (const [name, list] of groups) {
      const middle = (f) => list.map(f).sort((a, b) => a - b)[list.length >> 1], x = middle(at.px), y = middle(at.py);
      if (x < 0 || y < 0 || x > size || y > size) continue;
      const words = W.plain(W.cut(name, 14));
      pen.lineWidth = 3.5;
      pen.strokeStyle = W.surface('panel');
      pen.strokeText(words, x, y);
      pen.fillStyle = W.surface('ink');
      pen.fillText(words, x, y);
    }
  };
  // Names of the clusters at the middle of their objects.
  function nameClusters(pen, at, now, size) {
    if (!now.codes || now.title === 'nothing' || now.clusters.length > 40) return;
    const groups = new Map(now.clusters.map((cluster) => [cluster, []]));
    now.codes.forEach((code, i) => { if (code >= 0) groups.get(now.clusters[code]).push(i); });
    W.nameGroups(pen, at, new Map([...groups].filter(([, list]) => list.length)), size);
  }
  function words(i, now) {
    const lines = [scatters.names[i]];
    if (now.codes && now.clusters.length) lines.push(now.codes[i] < 0 ? 'noise' : W.state.colour && !W.state.colour.startsWith('run:') ? `${now.title} ${now.clusters[now.codes[i]]}` : `cluster ${now.clusters[now.codes[i]]}`);
    if (now.values && Number.isFinite(now.values[i])) lines.push(`${now.title} ${W.show(Number(now.values[i].toPrecision(3)))}`);
    // These values belong to the best run: they are not told beside the cluster of another one.
    if (now.title === best) for (const [key, list] of Object.entries(values)) if (Number.isFinite(list[i])) lines.push(`${VALUES[key]} ${W.show(Number(list[i].toPrecision(3)))}`);
    for (const name of Object.keys(scatters.known).slice(0, 6)) {
      const one = column(name);
      if (one.title !== now.title) lines.push(`${name} ${one.texts ? W.cut(one.texts[i], 160) : one.values ? W.show(Number(one.values[i].toPrecision(4))) : one.clusters[one.codes[i]]}`);
    }
    return lines.join('\n');
  }

  const order = W.data.table.rows, classes = W.data.table.classes;
  const classOf = new Map(order.map((run, i) => [run, classes ? classes[i] : run]));
  const labelled = (run) => W.sameAs(W.data.partitions[run]) in scatters.labels;
  W.firstOther = order.find((run) => classOf.get(run) !== classOf.get(W.data.best) && labelled(run)) ?? null;
  W.state.other = W.firstOther;
  // Of the drawn objects those that the two runs put into clusters that do not belong together.
  function differing() {
    if (W.state.other === null) return null;
    const a = labelling(W.data.partitions[W.state.run]), b = labelling(W.data.partitions[W.state.other]);
    if (!a || !b) return null;
    const colour = (one, i) => (one.codes[i] < 0 ? -1 : one.colours[one.codes[i]]);
    return {a, b, objects: [...Array(n).keys()].filter((i) => colour(a, i) !== colour(b, i))};
  }

  const {selected, excluded} = W.data.sides;
  const panels = [];
  let loop = false;
  class Panel {
    constructor(id, title, run) {
      this.run = run;
      this.figure = W.make('figure', {class: 'chart scatter', id});
      this.title = W.make('h3', {}, title);
      this.pick = W.make('select', {'aria-label': `${title}: drawn in`});
      if (scatters.layout) this.pick.append(W.make('option', {value: LAYOUT}, scatters.layout.name));
      for (const [label, spaces] of [['give the answer', selected], ['others', excluded]]) {
        if (!spaces.length) continue;
        const group = W.make('optgroup', {label});
        for (const s of spaces) group.append(W.make('option', {value: s}, scatters.spaces[s].name));
        this.pick.append(excluded.length ? group : group.firstChild);
      }
      this.holder = W.make('div', {class: 'canvas'});
      this.canvas = W.make('canvas', {tabindex: '0', role: 'img'});
      this.said = W.make('p', {class: 'said'});
      this.holder.append(this.canvas);
      const tools = W.make('span', {class: 'tools'});
      for (const [label, name, act] of [['+', `Zoom in, ${title}`, () => this.zoom(1.5)], ['−', `Zoom out, ${title}`, () => this.zoom(1 / 1.5)], ['Reset', `Reset zoom, ${title}`, () => this.reset()]]) {
        const button = W.make('button', {type: 'button', 'aria-label': name}, label);
        button.addEventListener('click', act);
        tools.append(button);
      }
      W.redraw[id] = () => this.draw(this.width);
      const header = W.make('header', {}, this.title, this.pick, tools);
      this.figure.append(header, this.holder, this.said);
      this.pick.hidden = this.pick.options.length === 1;
      this.space = scatters.layout ? LAYOUT : this.own();
      this.pick.value = String(this.space);
      this.view = {...plane(this.space).view};
      this.pick.addEventListener('change', () => this.show(Number(this.pick.value)));
      this.listen();
      W.draw(this.holder, (width) => this.draw(width), 'run', 'other', 'colour', 'cluster', 'object', 'theme', 'picked');
    }
    own() {
      const own = W.spaceOf(this.run());
      return own !== undefined && own >= 0 ? own : selected[0] ?? excluded[0] ?? 0;
    }
    listen() {
      let start = null;
      const spot = (event) => { const box = this.canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
      this.canvas.addEventListener('pointerdown', (event) => {
        start = {at: spot(event), view: {...this.view}, path: [spot(event)], moved: false};
        if (loop || this.zoomed()) this.canvas.setPointerCapture(event.pointerId);
      });
      this.canvas.addEventListener('pointermove', (event) => {
        if (!start) return this.hover(event);
        const [x, y] = spot(event);
        start.moved = start.moved || Math.hypot(x - start.at[0], y - start.at[1]) > 4;
        if (!start.moved) return undefined;
        if (loop || event.shiftKey) {
          start.path.push([x, y]);
          this.draw(this.width, start.path);
        } else if (this.zoomed()) {
          const unit = this.view.span / this.size;
          this.view.x = start.view.x - (x - start.at[0]) * unit;
          this.view.y = start.view.y + (y - start.at[1]) * unit;
          this.drawAll();
        }
        return undefined;
      });
      const end = () => {
        if (start && start.moved && start.path.length > 2) this.choosePath(start.path);
        const moved = start && start.moved;
        start = null;
        this.dragged = moved;
      };
      this.canvas.addEventListener('pointerup', end);
      this.canvas.addEventListener('pointercancel', () => { start = null; });
      this.canvas.addEventListener('pointerleave', () => W.tip(''));
      this.canvas.addEventListener('click', (event) => {
        if (this.dragged) { this.dragged = false; return; }
        const i = this.nearest(event);
        W.choose('object', i < 0 ? null : objects[i]);
      });
      this.canvas.addEventListener('wheel', (event) => {
        if (!event.ctrlKey && !event.metaKey) return;  // the page scrolls
        event.preventDefault();
        this.zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, spot(event));
      }, {passive: false});
      this.canvas.addEventListener('dblclick', (event) => this.zoom(2, spot(event)));
      this.canvas.addEventListener('keydown', (event) => {
        if (event.key === '+' || event.key === '=') this.zoom(1.5);
        else if (event.key === '-') this.zoom(1 / 1.5);
        else if (event.key === '0') this.reset();
        else this.walk(event);
      });
    }
    zoomed() { return this.view.span < plane(this.space).whole.span * 0.999; }
    zoom(factor, at = null) {
      const unit = this.view.span / this.size, whole = plane(this.space).whole.span;
      const span = Math.min(Math.max(this.view.span / factor, whole / 60), whole * 1.05);
      const [x, y] = at || [this.size / 2, this.size / 2];
      const keep = 1 - span / this.view.span;
      this.view = {x: this.view.x + (x - this.size / 2) * unit * keep, y: this.view.y - (y - this.size / 2) * unit * keep, span};
      this.drawAll();
      W.say(`Zoom ${(whole / span).toFixed(1)}.`);
    }
    reset() { this.view = {...plane(this.space).view}; this.drawAll(); }
    // Panels of the same plane move together.
    drawAll() {
      for (const panel of panels) {
        if (panel !== this && panel.space === this.space) panel.view = {...this.view};
        if (panel.size && panel.space === this.space) panel.draw(panel.width);
      }
    }
    choosePath(path) {
      const inside = (x, y) => {
        let odd = false;
        for (let i = 0, j = path.length - 1; i < path.length; j = i++) {
          const [[a, b], [c, d]] = [path[i], path[j]];
          if ((b > y) !== (d > y) && x < ((c - a) * (y - b)) / (d - b) + a) odd = !odd;
        }
        return odd;
      };
      const found = [...Array(n).keys()].filter((i) => inside(this.at.px(i), this.at.py(i)));
      W.choose('picked', found.length ? found : null);
      W.say(`${found.length} objects inside the loop.`);
      this.draw(this.width);
    }
    show(space) {
      this.space = space;
      this.pick.value = String(space);
      this.view = {...plane(space).view};
      if (this.size) this.draw(this.width);
    }
    now() { return colouring(this.run()); }
    draw(width, path = null) {
      this.width = width;
      this.size = Math.min(width, 640);
      const now = this.now(), second = this === panels[1];
      const pen = W.canvas(this.canvas, this.size, this.size);
      this.canvas.style.touchAction = loop || this.zoomed() ? 'none' : 'auto';
      const radius = n > 1200 ? 2.4 : n > 300 ? 3 : 4;
      this.at = paint(pen, this.space, this.size, radius, now, this.view);
      const ring = (list, r, thick) => {
        pen.strokeStyle = W.surface('ink');
        pen.lineWidth = thick;
        pen.beginPath();
        for (const i of list) { const [x, y] = [this.at.px(i), this.at.py(i)]; pen.moveTo(x + r, y); pen.arc(x, y, r, 0, 2 * Math.PI); }
        pen.stroke();
      };
      const differ = second && !W.state.colour ? differing() : null;
      if (differ) ring(differ.objects, radius + 0.5, 1);
      if (W.state.picked) ring(W.state.picked, radius + 2, 1.5);
      nameClusters(pen, this.at, now, this.size);
      const chosen = place.get(W.state.object);
      if (chosen !== undefined) ring([chosen], 8, 2);
      if (path) {
        pen.strokeStyle = W.surface('accent');
        pen.lineWidth = 1.5;
        pen.beginPath();
        path.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
        pen.closePath();
        pen.stroke();
      }
      if (W.recorder) return;
      this.title.replaceChildren(W.make('bdi', {}, W.state.colour ? now.title : W.runName(this.run())));
      const spot = here(this.space), half = this.size;
      const fate = W.fate && this.space !== LAYOUT ? `${W.fate(this.space)}; ` : '';
      const picked = chosen === undefined ? '' : ` Marked: ${words(chosen, now).replaceAll('\n', ', ')}.`;
      let out = 0;
      for (let i = 0; i < n; i++) if (this.at.px(i) < 0 || this.at.py(i) < 0 || this.at.px(i) > half || this.at.py(i) > half) out++;
      const beyond = out ? ` ${out} drawn objects lie outside; zoom out to see them.` : '';
      const rings = differ ? ' Ringed: in another cluster than on the left.' : '';
      this.said.textContent = W.plain(`${spot.name}: ${fate}${this.space === LAYOUT ? spot.axes : `drawn by ${spot.axes}`}, coloured by ${now.title}.${rings}${beyond}${picked}`);
      this.canvas.setAttribute('aria-label', `Scatter of ${this.said.textContent} Arrow keys walk from object to object; plus, minus and 0 zoom.`);
    }
    nearest(event, reach = 14) {
      const box = this.canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      let found = -1, least = reach * reach;
      for (let i = 0; i < n; i++) {
        const d = (this.at.px(i) - x) ** 2 + (this.at.py(i) - y) ** 2;
        if (d < least) { least = d; found = i; }
      }
      return found;
    }
    hover(event) {
      const i = this.nearest(event);
      W.tip(i < 0 ? '' : words(i, this.now()), event.clientX, event.clientY, i < 0 ? null : objects[i]);
    }
    walk(event) {
      const way = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1]}[event.key];
      if (!way) return;
      event.preventDefault();
      const from = place.get(W.state.object);
      const [x, y] = from === undefined ? [this.size / 2, this.size / 2] : [this.at.px(from), this.at.py(from)];
      let found = -1, least = Infinity;
      for (let i = 0; i < n; i++) {
        if (i === from) continue;
        const [dx, dy] = [this.at.px(i) - x, this.at.py(i) - y];
        const along = dx * way[0] + dy * way[1], aside = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
        const cost = from === undefined ? dx * dx + dy * dy : along > 0 ? along + 3 * aside : Infinity;
        if (cost < least) { least = cost; found = i; }
      }
      if (found < 0) return;
      W.choose('object', objects[found]);
      W.say(words(found, this.now()).replaceAll('\n', ', '));
    }
  }

  panels.push(new Panel('scatter-one', 'Chosen run', () => W.state.run));
  if (W.state.other !== null) panels.push(new Panel('scatter-two', 'Compared run', () => W.state.other));
  for (const panel of panels) W.byId('scatters').append(panel.figure);
  const follow = (at, what) => W.on(what, () => {
    const panel = panels[at];
    if (!panel || panel.space === LAYOUT) return;
    const own = W.spaceOf(panel.run());
    if (own >= 0 && scatters.spaces.length > 1) panel.show(own);
  });
  follow(0, 'run');
  // A row that is a cluster is seen alone.
  if (W.data.whole) W.on('run', () => W.choose('cluster', W.state.run < 0 ? null : scatters.labels[W.data.whole].colours[W.state.run]));
  follow(1, 'other');

  // Which run to compare with.
  const other = W.byId('compare-with');
  if (W.state.other !== null) {
    for (const run of order) if (labelled(run)) other.append(W.make('option', {value: run}, W.data.partitions[run]));
    other.value = String(W.state.other);
    other.addEventListener('change', () => W.choose('other', Number(other.value)));
    W.on('other', () => { other.value = String(W.state.other); });
    W.byId('compare').hidden = false;
  }
  function compare() {
    const found = differing(), box = W.byId('contingency'), said = W.byId('differ-said');
    if (!found) { if (said) said.textContent = ''; return; }
    const {a, b} = found, drawn = n < scatters.n ? ` drawn (of ${scatters.n.toLocaleString('en')})` : '';
    said.textContent = W.plain(`${a.title} and ${b.title} differ in ${found.objects.length.toLocaleString('en')} of ${n.toLocaleString('en')} objects${drawn}: clusters are matched by the objects that they share.`);
    const {columns, rows} = contingency();
    const most = Math.max(1, ...rows.flatMap((row) => row.slice(1)));
    const body = W.make('tbody'), ramp = W.ramp();
    for (const row of rows) {
      const line = W.make('tr', {}, W.make('th', {scope: 'row'}, row[0]));
      for (const count of row.slice(1)) line.append(W.make('td', {class: 'number', style: count ? `background:${ramp(0.06 + 0.36 * count / most)}` : null}, count ? String(count) : '·'));
      body.append(line);
    }
    box.replaceChildren(W.make('table', {class: 'plain'}, W.make('caption', {class: 'unseen'}, `Objects in each cluster of ${a.title} (rows) and of ${b.title} (columns)`),
      W.make('thead', {}, W.make('tr', {}, ...columns.map((c) => W.make('th', {scope: 'col'}, c)))), body));
    W.byId('contingency-fold').hidden = false;
  }
  function contingency() {
    const {a, b} = differing();
    const name = (one, c) => (c < 0 ? 'noise' : one.clusters[c]);
    const codes = (one) => [...one.clusters.keys(), ...(one.codes.includes(-1) ? [-1] : [])];
    const counts = new Map();
    for (let i = 0; i < n; i++) { const key = `${a.codes[i]},${b.codes[i]}`; counts.set(key, (counts.get(key) || 0) + 1); }
    const across = codes(b).sort((x, y) => (x < 0) - (y < 0) || b.colours[x] - b.colours[y]), down = codes(a).sort((x, y) => (x < 0) - (y < 0) || a.colours[x] - a.colours[y]);
    return {columns: ['cluster', ...across.map((c) => name(b, c))], rows: down.map((r) => [name(a, r), ...across.map((c) => counts.get(`${r},${c}`) || 0)])};
  }
  if (W.state.other !== null) {
    for (const what of ['run', 'other', 'theme']) W.on(what, compare);
    compare();
    W.tables.contingency = contingency;
  }

  // The loop, and the objects inside it.
  const lasso = W.byId('lasso');
  lasso.addEventListener('click', () => {
    loop = !loop;
    lasso.setAttribute('aria-pressed', String(loop));
    panels.forEach((panel) => { panel.canvas.style.cursor = loop ? 'crosshair' : ''; if (panel.size) panel.draw(panel.width); });
  });
  W.tables.picked = () => {
    const now = colouring(), chosen = W.state.picked || [], names = Object.keys(scatters.known);
    const tell = (one, i) => (one.texts ? one.texts[i] : one.values ? one.values[i] : one.codes[i] < 0 ? 'noise' : one.clusters[one.codes[i]]);
    return {
      columns: ['object', 'position', now.title, ...names],
      rows: chosen.map((i) => [scatters.names[i], objects[i], tell(now, i), ...names.map((name) => tell(column(name), i))]),
    };
  };
  W.on('picked', () => {
    const box = W.byId('picked'), chosen = W.state.picked;
    box.hidden = !chosen;
    if (!chosen) return;
    W.byId('picked-count').textContent = `${chosen.length} ${chosen.length === 1 ? 'object' : 'objects'} inside the loop`;
    const now = colouring(), shown = chosen.slice(0, 200);
    W.byId('picked-list').replaceChildren(...shown.map((i) => {
      const button = W.make('button', {type: 'button'}, W.make('bdi', {}, scatters.names[i]), now.codes ? ` (${now.codes[i] < 0 ? 'noise' : now.clusters[now.codes[i]]})` : '');
      button.addEventListener('click', () => W.choose('object', objects[i]));
      return W.make('li', {}, button);
    }), ...(shown.length < chosen.length ? [W.make('li', {}, `and ${chosen.length - shown.length} more; the CSV has all.`)] : []));
  });
  W.byId('picked-clear').addEventListener('click', () => W.choose('picked', null));

  // Colour by
  const by = W.byId('colour-by');
  by.append(W.make('option', {value: ''}, W.data.whole ? 'clusters' : 'clusters of each run'));
  if (scatters.truth) by.append(W.make('option', {value: 'truth'}, 'the truth'));
  const columns = Object.keys(scatters.known).filter((name) => !scatters.known[name].texts);
  if (columns.length) {
    const group = W.make('optgroup', {label: 'what is known about the objects'});
    for (const name of columns) group.append(W.make('option', {value: `known:${name}`}, name));
    by.append(group);
  }
  const kept = Object.keys(values).filter((k) => values[k].some(Number.isFinite));
  if (kept.length) {
    const group = W.make('optgroup', {label: `values in ${best ?? 'the best'}`});
    for (const key of kept) group.append(W.make('option', {value: `value:${key}`}, VALUES[key]));
    by.append(group);
  }
  const list = W.make('optgroup', {label: 'clusters of'});
  for (const run of order) if (labelled(run)) list.append(W.make('option', {value: `run:${run}`}, W.data.partitions[run]));
  if (list.children.length) by.append(list);
  by.addEventListener('change', () => { W.state.cluster = null; W.choose('colour', by.value || null); });
  W.byId('scatter-controls').hidden = false;
  W.byId('sample-note').textContent = n < scatters.n && !scatters.whole ? `${n.toLocaleString('en')} of ${scatters.n.toLocaleString('en')} objects are drawn.` : '';

  function legend() {
    const box = W.byId('legend'), now = colouring();
    box.textContent = '';
    if (now.values) {
      const [low, high] = limits(now), colour = shade(now);
      const svg = W.make('svg', {width: 260, height: 34, role: 'img', 'aria-label': `${now.title}: colours from ${W.show(low)} to ${W.show(high)}`});
      for (let s = 0; s < 50; s++) svg.append(W.make('rect', {x: 4 + s * 5, y: 4, width: 5.2, height: 10, fill: colour(low + (high - low) * s / 49)}));
      for (const [v, x, anchor] of [[low, 4, 'start'], [(low + high) / 2, 129, 'middle'], [high, 254, 'end']]) W.text(svg, x, 29, W.show(Number(v.toPrecision(3))), {'text-anchor': anchor});
      box.append(W.make('span', {}, now.title), svg);
      return;
    }
    if (!now.codes || now.title === 'nothing') return;
    now.clusters.forEach((cluster, code) => {
      const colour = now.colours[code], alone = W.state.cluster === colour, size = now.sizes[code].toLocaleString('en');
      const button = W.make('button', {type: 'button', 'aria-pressed': String(alone), 'aria-label': `Cluster ${cluster} alone, ${size} objects`}, W.swatch(colour), W.make('bdi', {}, cluster), W.make('small', {}, size));
      button.addEventListener('click', () => W.choose('cluster', alone ? null : colour));
      box.append(button);
    });
    if (now.codes.includes(-1)) box.append(W.make('span', {class: 'key'}, W.swatch(-1), W.make('span', {}, 'noise')));
  }
  for (const what of ['run', 'colour', 'cluster', 'theme']) W.on(what, legend);
  legend();
  // One colouring for all runs shows the same picture twice: one is enough.
  W.on('colour', () => { if (panels[1]) panels[1].figure.hidden = Boolean(W.state.colour) && panels[1].space === panels[0].space; });

  // All spaces, drawn only when they are opened.
  const fold = W.byId('all-spaces');
  fold.hidden = scatters.spaces.length < 2;
  const thumbs = [];
  function fill() {
    if (!fold.open) return;
    if (!thumbs.length) {
      [['Give the answer', selected], ['Others', excluded]].forEach(([title, spaces]) => {
        if (!spaces.length) return;
        W.byId('thumbs').append(W.make('h4', {}, title));
        for (const space of spaces) {
          const canvas = W.make('canvas', {'aria-hidden': 'true'});
          const button = W.make('button', {type: 'button', class: 'thumb', title: scatters.spaces[space].name}, canvas, W.make('span', {}, scatters.spaces[space].name));
          button.addEventListener('click', () => { panels[0].show(space); W.byId('scatters').scrollIntoView({block: 'nearest'}); });
          W.byId('thumbs').append(button);
          thumbs.push({space, canvas});
        }
      });
    }
    const now = colouring();
    for (const {space, canvas} of thumbs) {
      const pen = W.canvas(canvas, 110, 110);
      canvas.style.width = canvas.style.height = '';
      paint(pen, space, 110, 1.1, now, plane(space).view);
    }
  }
  fold.addEventListener('toggle', fill);
  for (const what of ['run', 'colour', 'cluster', 'theme']) W.on(what, fill);

  W.tables.points = () => {
    const now = colouring();
    const shown = panels.map((panel) => ({name: here(panel.space).name, ...plane(panel.space)}));
    return {
      columns: ['object', 'position', now.title, ...shown.flatMap((p) => [`${p.name} x`, `${p.name} y`])],
      rows: scatters.names.map((name, i) => [
        name, objects[i], now.values ? now.values[i] : now.codes[i] < 0 ? 'noise' : now.clusters[now.codes[i]],
        ...shown.flatMap((p) => [Number(p.toX(p.x[i]).toPrecision(5)), Number(p.toY(p.y[i]).toPrecision(5))]),
      ]),
    };
  };
})();
