// Stability: each cluster in every draw, how often it dissolves, what the draws found.
(function () {
  const data = W.data.stability;
  if (!data) return;
  const order = W.data.table.rows, k = data.clusters.length, DISSOLVED = 0.5, RECOVERED = 0.75, STRONG = 0.8;
  const values = data.values.map(W.decode);
  const left = Math.min(110, 18 + 7 * Math.max(...data.clusters.map((c) => Math.min(c.length, 13)), 1));
  const row = Math.max(11, Math.min(34, 620 / k)), choose = (at) => W.chooseRun(W.state.run === at ? W.data.best : at);
  const name = (c) => W.cut(data.clusters[c], 13);
  const part = W.data.scatters && W.data.scatters.labels[W.data.whole], hue = (c) => (part ? part.colours[c] : c);

  W.draw(W.chart('jaccard'), (width) => {
    const height = row * k + 8, x = W.scale(0, 1, left, width - 16);
    const svg = W.svg(W.chart('jaccard'), width, height + 34, `Jaccard similarity of ${k} clusters over the samples`);
    W.axisBelow(svg, x, W.ticks(0, 1, width > 420 ? 10 : 5), height, height);
    W.text(svg, (left + width) / 2, height + 31, 'Jaccard similarity', {'text-anchor': 'middle'});
    for (const t of [DISSOLVED, RECOVERED]) svg.append(W.make('line', {x1: x(t), x2: x(t), y1: 0, y2: height, class: 'threshold'}));
    order.forEach((c, at) => {
      const middle = 4 + row * (at + 0.5), chosen = c === W.state.run;
      W.text(svg, left - 8, middle + 4, name(c), {'text-anchor': 'end', class: chosen ? 'strong' : null});
      values[c].forEach((v, i) => {
        if (!Number.isFinite(v)) return;
        const jitter = (((i * 2654435761) % 1000) / 1000 - 0.5) * row * 0.7;
        svg.append(W.make('circle', {cx: x(v).toFixed(1), cy: (middle + jitter).toFixed(1), r: 2, fill: W.paint(hue(c)), 'fill-opacity': 0.45}));
      });
      const tip = `cluster ${data.clusters[c]}, ${data.sizes[c]} objects\nmean Jaccard ${W.show(data.mean[c])} (${W.show(data.low[c])} to ${W.show(data.high[c])})\n${data.words[c]}`;
      if (data.mean[c] !== null) {
        svg.append(W.make('line', {x1: x(data.low[c]), x2: x(data.high[c]), y1: middle, y2: middle, stroke: 'var(--ink)', 'stroke-width': 3}));
        svg.append(W.make('circle', {cx: x(data.mean[c]), cy: middle, r: 4.5, fill: 'var(--ink)'}));
      }
      svg.append(W.make('rect', {x: 0, y: middle - row / 2, width, height: row, fill: 'var(--accent)', 'fill-opacity': chosen ? 0.1 : 0, class: 'mark', 'data-do': c, 'data-tip': tip}));
    });
    W.touchable(svg, choose);
    W.walkable(svg, choose);
  }, 'run');
  W.tables.jaccard = () => ({
    columns: ['cluster', 'objects', 'mean Jaccard', 'from', 'to', 'verdict'],
    rows: order.map((c) => [data.clusters[c], data.sizes[c], data.mean[c], data.low[c], data.high[c], data.words[c]]),
  });

  W.draw(W.chart('fates'), (width) => {
    const height = row * k + 8, x = W.scale(0, 1, left, width - 20);
    const svg = W.svg(W.chart('fates'), width, height + 34, `Share of the samples in which each of ${k} clusters dissolves or is recovered`);
    W.axisBelow(svg, x, W.ticks(0, 1, width > 420 ? 5 : 4), height, height, (t) => `${Math.round(t * 100)}%`);
    W.text(svg, (left + width) / 2, height + 31, 'share of the samples', {'text-anchor': 'middle'});
    order.forEach((c, at) => {
      const middle = 4 + row * (at + 0.5), n = data.draws[c] || 1, bar = Math.max(6, row * 0.62);
      W.text(svg, left - 8, middle + 4, name(c), {'text-anchor': 'end', class: c === W.state.run ? 'strong' : null});
      const neither = data.draws[c] - data.recovered[c] - data.dissolved[c];
      let from = 0;
      for (const [count, fill, said] of [[data.recovered[c], 'var(--accent)', 'recovered'], [neither, 'var(--line)', 'neither'], [data.dissolved[c], 'var(--c1)', 'dissolved']]) {
        if (count) svg.append(W.make('rect', {x: x(from / n), y: middle - bar / 2, width: x(count / n) - x(0), height: bar, fill, class: 'mark', 'data-do': c, 'data-tip': `cluster ${data.clusters[c]}\n${said} in ${count} of ${n} ${data.scheme}s`}));
        from += count;
      }
    });
    W.touchable(svg, choose);
    W.walkable(svg, choose);
  }, 'run');
  W.tables.fates = () => ({
    columns: ['cluster', 'dissolved', 'recovered', 'samples'],
    rows: order.map((c) => [data.clusters[c], data.dissolved[c], data.recovered[c], data.draws[c]]),
  });

  const counts = new Map();
  for (const n of data.n_found) counts.set(n, (counts.get(n) || 0) + 1);
  const numbers = [...counts.keys()].sort((a, b) => a - b);
  if (numbers.length) {
    W.draw(W.chart('found'), (width) => {
      const height = 170, from = Math.min(numbers[0], k) - 0.5, to = Math.max(numbers[numbers.length - 1], k) + 0.5;
      const most = Math.max(...counts.values()), x = W.scale(from, to, 46, width - 16), y = W.scale(0, most, height, 14);
      const svg = W.svg(W.chart('found'), width, height + 36, `Numbers of clusters found in ${data.n_found.length} samples`);
      for (const t of W.ticks(0, most, 4).filter(Number.isInteger)) {
        svg.append(W.make('line', {x1: 46, x2: width - 16, y1: y(t), y2: y(t), class: 'grid'}));
        W.text(svg, 40, y(t) + 4, t, {'text-anchor': 'end'});
      }
      const bar = Math.min(46, (x(1) - x(0)) * 0.7);
      for (const n of numbers) svg.append(W.make('rect', {x: x(n) - bar / 2, y: y(counts.get(n)), width: bar, height: height - y(counts.get(n)), fill: 'var(--accent)', 'data-tip': `${n} clusters in ${counts.get(n)} ${data.scheme}s`}));
      for (const t of W.ticks(from, to, Math.max(2, Math.floor(width / 60))).filter(Number.isInteger)) W.text(svg, x(t), height + 16, t, {'text-anchor': 'middle'});
      svg.append(W.make('line', {x1: x(k), x2: x(k), y1: 6, y2: height, class: 'threshold'}));
      W.text(svg, 4, 10, 'samples');
      W.text(svg, (width + 30) / 2, height + 33, 'number of clusters', {'text-anchor': 'middle'});
      W.touchable(svg);
    });
    W.tables.found = () => ({columns: ['clusters', 'samples'], rows: numbers.map((n) => [n, counts.get(n)])});
  }

  if (data.strengths.length) {
    W.draw(W.chart('strengths'), (width) => {
      const height = 110, x = W.scale(0, 1, 24, width - 24), mean = data.strengths.reduce((a, b) => a + b, 0) / data.strengths.length;
      const svg = W.svg(W.chart('strengths'), width, height + 34, `Prediction strength of ${data.strengths.length} splits, mean ${W.show(mean)}`);
      W.axisBelow(svg, x, W.ticks(0, 1, width > 420 ? 10 : 5), height, height);
      W.text(svg, width / 2, height + 31, 'prediction strength', {'text-anchor': 'middle'});
      svg.append(W.make('line', {x1: x(STRONG), x2: x(STRONG), y1: 0, y2: height, class: 'threshold'}));
      data.strengths.forEach((v, i) => {
        const jitter = (((i * 2654435761) % 1000) / 1000 - 0.5) * height * 0.5;
        svg.append(W.make('circle', {cx: x(v), cy: height / 2 + jitter, r: 4, fill: 'var(--accent)', 'fill-opacity': 0.7, 'data-tip': `split ${i + 1}\nprediction strength ${W.show(v)}`}));
      });
      svg.append(W.make('line', {x1: x(mean), x2: x(mean), y1: height * 0.2, y2: height * 0.8, stroke: 'var(--ink)', 'stroke-width': 2.5}));
      W.touchable(svg);
    });
    W.tables.strengths = () => ({columns: ['split', 'prediction strength'], rows: data.strengths.map((v, i) => [i + 1, v])});
  }
})();
