// The graph of significant agreements: colour by group, size by weight.
(function () {
  if (!W.data.graph) return;
  const {n, places, r, linked, p} = W.agreement;
  const {xy, weight} = W.data.graph, story = W.data.steps;
  const heaviest = Math.max(...weight, 1e-12);
  // Of many links the three strongest of each node: all of them are one grey ball.
  const MANY = 400, strong = Array.from({length: n}, () => []), all = [];
  let count = 0;
  const keep = (list, link) => {
    list.push(link);
    if (list.length > 3) list.splice(list.reduce((least, one, at) => (one[2] < list[least][2] ? at : least), 0), 1);
  };
  for (let i = 0; i < n; i++) for (let j = i + 1; j < n; j++) {
    if (!linked(i, j)) continue;
    count++;
    const link = [i, j, r(i, j)];
    if (all.length <= MANY) all.push(link);
    keep(strong[i], link);
    keep(strong[j], link);
  }
  const drawn = count > MANY ? [...new Set(strong.flat())] : all;
  if (count > MANY) W.byId('graph').querySelector('.note').append(` ${drawn.length} of ${count} lines are drawn: the three strongest of each space.`);

  W.draw(W.chart('graph'), (width) => {
    const height = n <= 6 ? 240 : Math.round(Math.min(width, 520) * 0.86), pad = n <= 16 ? 34 : 20;
    const svg = W.svg(W.chart('graph'), width, height, `${count} significant agreements between ${n} embeddings`);
    const x = (i) => W.scale(0, 1, pad, width - pad)(xy[i][0]), y = (i) => W.scale(0, 1, pad, height - pad)(xy[i][1]);
    // A few paths, not thousands of lines; stronger agreement is darker.
    const levels = 5, paths = Array.from({length: levels}, () => []);
    const low = W.range(drawn.map((l) => l[2]))[0];
    for (const [i, j, s] of drawn) {
      const level = Math.min(levels - 1, Math.floor(((s - low) / (1 - low || 1)) * levels));
      paths[level].push(`M${x(i).toFixed(1)} ${y(i).toFixed(1)}L${x(j).toFixed(1)} ${y(j).toFixed(1)}`);
    }
    const thin = Math.min(1, Math.sqrt(250 / Math.max(drawn.length, 1)));
    paths.forEach((d, level) => svg.append(W.make('path', {d: d.join(''), class: 'edge', fill: 'none', 'stroke-width': 0.6 + 0.25 * level, opacity: (0.18 + 0.1 * level) * thin})));
    const chosen = W.spaceOf(W.state.run);
    const order = [...places.keys()].sort((a, b) => weight[b] - weight[a]);
    for (const i of order) {
      const space = places[i], wins = story.fate[space] === 'wins';
      const size = (n > 80 ? 3 : 5) + (n > 80 ? 7 : 11) * Math.sqrt(weight[i] / heaviest);
      if (wins) svg.append(W.make('circle', {cx: x(i), cy: y(i), r: size + 3, fill: 'none', stroke: W.paint(story.group[space]), 'stroke-width': 1.5}));
      svg.append(W.make('circle', {
        cx: x(i), cy: y(i), r: size, fill: W.paint(story.group[space]), 'fill-opacity': wins ? 1 : 0.72,
        stroke: space === chosen ? 'var(--ink)' : 'var(--panel)', 'stroke-width': space === chosen ? 3 : 1,
        class: 'node', 'data-do': space,
        'data-tip': `${W.data.spaces[space]}\n${W.fate(space)}${story.group[space] < 0 ? '' : `, group ${story.group[space] + 1}`}\nweight in its group ${W.show(weight[i])}`,
      }));
    }
    if (n <= 16) for (const i of order) W.text(svg, x(i), y(i) - 20, W.cut(W.data.spaces[places[i]], 20), {'text-anchor': x(i) > width * 0.75 ? 'end' : x(i) < width * 0.25 ? 'start' : 'middle'});
    W.touchable(svg, W.chooseSpace);
    W.walkable(svg, W.chooseSpace);
  }, 'run');

  const pairs = () => {
    const found = [];
    for (let i = 0; i < n; i++) for (let j = i + 1; j < n; j++) if (linked(i, j)) found.push([i, j, r(i, j)]);
    return found;
  };
  W.tables.links = () => ({
    columns: ['space', 'with', 'r', 'adjusted p'],
    rows: pairs().map(([i, j, s]) => [W.data.spaces[places[i]], W.data.spaces[places[j]], Number(s.toPrecision(6)), p(i, j)]),
  });
})();
