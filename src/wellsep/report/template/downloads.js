// Tables behind the charts, and everything as CSV or JSON.
(function () {
  function everything() {
    const found = {title: W.data.title, wellsep: W.data.version, explanation: W.data.explanation};
    for (const [name, build] of Object.entries(W.tables)) found[name] = W.records(build());
    return found;
  }
  function save(name, text, type) {
    const link = W.make('a', {href: URL.createObjectURL(new Blob([text], {type})), download: name});
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  // A picture as a file: an svg with its colours written into it; a canvas is drawn again by a pen that writes.
  const PAINT = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity', 'font-family', 'font-size', 'font-weight', 'text-anchor'];
  function whole(svg, title) {
    const copy = svg.cloneNode(true), from = [svg, ...svg.querySelectorAll('*')], to = [copy, ...copy.querySelectorAll('*')];
    if (svg.isConnected) from.forEach((node, i) => {
      const style = getComputedStyle(node);
      for (const name of PAINT) to[i].setAttribute(name, style.getPropertyValue(name));
      to[i].removeAttribute('class');
      for (const name of ['data-tip', 'data-do', 'tabindex']) to[i].removeAttribute(name);
    });
    copy.prepend(W.make('title', {}, title), W.make('rect', {width: '100%', height: '100%', fill: W.surface('panel')}));
    copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
    return new XMLSerializer().serializeToString(copy);
  }
  W.saveCanvas = function (name, draw) {
    const pen = W.recorder = new W.Recorder();
    try { draw(); } finally { W.recorder = null; }
    save(`wellsep-${name}.svg`, whole(pen.svg(), name), 'image/svg+xml');
    draw();
  };
  // One menu: what to save, and as what.
  const menu = W.byId('downloads'), pick = W.byId('save-what'), buttons = Object.fromEntries([...menu.querySelectorAll('[data-as]')].map((b) => [b.dataset.as, b]));
  const TITLES = {ranking: W.byId('ranking-title').textContent, points: 'Coordinates of the objects', picked: 'Objects inside the loop', contingency: 'Contingency table', clusters: 'Clusters of the chosen run', worst: 'Objects to check', spaces: 'Embeddings and what became of them', truth: 'Agreement with the truth'};
  const charts = new Map([...document.querySelectorAll('figure[data-save]')].map((f) => [f.dataset.save, f]));
  const drawnAs = (what) => (charts.has(what) ? charts.get(what).id : what);
  const titleOf = (what) => charts.get(what)?.querySelector('.caption').textContent ?? TITLES[what] ?? what;
  for (const what of Object.keys(W.tables)) pick.append(W.make('option', {value: what}, titleOf(what)));
  for (const id of Object.keys(W.redraw)) if (id.startsWith('scatter')) pick.append(W.make('option', {value: id}, id === 'scatter-one' ? 'Scatter plot, left' : 'Scatter plot, right'));
  const canDraw = (id) => W.redraw[id] || (W.chart(id) && W.chart(id).querySelector('svg'));
  function offer() {
    buttons.csv.disabled = buttons.json.disabled = !W.tables[pick.value];
    buttons.svg.disabled = !canDraw(drawnAs(pick.value));
  }
  W.save = function (what, as) {
    const id = drawnAs(what);
    if (what === 'everything') save('wellsep.json', JSON.stringify(everything(), null, 1), 'application/json');
    else if (as === 'csv') save(`wellsep-${what}.csv`, W.csv(W.tables[what]()), 'text/csv');
    else if (as === 'json') save(`wellsep-${what}.json`, JSON.stringify(W.records(W.tables[what]()), null, 1), 'application/json');
    else if (W.redraw[id]) W.saveCanvas(id, W.redraw[id]);
    else save(`wellsep-${id}.svg`, whole(W.chart(id).querySelector('svg'), titleOf(what)), 'image/svg+xml');
  };
  W.saveText = save;
  pick.addEventListener('change', offer);
  menu.addEventListener('toggle', offer);
  for (const [as, button] of Object.entries(buttons)) button.addEventListener('click', () => W.save(as === 'everything' ? as : pick.value, as));
  menu.hidden = false;

  // Tables are built when they are opened; the largest ones show their beginning.
  const most = 20000;
  document.querySelectorAll('[data-table]').forEach((holder) => {
    const build = W.tables[holder.dataset.table], fold = holder.closest('details');
    fold.hidden = !build;
    fold.addEventListener('toggle', () => {
      if (!fold.open || holder.firstChild) return;
      const {columns, rows} = build();
      const shown = rows.slice(0, Math.max(1, Math.floor(most / columns.length)));
      const table = W.make('table', {}, W.make('thead', {}, W.make('tr', {}, ...columns.map((c) => W.make('th', {scope: 'col'}, c)))));
      const body = W.make('tbody');
      for (const row of shown) {
        body.append(W.make('tr', {}, ...row.map((value, i) => (i === 0
          ? W.make('th', {scope: 'row'}, W.show(value)) : W.make('td', {class: typeof value === 'number' ? 'number' : null}, W.show(value))))));
      }
      table.append(body);
      holder.append(table);
      if (shown.length < rows.length) holder.append(W.make('p', {class: 'note'}, `${shown.length} of ${rows.length} rows; the CSV has all.`));
    });
  });
})();
