// Choosing K: every index over K, the votes, the stability.
(function () {
  const data = W.data.curves;
  if (!data) return;
  const k = data.k, choose = (at) => W.chooseRun(at);
  const path = (x, y, list) => list.map((v, i) => [v, i]).filter(([v]) => v !== null)
    .map(([v, i], at) => `${at ? 'L' : 'M'}${x(k[i]).toFixed(1)} ${y(v).toFixed(1)}`).join('');

  W.draw(W.chart('curves'), (width) => {
    const holder = W.chart('curves');
    const across = Math.max(1, Math.min(data.curves.length, Math.floor(width / 250))), wide = Math.floor(width / across), tall = 168;
    const svg = W.svg(holder, width, Math.ceil(data.curves.length / across) * tall, `${data.curves.length} indices over K from ${k[0]} to ${k[k.length - 1]}`);
    data.curves.forEach((curve, at) => {
      const left = (at % across) * wide, top = Math.floor(at / across) * tall;
      const [low, high] = W.range([...curve.low, ...curve.high, ...curve.mean]);
      const x = W.scale(k[0], k[k.length - 1], left + 46, left + wide - 18), y = W.scale(low, high, top + tall - 34, top + 30);
      W.text(svg, left + 8, top + 15, `${W.cut(curve.name, 26)} ${curve.direction > 0 ? '↑' : '↓'}`, {class: 'strong'});
      for (const t of W.ticks(low, high, 3)) {
        svg.append(W.make('line', {x1: left + 46, x2: left + wide - 18, y1: y(t), y2: y(t), class: 'grid'}));
        W.text(svg, left + 42, y(t) + 4, W.show(t), {'text-anchor': 'end'});
      }
      for (const t of W.ticks(k[0], k[k.length - 1], 5).filter(Number.isInteger)) W.text(svg, x(t), top + tall - 16, t, {'text-anchor': 'middle'});
      const chosen = k[W.state.run] ?? k[0];
      svg.append(W.make('line', {x1: x(chosen), x2: x(chosen), y1: top + 26, y2: top + tall - 34, class: 'threshold'}));
      const known = curve.mean.map((v, i) => i).filter((i) => curve.mean[i] !== null);
      if (known.length) {
        const band = known.map((i) => `${x(k[i]).toFixed(1)},${y(curve.high[i]).toFixed(1)}`).concat(known.slice().reverse().map((i) => `${x(k[i]).toFixed(1)},${y(curve.low[i]).toFixed(1)}`));
        svg.append(W.make('polygon', {points: band.join(' '), fill: 'var(--accent)', opacity: 0.16}));
        svg.append(W.make('path', {d: path(x, y, curve.mean), fill: 'none', stroke: 'var(--accent)', 'stroke-width': 2}));
      }
      known.forEach((i) => svg.append(W.make('circle', {
        cx: x(k[i]), cy: y(curve.mean[i]), r: k[i] === curve.pick ? 5.5 : 2.6, fill: 'var(--accent)', stroke: 'var(--panel)', 'stroke-width': 1.5, class: 'mark', 'data-do': i,
        'data-tip': `K = ${k[i]}\n${curve.name} ${W.show(curve.mean[i])}${data.n_repeats > 1 ? ` ± ${W.show((curve.high[i] - curve.low[i]) / 2)}` : ''}`,
      })));
    });
    W.touchable(svg, choose);
    W.walkable(svg, choose);
  }, 'run');
  W.tables.curves = () => ({
    columns: ['K', ...data.curves.map((c) => c.name)],
    rows: k.map((value, i) => [value, ...data.curves.map((c) => c.mean[i])]),
  });

  const repeated = data.stability.some((s) => s !== null);
  W.draw(W.chart('votes'), (width) => {
    const height = 150, most = Math.max(...data.votes, 1);
    const svg = W.svg(W.chart('votes'), width, height + (repeated ? 182 : 40), `Votes for every K; K = ${data.best} is highlighted`);
    const slot = (width - 60) / k.length, x = (i) => 40 + slot * (i + 0.5), y = W.scale(0, most, height, 26);
    for (const t of W.ticks(0, most, 4)) {
      svg.append(W.make('line', {x1: 40, x2: width - 20, y1: y(t), y2: y(t), class: 'grid'}));
      W.text(svg, 34, y(t) + 4, W.show(t), {'text-anchor': 'end'});
    }
    const every = Math.ceil(k.length / Math.max(1, Math.floor(width / 34)));
    k.forEach((value, i) => {
      const bar = Math.min(34, slot * 0.62);
      svg.append(W.make('rect', {
        x: x(i) - bar / 2, y: Math.min(y(data.votes[i]), height - 1), width: bar, height: Math.max(height - y(data.votes[i]), 1), rx: 2,
        fill: value === data.best ? 'var(--accent)' : 'var(--quiet)', opacity: value === data.best ? 1 : 0.55,
        stroke: i === W.state.run ? 'var(--ink)' : 'none', 'stroke-width': 2, class: 'mark', 'data-do': i,
        'data-tip': `K = ${value}\n${W.show(data.votes[i])} votes${repeated ? `\nstability ${W.show(data.stability[i])}` : ''}`,
      }));
      if (i % every === 0) W.text(svg, x(i), height + 16, value, {'text-anchor': 'middle'});
    });
    W.text(svg, 4, 10, 'votes');
    W.text(svg, (width + 20) / 2, height + 33, 'number of clusters', {'text-anchor': 'middle'});
    if (repeated) {  // an axis of its own
      const top = height + 62, base = top + 96, s = W.scale(0, 1, base, top);
      W.text(svg, 4, top - 10, 'stability: mean ARI of the repeats');
      for (const t of [0, 0.5, 1]) {
        svg.append(W.make('line', {x1: 40, x2: width - 20, y1: s(t), y2: s(t), class: 'grid'}));
        W.text(svg, 34, s(t) + 4, W.show(t), {'text-anchor': 'end'});
      }
      const d = data.stability.map((v, i) => [v, i]).filter(([v]) => v !== null).map(([v, i], at) => `${at ? 'L' : 'M'}${x(i).toFixed(1)} ${s(v).toFixed(1)}`).join('');
      svg.append(W.make('path', {d, fill: 'none', stroke: 'var(--c1)', 'stroke-width': 2}));
      data.stability.forEach((v, i) => { if (v !== null) svg.append(W.make('circle', {cx: x(i), cy: s(v), r: 3.5, fill: 'var(--c1)', 'data-tip': `K = ${k[i]}\nstability ${W.show(v)}`})); });
      k.forEach((value, i) => { if (i % every === 0) W.text(svg, x(i), base + 16, value, {'text-anchor': 'middle'}); });
    }
    W.touchable(svg, choose);
    W.walkable(svg, choose);
  }, 'run');
  W.tables.votes = () => ({
    columns: ['K', 'votes', 'stability'],
    rows: k.map((value, i) => [value, data.votes[i], data.stability[i]]),
  });
})();
