// The structure: scores in every space, agreement of the clusterings, score over a parameter.
(function () {
  // A heat map on a canvas: hovering names a cell, arrow keys move, Enter chooses its row.
  W.matrix = function (id, {rows, columns, value, shade, tell, act, label, key}) {
    const holder = W.chart(id);
    if (!holder) return;
    const canvas = W.make('canvas', {tabindex: '0', role: 'img', 'aria-label': `${label}; arrow keys move, Enter chooses`});
    const legend = W.make('div', {class: 'key'});
    holder.append(canvas, legend);
    const named = rows.length <= 30, titled = columns.length <= 16;
    let wide = 10, tall = 10, left = 2, top = 2, cursor = null;
    function draw(width) {
      left = named ? Math.min(170, width * 0.36) : 2;
      top = titled ? 78 : 2;
      wide = Math.min(64, (width - left - (titled ? 46 : 2)) / columns.length);
      tall = named ? 18 : Math.max(1, Math.min(14, 520 / rows.length));
      const pen = W.canvas(canvas, Math.ceil(Math.min(width, left + wide * columns.length + (titled ? 46 : 2))), Math.ceil(top + tall * rows.length + 2));
      const gapX = wide > 5 ? 1 : 0, gapY = tall > 5 ? 1 : 0, paint = shade(W.ramp()), none = W.surface('line');
      pen.font = '12px system-ui, sans-serif';
      pen.textBaseline = 'middle';
      const tiny = (wide <= 5 || tall <= 5) && !named;
      const pixel = shade(W.ramp().rgb), grey = [128, 128, 128];
      if (tiny) W.pixels(pen, rows.length, columns.length, (i, j) => { const v = value(i, j); return Number.isFinite(v) ? pixel(v, i, j) : grey; }, left, top, wide * columns.length, tall * rows.length);
      for (let i = 0; i < rows.length; i++) {
        for (let j = 0; j < (tiny ? 0 : columns.length); j++) {
          const v = value(i, j);
          pen.fillStyle = Number.isFinite(v) ? paint(v, i, j) : none;
          pen.fillRect(left + j * wide, top + i * tall, wide - gapX, tall - gapY);
        }
        if (!named) continue;
        pen.fillStyle = W.surface(rows[i].run === W.state.run ? 'ink' : 'quiet');
        pen.textAlign = 'right';
        pen.fillText(W.plain(W.cut(rows[i].name, Math.floor((left - 8) / 6.4))), left - 6, top + (i + 0.5) * tall, left - 6);
      }
      if (titled && !W.recorder) columns.forEach((c, j) => {
        pen.save();
        pen.translate(left + (j + 0.5) * wide, top - 5);
        pen.rotate(-0.9);
        pen.fillStyle = W.surface('quiet');
        pen.textAlign = 'left';
        pen.fillText(W.plain(W.cut(c.name, 13)), 0, 0);
        pen.restore();
      });
      pen.strokeStyle = W.surface('ink');
      pen.lineWidth = 1.5;
      rows.forEach((row, i) => { if (row.run === W.state.run) pen.strokeRect(left - 0.5, top + i * tall - 0.5, wide * columns.length, Math.max(tall, 3)); });
      if (cursor) {
        pen.lineWidth = 2.5;
        pen.strokeRect(left + cursor[1] * wide - 1, top + cursor[0] * tall - 1, wide + 1, tall + 1);
      }
    }
    const again = () => draw(Math.floor(holder.clientWidth));
    const where = (event) => {
      const box = canvas.getBoundingClientRect();
      const i = Math.floor((event.clientY - box.top - top) / tall), j = Math.floor((event.clientX - box.left - left) / wide);
      return i >= 0 && i < rows.length && j >= 0 && j < columns.length ? [i, j] : null;
    };
    canvas.addEventListener('pointermove', (event) => { const at = where(event); W.tip(at ? tell(...at) : '', event.clientX, event.clientY); });
    canvas.addEventListener('pointerleave', () => W.tip(''));
    canvas.addEventListener('click', (event) => { const at = where(event); if (at) act(...at); });
    canvas.addEventListener('keydown', (event) => {
      const move = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
      if (move) {
        event.preventDefault();
        const most = [rows.length - 1, columns.length - 1];
        cursor = cursor ? cursor.map((c, k) => Math.max(0, Math.min(most[k], c + move[k]))) : [0, 0];
        W.say(tell(...cursor).replaceAll('\n', ', '));
        again();
      } else if ((event.key === 'Enter' || event.key === ' ') && cursor) {
        event.preventDefault();
        act(...cursor);
      }
    });
    canvas.addEventListener('blur', () => { if (cursor) { cursor = null; again(); } });
    function drawKey() {
      const svg = W.make('svg', {width: 220, height: 30, role: 'img', 'aria-label': `Colours from ${key.low} to ${key.high}`});
      const ramp = W.ramp();
      for (let s = 0; s < 40; s++) svg.append(W.make('rect', {x: 4 + s * 5, y: 6, width: 5.2, height: 8, fill: ramp(key.at(s / 39))}));
      W.text(svg, 4, 27, key.low);
      W.text(svg, 204, 27, key.high, {'text-anchor': 'end'});
      legend.replaceChildren(svg);
    }
    W.draw(holder, (width) => { draw(width); drawKey(); }, 'run', 'theme');
    W.redraw[id] = again;
  };

  const grid = W.data.grid;
  if (grid) {
    const rows = grid.rows.map((run) => ({run, name: W.data.partitions[run]})), columns = grid.columns.map((s) => ({space: s, name: W.data.spaces[s]}));
    const values = W.decode(grid.values), wide = columns.length;
    const value = (i, j) => values[i * wide + j];
    const ends = columns.map((_, j) => W.range(rows.map((_, i) => value(i, j))));
    const better = (v, j) => { const [low, high] = ends[j], share = (v - low) / (high - low || 1); return grid.direction > 0 ? share : 1 - share; };
    W.matrix('grid', {
      rows, columns, value, label: `Scores by ${grid.index} of ${rows.length} clusterings in ${wide} embeddings`,
      shade: (ramp) => (v, i, j) => ramp(0.04 + 0.96 * better(v, j)),
      tell: (i, j) => `${rows[i].name}\nin ${columns[j].name}\n${grid.index} ${W.show(Number(value(i, j).toPrecision(4)))}`,
      act: (i) => W.chooseRun(rows[i].run), key: {low: 'worst in its space', high: 'best', at: (s) => 0.04 + 0.96 * s},
    });
    W.tables.grid = () => ({columns: ['run', ...columns.map((c) => c.name)], rows: rows.map((r, i) => [r.name, ...columns.map((_, j) => Number(value(i, j).toPrecision(6)))])});
  }

  const vote = W.data.votes_of_runs;
  if (vote) {
    const n = vote.rows.length, packed = W.decode(vote.values), from = vote.floor;
    const rows = vote.rows.map((run, i) => ({run, name: W.data.partitions[run] + (vote.counts[i] > 1 ? ` (×${vote.counts[i]})` : '')}));
    const value = (i, j) => (i === j ? 1 : (packed[W.pairAt(i, j, n)] / 254) * 2 - 1);
    W.matrix('votes_of_runs', {
      rows, columns: rows, value, label: `Agreement of ${n} clusterings`,
      shade: (ramp) => (v) => ramp(from < 0 ? v : (v - from) / (1 - from || 1)),
      tell: (i, j) => (i === j ? rows[i].name : `${rows[i].name}\n${rows[j].name}\n${vote.measure} ${value(i, j).toFixed(2)}`),
      act: (i, j) => { if (i === j || W.firstOther === undefined) W.chooseRun(rows[i].run); else { W.chooseRun(rows[i].run); W.choose('other', rows[j].run); } },
      key: {low: W.show(from), high: '1', at: (s) => (from < 0 ? 2 * s - 1 : s)},
    });
    W.tables.votes_of_runs = () => ({columns: ['run', ...rows.map((r) => r.name)], rows: rows.map((r, i) => [r.name, ...rows.map((_, j) => Number(value(i, j).toFixed(2)))])});
  }

  // Score over a parameter, or over K.
  const columns = W.data.table.columns, scores = columns.find((c) => c.key === 'score');
  const several = (c) => new Set(c.values.map(String)).size > 1;
  const offered = columns.filter((c) => (c.key === 'k' || c.key.startsWith('param:')) && several(c));
  const pick = W.byId('sweep-by'), figure = W.byId('sweep');
  if (!figure) return;
  if (!scores || !offered.length) { figure.remove(); return; }
  offered.forEach((c, i) => pick.append(W.make('option', {value: i}, c.label)));
  const runs = W.data.table.rows;
  function draw(width) {
    const c = offered[Number(pick.value)], height = 230, left = 52;
    const numeric = c.values.every((v) => v === null || typeof v === 'number');
    const given = numeric ? c.values.filter((v) => v !== null) : [];
    const log = numeric && given.every((v) => v > 0) && Math.max(...given) / Math.min(...given) >= 100;
    const kinds = numeric ? null : [...new Set(c.values.map((v) => v ?? '–'))].slice(0, 40);
    const place = (v) => (log ? Math.log10(v) : v);
    const [a, b] = numeric ? W.range(given.map(place)) : [-0.5, kinds.length - 0.5];
    const [low, high] = W.range(scores.values);
    const x = W.scale(a, b, left + 12, width - 24), y = W.scale(low, high, height - 34, 14);
    const svg = W.svg(W.chart('sweep'), width, height, `Score over ${c.label}`);
    for (const t of W.ticks(low, high, 4)) {
      svg.append(W.make('line', {x1: left, x2: width - 12, y1: y(t), y2: y(t), class: 'grid'}));
      W.text(svg, left - 5, y(t) + 4, W.show(t), {'text-anchor': 'end'});
    }
    const most = Math.max(2, Math.floor(width / 70));
    const stops = numeric ? (log ? [...new Set(given)].sort((p, q) => p - q) : W.ticks(a, b, Math.min(8, most)).filter((t) => c.kind !== 'int' || Number.isInteger(t))) : kinds;
    const every = Math.ceil(stops.length / most);
    stops.forEach((t, i) => { if (i % every === 0) W.text(svg, x(numeric ? place(t) : i), height - 16, W.cut(W.show(t), 12), {'text-anchor': 'middle'}); });
    W.text(svg, (left + width) / 2, height - 2, c.label, {'text-anchor': 'middle'});
    W.text(svg, 4, 12, 'score');
    c.values.forEach((v, i) => {
      if (scores.values[i] === null || (numeric && v === null)) return;
      const at = numeric ? place(v) : kinds.indexOf(v ?? '–');
      if (at < 0 && !numeric) return;
      const jitter = (((i * 2654435761) % 1000) / 1000 - 0.5) * (numeric ? 5 : 18), chosen = runs[i] === W.state.run;
      svg.append(W.make('circle', {
        cx: x(at) + jitter, cy: y(scores.values[i]), r: chosen ? 5.5 : runs.length > 200 ? 2.6 : 4, fill: 'var(--accent)', 'fill-opacity': chosen ? 1 : 0.6,
        stroke: chosen ? 'var(--ink)' : 'none', 'stroke-width': 2, class: 'mark', 'data-do': runs[i],
        'data-tip': `${W.data.partitions[runs[i]]}\n${c.label} ${W.show(v)}\nscore ${W.show(scores.values[i])}`,
      }));
    });
    W.touchable(svg, W.chooseRun);
    W.walkable(svg, W.chooseRun);
  }
  W.draw(W.chart('sweep'), draw, 'run');
  pick.addEventListener('change', () => draw(Math.floor(W.chart('sweep').clientWidth)));
  W.tables.sweep = () => ({columns: ['run', ...offered.map((c) => c.label), 'score'], rows: runs.map((run, i) => [W.data.partitions[run], ...offered.map((c) => c.values[i]), scores.values[i]])});
})();
