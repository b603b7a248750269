// The resolution tree: a row per partition, dots are clusters, lines the objects they share.
(function () {
  const data = W.data.tree;
  if (!data) return;
  const row = 58, run = (level) => W.data.partitions.indexOf(data.levels[level]);
  const largest = Math.max(...data.sizes);
  const of = (node) => `cluster ${data.clusters[node]} of ${data.levels[data.level[node]]}`;

  W.draw(W.chart('tree'), (width) => {
    const left = Math.min(140, width / 4), height = row * data.levels.length + 16;
    const svg = W.svg(W.chart('tree'), width, height, `Which clusters of ${data.levels.length} partitions have objects in common`);
    const x = (node) => left + 14 + data.x[node] * (width - left - 24), y = (node) => row * (data.level[node] + 0.5);
    data.levels.forEach((name, level) => W.text(svg, 4, row * (level + 0.5) + 4, W.cut(name, Math.floor((left - 8) / 7.4)), {class: run(level) === W.state.run ? 'strong' : null}));
    data.links.forEach(([above, below], i) => svg.append(W.make('line', {
      x1: x(above), y1: y(above), x2: x(below), y2: y(below), stroke: 'var(--quiet)',
      'stroke-width': 0.6 + (9 * data.counts[i]) / largest, opacity: 0.12 + 0.75 * data.shares[i],
      'data-tip': `${data.counts[i]} objects\n${of(above)} → ${of(below)}\n${W.show(data.shares[i], 'share')} of the latter`,
    })));
    const crowd = data.levels.map((_, level) => data.level.filter((one) => one === level).length);
    data.sizes.forEach((size, node) => {
      const r = 3 + 9 * Math.sqrt(size / largest);
      svg.append(W.make('circle', {
        cx: x(node), cy: y(node), r, fill: W.colour(data.codes[node]), stroke: 'var(--panel)', 'stroke-width': 1.5, class: 'mark',
        'data-do': run(data.level[node]), 'data-tip': `${of(node)}\n${size} objects`,
      }));
      const room = (width - left - 24) / crowd[data.level[node]] - r - 14;
      const name = W.cut(data.clusters[node], 8);
      if (name.length * 7 <= room) W.text(svg, x(node) + r + 3, y(node) + 4, name);
    });
    const choose = (at) => { if (at >= 0) W.chooseRun(at); };
    W.touchable(svg, choose);
    W.walkable(svg, choose);
  }, 'run');
  W.tables.tree = () => ({
    columns: ['partition', 'cluster', 'next partition', 'next cluster', 'objects', 'share of the next'],
    rows: data.links.map(([a, b], i) => [data.levels[data.level[a]], data.clusters[a], data.levels[data.level[b]], data.clusters[b], data.counts[i], data.shares[i]]),
  });
})();
