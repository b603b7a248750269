// Each way of ranking against the truth: score over ARI.
(function () {
  const truth = W.data.truth;
  if (!truth) return;
  const ari = truth.external.ari, keys = Object.keys(truth.table);
  W.tables.truth = () => ({columns: keys, rows: truth.names.map((_, i) => keys.map((key) => truth.table[key][i]))});
  W.tables.panels = () => ({
    columns: ['partition', ...Object.keys(truth.external), ...truth.names.map((n) => `score, ${n}`)],
    rows: truth.partitions.map((p, j) => [p, ...Object.values(truth.external).map((v) => v[j]), ...truth.scores.map((s) => s[j])]),
  });
  W.draw(W.chart('panels'), (width) => {
    const fit = Math.max(1, Math.floor(width / 215)), lines = Math.ceil(truth.names.length / fit);
    const across = Math.ceil(truth.names.length / lines), wide = Math.floor(width / across), tall = 215;
    const svg = W.svg(W.chart('panels'), width, Math.ceil(truth.names.length / across) * tall, 'Scores against ARI with the truth, by way of ranking');
    const room = ([a, b]) => [a - (b - a) * 0.06, b + (b - a) * 0.06];
    const [low, high] = room(W.range(ari));
    truth.names.forEach((name, at) => {
      const left = (at % across) * wide, top = Math.floor(at / across) * tall;
      const [from, to] = room(W.range(truth.scores[at]));
      const x = W.scale(from, to, left + 40, left + wide - 18), y = W.scale(low, high, top + tall - 48, top + 44);
      W.text(svg, left + 8, top + 14, W.cut(name.replaceAll('_', ' '), 26), {class: 'strong'});
      W.text(svg, left + 8, top + 30, `r_s ${W.show(Number((truth.table.spearman_ari[at] ?? NaN).toFixed(2)))} with ARI`);
      for (const t of W.ticks(low, high, 3)) {
        svg.append(W.make('line', {x1: left + 40, x2: left + wide - 14, y1: y(t), y2: y(t), class: 'grid'}));
        W.text(svg, left + 35, y(t) + 4, W.show(t), {'text-anchor': 'end'});
      }
      for (const t of W.ticks(from, to, 3)) W.text(svg, x(t), top + tall - 28, W.show(t), {'text-anchor': 'middle'});
      W.text(svg, left + (wide + 26) / 2, top + tall - 12, 'score', {'text-anchor': 'middle'});
      truth.partitions.forEach((p, j) => {
        const score = truth.scores[at][j];
        if (score === null || ari[j] === null) return;
        const pick = truth.picks[at].includes(p);
        svg.append(W.make('circle', {
          cx: x(score), cy: y(ari[j]), r: pick ? 6 : 3.6, fill: pick ? 'var(--accent)' : 'var(--panel)',
          stroke: j === W.state.run ? 'var(--ink)' : 'var(--accent)', 'stroke-width': j === W.state.run ? 2.6 : 1.3, class: 'mark', 'data-do': j,
          'data-tip': `${p}${pick ? ' (its pick)' : ''}\nARI ${W.show(Number(ari[j].toFixed(3)))}, score ${W.show(score)}`,
        }));
      });
    });
    W.touchable(svg, W.chooseRun);
    W.walkable(svg, W.chooseRun);
  }, 'run');
})();
