// The ranking: sorting, filtering, folding equal clusterings, choosing columns and a run.
(function () {
  const table = W.byId('ranking-table'), body = table.tBodies[0], scroll = W.byId('ranking-scroll');
  const columns = W.data.table.columns, runs = W.data.table.rows, classes = W.data.table.classes;
  const rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const rowOf = new Map(runs.map((run, i) => [run, rows[i]])), placeOf = new Map(rows.map((row, i) => [row, i]));
  let sorted = {column: -1, down: false};

  const comparable = (value, kind) => {
    if (value === null || value === undefined || value === '') return null;
    if (kind === 'interval') return value[0] + value[1] / 1e6;
    return typeof value === 'string' ? value.toLowerCase() : value;
  };
  const byName = new Intl.Collator(undefined, {numeric: true, sensitivity: 'base'}).compare;

  function sort(at, down) {
    const column = columns[at];
    sorted = {column: at, down};
    const keys = column.values.map((v) => comparable(v, column.kind));
    const order = rows.map((_, i) => i).sort((a, b) => {
      const [x, y] = [keys[a], keys[b]];
      if (x === null || y === null) return (x === null) - (y === null) || a - b;  // none comes last
      const way = typeof x === 'number' && typeof y === 'number' ? x - y : byName(String(x), String(y));
      return (down ? -way : way) || a - b;
    });
    body.append(...order.map((i) => rows[i]));
    heads.forEach((head, i) => {
      if (i === at) head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    show();
    W.say(`Sorted by ${column.label}, ${down ? 'largest' : 'smallest'} first.`);
    W.emit('view');
  }

  // What the filter knows: names of columns, the longest first.
  const space = {key: 'space', label: 'space', kind: 'text', values: runs.map((run) => W.data.spaces[W.spaceOf(run)] ?? '')};
  const OTHER = {name: ['name', 'partition', 'clustering'], k: ['clusters'], best: ['first_in', 'first in']};
  const known = [];
  for (const c of columns.some((c) => c.label.toLowerCase() === 'space') ? columns : [...columns, space]) {
    for (const name of [c.label, c.key, c.key.replace(/^\w+:/, ''), ...(OTHER[c.key] || [])]) known.push([name.toLowerCase(), c]);
  }
  known.sort((a, b) => b[0].length - a[0].length);
  const texts = [];  // of the rows, read when they are first asked for
  const textOf = (i) => (texts[i] ??= [...rows[i].cells].map((c) => (c.querySelector('bdi') ?? c).textContent).join(' ').toLowerCase());
  // Rows that are the same clustering are one row, until it is opened.
  const sizes = new Map(), open = new Set();
  let fits = rows.map(() => true);
  const classOf = (i) => (classes ? classes[i] : i);
  runs.forEach((_, i) => sizes.set(classOf(i), (sizes.get(classOf(i)) || 0) + 1));
  const folded = sizes.size < rows.length;
  // Of a long table the first rows, and the chosen one, until all are asked for.
  const MOST = 100, rest = W.byId('rows-left'), more = rest.firstElementChild;
  let most = MOST;
  function show() {
    const met = new Map(), count = new Map(), chosen = rowOf.get(W.state.run);
    let shown = 0;
    rows.forEach((_, i) => { if (fits[i]) count.set(classOf(i), (count.get(classOf(i)) || 0) + 1); });
    for (const row of body.rows) {
      const i = placeOf.get(row), own = classOf(i), first = fits[i] && !met.has(own);
      if (first) met.set(own, i);
      const wanted = fits[i] && (first || open.has(own));
      if (wanted) shown++;
      const hide = !wanted || (shown > most && row !== chosen);
      if (row.hidden !== hide) row.hidden = hide;
      if (hide) continue;
      dress(row, i);
      if (!folded) continue;
      const button = row.querySelector('.fold');
      if (!button) continue;
      button.hidden = !(first && count.get(own) > 1);
      button.textContent = `${count.get(own)} runs, the same clustering`;
      button.setAttribute('aria-expanded', String(open.has(own)));
    }
    table.classList.add('ready');
    rest.hidden = shown <= most;
    more.textContent = `Show the other ${shown - most} rows`;
    rove();
  }
  more.addEventListener('click', () => { most = Infinity; show(); });
  addEventListener('beforeprint', () => { most = Infinity; show(); });
  function filter() {
    const text = W.byId('filter').value, {wrong, any} = W.understand(text, known, textOf);
    fits = rows.map((_, i) => any.some((all) => all.every((test) => test(i))));
    const shown = fits.filter(Boolean).length;
    const all = folded ? `${rows.length} runs, ${sizes.size} different clusterings` : `${rows.length} in all`;
    W.byId('filter-count').textContent = text.trim() ? `${shown} of ${rows.length} shown` : all;
    W.byId('filter-wrong').textContent = wrong.length ? `Not understood and left out: ${[...new Set(wrong)].join('; ')}.` : '';
    show();
    W.emit('view');
  }

  const buttonOf = (row) => row.querySelector('th.name button');
  let stop = null, marked = null;
  function rove() {
    const chosen = rowOf.get(W.state.run);
    const next = chosen && !chosen.hidden ? chosen : [...body.rows].find((row) => !row.hidden);
    if (next === stop) return;
    if (stop) buttonOf(stop).setAttribute('tabindex', '-1');
    stop = next ?? null;
    if (stop) { dress(stop, placeOf.get(stop)); buttonOf(stop).setAttribute('tabindex', '0'); }
  }
  function mark() {
    const chosen = rowOf.get(W.state.run);
    if (chosen && chosen.hidden) show();
    if (marked) { marked.removeAttribute('aria-current'); buttonOf(marked).setAttribute('aria-pressed', 'false'); }
    marked = chosen ?? null;
    if (marked) { dress(marked, placeOf.get(marked)); marked.setAttribute('aria-current', 'true'); buttonOf(marked).setAttribute('aria-pressed', 'true'); }
    rove();
  }

  heads.forEach((head, i) => {
    const button = W.make('button', {type: 'button'}, head.textContent);
    head.textContent = '';
    head.append(button);
    button.addEventListener('click', () => sort(i, sorted.column === i ? !sorted.down : columns[i].direction > 0));
  });
  // What a row gets when it is first seen: buttons, bars, intervals.
  const largest = Math.max(2, rows.length), dressed = new Set();
  function dress(row, i) {
    if (dressed.has(row)) return;
    dressed.add(row);
    const name = row.querySelector('th.name'), text = name.textContent;
    const button = W.make('button', {type: 'button', title: text, tabindex: '-1', 'aria-pressed': 'false'}, W.make('bdi', {}, text));
    name.replaceChildren(button);
    if (sizes.get(classOf(i)) > 1) {
      const fold = W.make('button', {type: 'button', class: 'fold', tabindex: '-1', hidden: true});
      fold.addEventListener('click', (event) => {
        event.stopPropagation();
        if (!open.delete(classOf(i))) open.add(classOf(i));
        show();
      });
      fold.removeAttribute('tabindex');
      name.append(fold);
    }
    columns.forEach((c, j) => {
      const value = c.values[i], cell = row.cells[j];
      if (c.key.startsWith('rank:') && value === 1) cell.classList.add('first');
      if (c.kind === 'share' && value > 0) {
        cell.prepend(W.make('span', {class: 'bar', style: `width:${(value * 6).toFixed(2)}em`, 'aria-hidden': 'true'}));
      }
      if (c.kind === 'interval' && value) {
        const x = W.scale(1, largest, 4, 76);
        const svg = W.make('svg', {width: 80, height: 10, 'aria-hidden': 'true'});
        svg.append(W.make('line', {x1: 2, x2: 78, y1: 5, y2: 5, class: 'grid'}));
        svg.append(W.make('line', {x1: x(value[0]) - 2, x2: x(value[1]) + 2, y1: 5, y2: 5, stroke: 'var(--accent)', 'stroke-width': 4, 'stroke-linecap': 'round'}));
        cell.replaceChildren(W.make('span', {}, cell.textContent), svg);
      }
    });
  }
  body.addEventListener('click', (event) => { const row = event.target.closest('tr'); if (row) W.chooseRun(runs[placeOf.get(row)]); });
  body.addEventListener('keydown', (event) => {
    if (event.target.classList.contains('fold')) return;
    const visible = [...body.rows].filter((row) => !row.hidden);
    const at = visible.indexOf(event.target.closest('tr'));
    const next = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: visible.length - 1}[event.key];
    if (next === undefined || !visible[next]) return;
    event.preventDefault();
    W.chooseRun(runs[placeOf.get(visible[next])]);
    buttonOf(visible[next]).focus();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    W.choose('object', null);
    W.choose('cluster', null);
    W.chooseRun(W.data.best);
  });
  W.byId('filter').addEventListener('input', filter);
  W.on('run', () => {
    mark();
    const row = rowOf.get(W.state.run);
    if (!row) return;
    if (!row.contains(document.activeElement)) {
      const top = row.offsetTop - table.tHead.offsetHeight, low = row.offsetTop + row.offsetHeight;
      if (top < scroll.scrollTop) scroll.scrollTop = top;
      else if (low > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = low - scroll.clientHeight;
    }
  });

  // Columns: as many as fit, in their order, until the reader chooses; the others are named.
  const ALWAYS = ['rank', 'name', 'score', 'best'], sheet = W.make('style');
  const menu = W.byId('columns-list'), boxes = [];
  let wished = null, widths = null;
  document.head.append(sheet);
  columns.forEach((c, j) => {
    const box = W.make('input', {type: 'checkbox', id: `column-${j}`});
    box.disabled = c.key === 'name';
    box.addEventListener('change', () => { wished = boxes.map((b) => b.checked); arrange(); });
    boxes.push(box);
    menu.append(W.make('label', {for: `column-${j}`}, box, W.make('span', {}, c.label)));
  });
  function arrange() {
    if (!widths) {
      sheet.textContent = '#ranking-table { width: auto; }';  // what the columns need, not what is there
      widths = heads.map((head) => head.offsetWidth);
      if (!widths[0]) { widths = null; return; }
    }
    let shown = wished;
    if (!shown) {
      let room = scroll.clientWidth - 2;
      columns.forEach((c, j) => { if (ALWAYS.includes(c.key)) room -= widths[j]; });
      let full = false;
      shown = columns.map((c, j) => {
        if (ALWAYS.includes(c.key)) return true;
        full = full || widths[j] > room;
        if (!full) room -= widths[j];
        return !full;
      });
    }
    const gone = shown.map((on, j) => (on ? null : `#ranking-table tr > :nth-child(${j + 1})`)).filter(Boolean);
    sheet.textContent = gone.length ? `@media screen { ${gone.join(', ')} { display: none; } }` : '';
    boxes.forEach((box, j) => { box.checked = shown[j]; });
    const left = columns.filter((_, j) => !shown[j]).map((c) => c.label);
    W.byId('columns-left').textContent = left.length ? `Columns not shown: ${left.join(', ')}.` : '';
  }
  let wide = innerWidth;
  new ResizeObserver(() => { if (innerWidth !== wide) { widths = null; wide = innerWidth; } arrange(); }).observe(scroll);

  document.querySelector('#ranking .controls').hidden = false;
  W.byId('columns').hidden = false;
  mark();
  filter();
  W.view = {
    get: () => ({sort: sorted.column < 0 ? '' : `${sorted.down ? '-' : ''}${columns[sorted.column].key}`, filter: W.byId('filter').value}),
    set: ({sort: by, filter: words}) => {
      const key = (by || '').replace(/^-/, ''), at = columns.findIndex((c) => c.key === key);
      if (at >= 0) sort(at, by.startsWith('-'));
      if (words !== undefined && words !== W.byId('filter').value) { W.byId('filter').value = words; filter(); }
    },
  };

  W.tables.ranking = () => ({
    columns: columns.map((c) => c.label),
    rows: [...body.rows].map((row) => placeOf.get(row)).filter((i) => fits[i])
      .map((i) => columns.map((c) => (c.kind === 'interval' && c.values[i] ? W.show(c.values[i], 'interval') : c.values[i]))),
  });
})();
