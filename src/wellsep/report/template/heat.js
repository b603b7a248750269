// The heat map of rank agreement, ordered by group.
(function () {
  const heat = W.data.heat;
  if (!heat) return;
  const places = heat.places, n = places.length, story = W.data.steps;
  const packed = W.decode(heat.values), linked = W.decode(heat.linked), adjusted = W.decode(heat.adjusted);
  const values = heat.values.$ === 'u1' ? Float32Array.from(packed, (v) => v / 127 - 1) : packed;
  const name = (i) => W.data.spaces[places[i]];
  W.agreement = {
    n, places,
    r: (i, j) => (i === j ? 1 : values[W.pairAt(i, j, n)]),
    linked: (i, j) => i !== j && linked[W.pairAt(i, j, n)] === 1,
    p: (i, j) => (i === j || !adjusted ? null : adjusted[W.pairAt(i, j, n)]),
  };
  const holder = W.chart('heat');
  const canvas = W.make('canvas', {
    tabindex: '0', role: 'img',
    'aria-label': `Rank agreement of ${n} embeddings, ordered by group; arrow keys move, Enter chooses`,
  });
  const key = W.make('div');
  holder.append(canvas, key);
  const from = heat.floor < 0 ? null : heat.floor;
  // Where all agree, the colours start at the least agreement, so that differences show.
  const shaded = (ramp) => (r) => ramp(from === null ? r : (r - from) / (1 - from || 1));
  const band = 7, labelled = n <= 16;
  let cell = 10, left = band + 4, cursor = null;

  const words = (i, j) => {
    const p = W.agreement.p(i, j);
    return i === j ? name(i)
      : `${name(i)}\n${name(j)}\nr = ${W.agreement.r(i, j).toFixed(3)}${p === null ? '' : `, adjusted p = ${W.show(p)}`}${W.agreement.linked(i, j) ? ', linked' : ''}`;
  };

  function draw(width) {
    left = labelled ? Math.min(130, width * 0.32) : band + 4;
    cell = Math.max(1, Math.min(72, (width - left - 2) / n));
    const size = cell * n;
    const pen = W.canvas(canvas, Math.ceil(left + size + 2), Math.ceil(band + 4 + size + 2));
    const top = band + 4, gap = cell > 5 ? 1 : 0, shade = shaded(W.ramp());
    const tiny = cell <= 5, ramp = W.ramp();
    if (tiny) W.pixels(pen, n, n, (i, j) => ramp.rgb(from === null ? W.agreement.r(i, j) : (W.agreement.r(i, j) - from) / (1 - from || 1)), left, top, size, size);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < (tiny ? 0 : n); j++) {
        pen.fillStyle = shade(W.agreement.r(i, j));
        pen.fillRect(left + j * cell, top + i * cell, cell - gap, cell - gap);
      }
      pen.fillStyle = W.colour(story.group[places[i]]);
      pen.fillRect(left - band - 3, top + i * cell, band, cell - gap);
      pen.fillRect(left + i * cell, 0, cell - gap, band);
      if (labelled) {
        pen.fillStyle = W.surface('quiet');
        pen.font = '12px system-ui, sans-serif';
        pen.textAlign = 'right';
        pen.textBaseline = 'middle';
        pen.fillText(W.cut(name(i), Math.floor((left - band - 8) / 6.4)), left - band - 8, top + (i + 0.5) * cell, left - band - 10);
      }
    }
    pen.strokeStyle = W.surface('ink');
    pen.lineWidth = cell < 5 ? 1 : 1.5;
    const at = places.indexOf(W.spaceOf(W.state.run));
    if (at >= 0) {
      pen.strokeRect(left - 0.5, top + at * cell - 0.5, size, Math.max(cell, 3));
      pen.strokeRect(left + at * cell - 0.5, top - 0.5, Math.max(cell, 3), size);
    }
    if (cursor) {
      pen.lineWidth = 2.5;
      pen.strokeRect(left + cursor[1] * cell - 1, top + cursor[0] * cell - 1, cell + 1, cell + 1);
    }
  }

  function where(event) {
    const box = canvas.getBoundingClientRect();
    const i = Math.floor((event.clientY - box.top - band - 4) / cell), j = Math.floor((event.clientX - box.left - left) / cell);
    return i >= 0 && i < n && j >= 0 && j < n ? [i, j] : null;
  }
  canvas.addEventListener('pointermove', (event) => {
    const at = where(event);
    W.tip(at ? words(...at) : '', event.clientX, event.clientY);
  });
  canvas.addEventListener('pointerleave', () => W.tip(''));
  canvas.addEventListener('click', (event) => {
    const at = where(event);
    if (at) W.chooseSpace(places[at[0]]);
  });
  canvas.addEventListener('keydown', (event) => {
    const move = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (move) {
      event.preventDefault();
      cursor = cursor ? cursor.map((c, k) => Math.max(0, Math.min(n - 1, c + move[k]))) : [0, 0];
      W.say(words(...cursor).replaceAll('\n', ', '));
      draw(Math.floor(holder.clientWidth));
    } else if ((event.key === 'Enter' || event.key === ' ') && cursor) {
      event.preventDefault();
      W.chooseSpace(places[cursor[0]]);
    }
  });
  canvas.addEventListener('blur', () => { cursor = null; draw(Math.floor(holder.clientWidth)); });

  function drawKey() {
    const svg = W.make('svg', {width: 220, height: 30, role: 'img', 'aria-label': `Colours from ${from ?? '−1'} to 1`});
    const stops = W.make('linearGradient', {id: 'shade'}), ramp = W.ramp();
    for (let s = 0; s <= 10; s++) stops.append(W.make('stop', {offset: s / 10, 'stop-color': ramp(from === null ? s / 5 - 1 : s / 10)}));
    svg.append(W.make('defs', {}, stops), W.make('rect', {x: 4, y: 6, width: 200, height: 8, fill: 'url(#shade)'}));
    for (const [r, x] of from === null ? [['−1', 4], ['0', 104], ['1', 204]] : [[W.show(from), 4], ['1', 204]]) W.text(svg, x, 27, r, {'text-anchor': x === 4 ? 'start' : 'middle'});
    key.textContent = '';
    key.append(svg);
  }
  W.draw(holder, (width) => { draw(width); drawKey(); }, 'run', 'theme');
  W.redraw.heat = () => draw(Math.floor(holder.clientWidth));

  W.tables.agreement = () => ({
    columns: ['space', ...places.map((p) => W.data.spaces[p])],
    rows: places.map((p, i) => [W.data.spaces[p], ...places.map((_, j) => Number(W.agreement.r(i, j).toPrecision(6)))]),
  });
})();
