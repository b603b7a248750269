// Tables behind the charts, and everything as CSV or JSON.
(function () {
  // A cell that a spreadsheet would run as a formula is made text again.
  const guard = (text) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
  function cell(value) {
    if (value === null || value === undefined || Number.isNaN(value)) return '';
    if (typeof value === 'number' || typeof value === 'boolean') return String(value);
    const text = guard(String(value));
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }
  const csv = ({columns, rows}) => [columns, ...rows].map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n';
  const records = ({columns, rows}) => rows.map((row) => Object.fromEntries(columns.map((c, i) => [c, row[i] ?? null])));
  function everything() {
    const found = {title: W.data.title, wellsep: W.data.version, explanation: W.data.explanation};
    for (const [name, build] of Object.entries(W.tables)) found[name] = records(build());
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
  function saveFigure(id, title) {
    const drawn = W.chart(id).querySelector('svg');
    if (W.redraw[id]) W.saveCanvas(id, W.redraw[id]);
    else if (drawn) save(`wellsep-${id}.svg`, whole(drawn, title), 'image/svg+xml');
  }
  document.querySelectorAll('[data-save]').forEach((button) => {
    const {save: what, as} = button.dataset;
    const title = button.closest('figure, .heading, .controls')?.querySelector('.caption, h2, h3')?.textContent || what;
    button.setAttribute('aria-label', what === 'everything' ? button.textContent : `${as.toUpperCase()}: ${title}`);
    if (as !== 'svg') button.closest('.downloads').hidden = !(what === 'everything' || W.tables[what]);
    button.addEventListener('click', () => {
      if (what === 'everything') save('wellsep.json', JSON.stringify(everything(), null, 1), 'application/json');
      else if (as === 'svg') saveFigure(what, title);
      else if (as === 'csv') save(`wellsep-${what}.csv`, csv(W.tables[what]()), 'text/csv');
      else save(`wellsep-${what}.json`, JSON.stringify(records(W.tables[what]()), null, 1), 'application/json');
    });
  });

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
