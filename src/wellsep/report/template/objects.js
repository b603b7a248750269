// The best partition, object by object.
(function () {
  const best = W.data.objects;
  if (!best) return;
  const run = W.data.partitions.indexOf(best.partition), k = best.clusters.length;
  const worstNames = new Map();
  for (const kind of ['margin', 'lcd']) if (best[kind]) best[kind].worst.forEach((o, i) => worstNames.set(o, best[kind].worst_names[i]));
  const nameOf = (object) => (W.objectName && W.objectName(object)) || worstNames.get(object) || `object ${object}`;
  const label = (c) => W.cut(best.clusters[c], 9);
  const left = Math.min(74, 18 + 7 * Math.max(...best.clusters.map((c) => Math.min(c.length, 9)), 1));
  const rowHeight = Math.max(9, Math.min(36, 440 / k));
  const part = W.data.scatters && (W.data.scatters.labels[best.partition] || Object.values(W.data.scatters.labels)[0]);
  const hue = (cluster) => (part ? part.colours[cluster] : cluster);
  const alone = (cluster) => { W.chooseRun(run); W.choose('cluster', W.state.cluster === hue(cluster) ? null : hue(cluster)); };

  const widths = best.silhouettes && best.silhouettes.profiles.map(W.decode);
  if (widths) W.draw(W.chart('silhouettes'), (width) => {
    const total = best.sizes.reduce((a, b) => a + b, 0), gap = k > 30 ? 2 : 5;
    const whole = Math.max(300, rowHeight * k);
    const tall = best.sizes.map((s) => Math.max(k > 30 ? 7 : 13, ((whole - gap * k) * s) / total));
    const height = tall.reduce((a, b) => a + b + gap, 0) + 6;
    const [low] = W.range(widths.flatMap((w) => [...w]).concat([0]));
    const from = Math.max(-1, Math.floor(low * 10) / 10), x = W.scale(from, 1, left, width - 12);
    const svg = W.svg(W.chart('silhouettes'), width, height + 34, `Silhouette widths of ${k} clusters, mean ${W.show(best.silhouettes.mean)}`);
    W.axisBelow(svg, x, W.ticks(from, 1, width > 300 ? 6 : 4), height, height);
    W.text(svg, (left + width) / 2, height + 31, 'silhouette width', {'text-anchor': 'middle'});
    let y = 4;
    widths.forEach((w, c) => {
      const step = tall[c] / Math.max(w.length, 1);
      let d = `M${x(0)} ${y}`;
      w.forEach((v, i) => { d += `L${x(v).toFixed(1)} ${(y + i * step).toFixed(1)}L${x(v).toFixed(1)} ${(y + (i + 1) * step).toFixed(1)}`; });
      d += `L${x(0)} ${y + tall[c]}Z`;
      svg.append(W.make('path', {d, fill: W.paint(hue(c)), class: 'mark', 'data-do': c,
        'data-tip': `cluster ${best.clusters[c]}\n${best.sizes[c]} objects, mean width ${W.show(best.silhouettes.means[c])}`}));
      if (tall[c] >= 11) W.text(svg, left - 8, y + tall[c] / 2 + 4, label(c), {'text-anchor': 'end'});
      y += tall[c] + gap;
    });
    svg.append(W.make('line', {x1: x(0), x2: x(0), y1: 0, y2: height, class: 'axis'}));
    const mean = best.silhouettes.mean;
    if (mean !== null) svg.append(W.make('line', {x1: x(mean), x2: x(mean), y1: 0, y2: height, class: 'threshold'}));
    W.touchable(svg, alone);
    W.walkable(svg, alone);
  });
  W.tables.silhouettes = () => ({
    columns: ['cluster', 'objects', 'mean width'],
    rows: best.clusters.map((c, i) => [c, best.sizes[i], best.silhouettes.means[i]]),
  });

  function strip(kind, title) {
    const data = best[kind];
    if (!data) return;
    const parts = data.clusters.map((c) => ({values: W.decode(c.values), objects: W.decode(c.objects)}));
    const worst = new Set(data.worst);
    const all = parts.flatMap((p) => [...p.values]);
    W.draw(W.chart(kind), (width) => {
      const row = rowHeight, height = row * k + 6;
      const [low, high] = W.range(all.concat([0]));
      const x = W.scale(low - (high - low) * 0.02, high + (high - low) * 0.02, left, width - 12);
      const svg = W.svg(W.chart(kind), width, height + 34, `${title} of the objects of ${k} clusters`);
      W.axisBelow(svg, x, W.ticks(low, high, width > 300 ? 6 : 4), height, height);
      W.text(svg, (left + width) / 2, height + 31, title, {'text-anchor': 'middle'});
      if (low < 0) svg.append(W.make('line', {x1: x(0), x2: x(0), y1: 0, y2: height, class: 'threshold'}));
      parts.forEach((part, c) => {
        const middle = 3 + row * (c + 0.5);
        if (row >= 11) W.text(svg, left - 8, middle + 4, label(c), {'text-anchor': 'end'});
        part.values.forEach((v, i) => {
          const o = part.objects[i], bad = worst.has(o);
          const jitter = (((o * 2654435761) % 1000) / 1000 - 0.5) * row * 0.66;
          svg.append(W.make('circle', {
            cx: x(v).toFixed(1), cy: (middle + jitter).toFixed(1), r: bad ? 4 : 1.9, fill: bad ? 'var(--panel)' : W.paint(hue(c)), 'fill-opacity': bad ? 1 : 0.55,
            stroke: o === W.state.object ? 'var(--ink)' : bad ? W.paint(hue(c)) : 'none', 'stroke-width': o === W.state.object ? 3 : 1.8, class: bad ? 'mark' : null,
            'data-do': bad ? o : null, 'data-tip': `${nameOf(o)}\ncluster ${best.clusters[c]}\n${title} ${W.show(Number(v.toPrecision(3)))}`,
          }));
        });
        const [a, m, b] = data.quartiles[c];
        if (m !== null && row >= 11) {
          svg.append(W.make('line', {x1: x(a), x2: x(b), y1: middle, y2: middle, stroke: 'var(--ink)', 'stroke-width': 1.5, opacity: 0.7}));
          svg.append(W.make('line', {x1: x(m), x2: x(m), y1: middle - row * 0.28, y2: middle + row * 0.28, stroke: 'var(--ink)', 'stroke-width': 2}));
        }
      });
      const act = (o) => W.choose('object', o);
      W.touchable(svg, act);
      W.walkable(svg, act);
    }, 'object');
    W.tables[kind] = () => ({
      columns: ['cluster', 'object', title],
      rows: parts.flatMap((part, c) => [...part.values].map((v, i) => [best.clusters[c], nameOf(part.objects[i]), Number(v.toPrecision(6))])),
    });
  }
  strip('margin', 'margin');
  strip('lcd', 'local connectivity disagreement');

  const worst = best.worst;
  if (!worst) return;
  const keys = Object.keys(worst).filter((key) => key !== 'position');
  W.tables.worst = () => ({columns: keys, rows: worst.object.map((_, i) => keys.map((key) => worst[key][i]))});
  document.querySelectorAll('tr[data-object]').forEach((line) => {
    line.style.cursor = 'pointer';
    line.addEventListener('click', () => W.choose('object', Number(line.dataset.object)));
  });
  W.on('object', () => document.querySelectorAll('tr[data-object]').forEach((line) => {
    if (Number(line.dataset.object) === W.state.object) line.setAttribute('aria-current', 'true');
    else line.removeAttribute('aria-current');
  }));
})();
