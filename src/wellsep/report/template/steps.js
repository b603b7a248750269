// The steps of ACE: one dot per space, in the same place at every step.
(function () {
  const story = W.data.steps;
  if (!story) return;
  const spaces = W.data.spaces, n = spaces.length;
  const across = Math.max(4, Math.ceil(Math.sqrt(n * 2.2)));
  const grouped = story.steps.findIndex((s) => s.title === 'in a group');
  const WORDS = {
    wins: 'gives the answer', group: 'in a group that does not win', outlier: 'agrees with no group',
    constant: 'cannot tell the clusterings apart', dip: 'one mode cannot be ruled out',
  };
  W.fate = (space) => WORDS[story.fate[space]];

  function draw(holder, at) {
    const step = story.steps[at];
    const rows = Math.ceil(n / across), gap = 12;
    const svg = W.make('svg', {
      viewBox: `0 0 ${across * gap} ${rows * gap}`, role: 'img',
      'aria-label': `${step.count} ${step.title}`, style: `max-width:${Math.min(192, across * 17)}px`,
    });
    const chosen = W.spaceOf(W.state.run);
    story.order.forEach((space, place) => {
      const kept = step.kept[space];
      const coloured = grouped >= 0 && at >= grouped;
      const fill = !kept ? 'none' : coloured ? W.paint(story.group[space]) : 'var(--quiet)';
      const run = W.runOf(space);
      svg.append(W.make('circle', {
        cx: (place % across) * gap + gap / 2, cy: Math.floor(place / across) * gap + gap / 2, r: kept ? 4.3 : 3.6,
        fill, stroke: space === chosen ? 'var(--ink)' : kept ? 'none' : 'var(--quiet)',
        'stroke-width': space === chosen ? 2 : 0.8, 'pointer-events': 'all', class: run >= 0 ? 'mark' : null,
        'data-tip': `${spaces[space]}\n${WORDS[story.fate[space]]}`, 'data-do': run >= 0 ? space : null,
      }));
    });
    W.touchable(svg, W.chooseSpace);
    holder.textContent = '';
    holder.append(svg);
  }
  const again = () => document.querySelectorAll('.dots').forEach((holder) => draw(holder, Number(holder.dataset.step)));
  W.on('run', again);
  again();

  // The page lists the reasons; they are not sent twice.
  const why = new Map(Array.from(document.querySelectorAll('#left-out li'), (item) => [
    item.querySelector('bdi').textContent, item.querySelector('span').textContent.replace(/\.$/, ''),
  ]));
  W.tables.spaces = () => ({
    columns: ['space', 'fate', 'group', 'weight in the answer', 'why it was left out'],
    rows: story.order.map((s) => [
      spaces[s], W.fate(s), story.group[s] < 0 ? null : story.group[s] + 1, story.weight[s],
      why.get(spaces[s]) ?? null,
    ]),
  });

  // Dip tests: a dot per space over its adjusted p, stacked where they meet.
  const dips = W.data.dips;
  if (!dips) return;
  W.draw(W.chart('dips'), n > 80 ? histogram : (width) => {
    const holder = W.chart('dips'), least = 1e-4;
    const x = (p) => W.scale(-4, 0, 26, width - 14)(Math.log10(Math.max(p, least)));
    const size = n > 120 ? 3 : 4.5, wide = size * 2 + 1.5;
    const stacks = new Map();
    const places = [];
    dips.adjusted.forEach((p, i) => {
      if (p === null) return; // the test is undefined there
      const slot = Math.round(x(p) / wide);
      const level = stacks.get(slot) || 0;
      stacks.set(slot, level + 1);
      places.push({i, slot, level});
    });
    const tall = Math.max(3, ...stacks.values());
    const dot = Math.min(wide, 190 / tall), base = Math.max(60, tall * dot + 18);
    const svg = W.svg(holder, width, base + 36, `Dip tests: ${dips.passed.filter(Boolean).length} of ${n} spaces pass`);
    for (const p of [least, 1e-3, 1e-2, 1e-1, 1]) {
      svg.append(W.make('line', {x1: x(p), x2: x(p), y1: 8, y2: base, class: 'grid'}));
      W.text(svg, x(p), base + 15, p === least ? '≤ .0001' : p === 1 ? '1' : String(p).replace(/^0/, ''), {'text-anchor': 'middle'});
    }
    svg.append(W.make('line', {x1: 20, x2: width - 8, y1: base, y2: base, class: 'axis'}));
    svg.append(W.make('line', {x1: x(dips.alpha), x2: x(dips.alpha), y1: 0, y2: base, class: 'threshold'}));
    W.text(svg, x(dips.alpha) + 5, 9, `level ${dips.alpha}`);
    W.text(svg, width / 2, base + 32, 'p-value, adjusted (Holm)', {'text-anchor': 'middle'});
    const chosen = W.spaceOf(W.state.run);
    for (const {i, slot, level} of places) {
      const note = dips.notes[i] ? `\n${dips.notes[i]}` : '';
      svg.append(W.make('circle', {
        cx: slot * wide, cy: base - dot * (level + 0.5) - 1, r: Math.min(size, dot / 2 - 0.4),
        fill: dips.passed[i] ? 'var(--accent)' : 'var(--panel)', stroke: i === chosen ? 'var(--ink)' : dips.passed[i] ? 'none' : 'var(--quiet)',
        'stroke-width': i === chosen ? 2.5 : 1.2, class: 'mark', 'data-do': i,
        'data-tip': `${spaces[i]}\nadjusted p = ${W.show(dips.adjusted[i])}, p = ${W.show(dips.pvalue[i])}${note}`,
      }));
    }
    W.touchable(svg, W.chooseSpace);
    W.walkable(svg, W.chooseSpace);
  }, 'run');
  // Beyond 80 spaces dots are too small: bars count the spaces.
  function histogram(width) {
    const bins = 24, least = -4, counts = Array.from({length: bins}, () => [[], []]);
    dips.adjusted.forEach((p, i) => {
      if (p === null) return;
      const at = Math.min(bins - 1, Math.floor(((Math.log10(Math.max(p, 1e-4)) - least) / 4) * bins));
      counts[at][dips.passed[i] ? 0 : 1].push(i);
    });
    const most = Math.max(1, ...counts.map(([a, b]) => a.length + b.length)), base = 190;
    const x = W.scale(least, 0, 44, width - 14), y = W.scale(0, most, base, 22);
    const svg = W.svg(W.chart('dips'), width, base + 36, `Dip tests: ${dips.passed.filter(Boolean).length} of ${n} spaces pass`);
    for (const t of W.ticks(0, most, 4).filter(Number.isInteger)) {
      svg.append(W.make('line', {x1: 44, x2: width - 14, y1: y(t), y2: y(t), class: 'grid'}));
      W.text(svg, 38, y(t) + 4, t, {'text-anchor': 'end'});
    }
    for (const [p, words] of [[-4, '≤ .0001'], [-3, '.001'], [-2, '.01'], [-1, '.1'], [0, '1']]) W.text(svg, x(p), base + 15, words, {'text-anchor': p === 0 ? 'end' : 'middle'});
    const chosen = W.spaceOf(W.state.run);
    counts.forEach((parts, at) => {
      let from = 0;
      parts.forEach((list, kind) => {
        if (!list.length) return;
        const a = x(least + (4 * at) / bins), b = x(least + (4 * (at + 1)) / bins);
        svg.append(W.make('rect', {
          x: a + 0.5, width: b - a - 1, y: y(from + list.length), height: y(from) - y(from + list.length), fill: kind ? 'var(--noise)' : 'var(--accent)', class: 'mark',
          stroke: list.includes(chosen) ? 'var(--ink)' : 'none', 'stroke-width': 2, 'data-do': list[0],
          'data-tip': `${list.length} ${list.length === 1 ? 'space' : 'spaces'} ${kind ? 'left out' : 'kept'}\n${list.slice(0, 8).map((i) => spaces[i]).join('\n')}${list.length > 8 ? '\n…' : ''}`,
        }));
        from += list.length;
      });
    });
    const edge = x(Math.log10(dips.alpha));
    svg.append(W.make('line', {x1: edge, x2: edge, y1: 12, y2: base, class: 'threshold'}));
    W.text(svg, edge + 5, 14, `level ${dips.alpha}`);
    W.text(svg, 4, 14, 'spaces');
    W.text(svg, width / 2, base + 32, 'p-value, adjusted (Holm)', {'text-anchor': 'middle'});
    W.touchable(svg, W.chooseSpace);
    W.walkable(svg, W.chooseSpace);
  }
  W.tables.dips = () => ({
    columns: ['space', 'statistic', 'p', 'adjusted p', 'passes', 'note'],
    rows: spaces.map((name, i) => [name, dips.statistic[i], dips.pvalue[i], dips.adjusted[i], dips.passed[i], dips.notes[i]]),
  });
})();
