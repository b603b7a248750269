// The ranking: sorting, filtering, choosing a run.
(function () {
  const table = W.byId('ranking-table'), body = table.tBodies[0];
  const columns = W.data.table.columns, runs = W.data.table.rows;
  const rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const rowOf = new Map(runs.map((run, i) => [run, rows[i]]));
  let sorted = {column: -1, down: false};

  const comparable = (value, kind) => {
    if (value === null || value === undefined || value === '') return null;
    if (kind === 'interval') return value[0] + value[1] / 1e6;
    return typeof value === 'string' ? value.toLowerCase() : value;
  };
  const byName = new Intl.Collator(undefined, {numeric: true, sensitivity: 'base'}).compare;

  function sort(at) {
    const column = columns[at];
    const first = column.direction > 0;  // the best first
    sorted = {column: at, down: sorted.column === at ? !sorted.down : first};
    const keys = column.values.map((v) => comparable(v, column.kind));
    const order = rows.map((_, i) => i).sort((a, b) => {
      const [x, y] = [keys[a], keys[b]];
      if (x === null || y === null) return (x === null) - (y === null) || a - b;  // none comes last
      const way = typeof x === 'number' && typeof y === 'number' ? x - y : byName(String(x), String(y));
      return (sorted.down ? -way : way) || a - b;
    });
    order.forEach((i) => body.append(rows[i]));
    heads.forEach((head, i) => {
      if (i === at) head.setAttribute('aria-sort', sorted.down ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    W.say(`Sorted by ${column.label}, ${sorted.down ? 'largest' : 'smallest'} first.`);
  }

  function column(word) {
    const name = word.trim().toLowerCase();
    return columns.find((c) => [c.key, c.label, c.key.replace(/^\w+:/, '')].some((n) => n.toLowerCase() === name));
  }
  const compare = {
    '<': (a, b) => a < b, '<=': (a, b) => a <= b, '>': (a, b) => a > b, '>=': (a, b) => a >= b,
    '=': (a, b) => a === b, '!=': (a, b) => a !== b,
  };
  function test(word) {
    const parts = word.match(/^(.+?)(<=|>=|!=|<|>|=)(-?[\d.]+(?:e[+-]?\d+)?)(%?)$/i);
    const found = parts && column(parts[1]);
    if (found) {
      const limit = Number(parts[3]) / (parts[4] ? 100 : 1);
      return (i) => {
        const cell = found.values[i];
        const value = found.kind === 'interval' && cell ? cell[0] : found.kind === 'name' ? Number(String(cell).replace(/^K = /, '')) : cell;
        return typeof value === 'number' && compare[parts[2]](value, limit);
      };
    }
    const low = word.toLowerCase();
    return (i) => rows[i].textContent.toLowerCase().includes(low);
  }
  function filter() {
    const tests = W.byId('filter').value.trim().split(/\s+/).filter(Boolean).map(test);
    let shown = 0;
    rows.forEach((row, i) => {
      row.hidden = !tests.every((t) => t(i));
      shown += !row.hidden;
    });
    W.byId('filter-count').textContent = tests.length ? `${shown} of ${rows.length} shown` : `${rows.length} in all`;
    rove();
  }

  const buttonOf = (row) => row.querySelector('th.name button');
  function rove() {
    const visible = [...body.rows].filter((row) => !row.hidden);
    const chosen = rowOf.get(W.state.run);
    const stop = visible.includes(chosen) ? chosen : visible[0];
    rows.forEach((row) => buttonOf(row).setAttribute('tabindex', row === stop ? '0' : '-1'));
  }
  function mark() {
    rows.forEach((row, i) => {
      const here = runs[i] === W.state.run;
      if (here) row.setAttribute('aria-current', 'true'); else row.removeAttribute('aria-current');
      buttonOf(row).setAttribute('aria-pressed', String(here));
    });
    rove();
  }

  heads.forEach((head, i) => {
    const button = W.make('button', {type: 'button'}, head.textContent);
    head.textContent = '';
    head.append(button);
    button.addEventListener('click', () => sort(i));
  });
  const largest = Math.max(2, rows.length);
  rows.forEach((row, i) => {
    const name = row.querySelector('th.name');
    const button = W.make('button', {type: 'button', title: name.textContent}, name.textContent);
    name.textContent = '';
    name.append(button);
    row.addEventListener('click', () => W.chooseRun(runs[i]));
    columns.forEach((c, j) => {
      const value = c.values[i], cell = row.cells[j];
      if (c.kind === 'share' && value > 0) {
        cell.prepend(W.make('span', {class: 'bar', style: `width:${(value * 3.2).toFixed(2)}em`, 'aria-hidden': 'true'}));
      }
      if (c.kind === 'interval' && value) {
        const x = W.scale(1, largest, 4, 76);
        const svg = W.make('svg', {width: 80, height: 10, 'aria-hidden': 'true'});
        svg.append(W.make('line', {x1: 2, x2: 78, y1: 5, y2: 5, class: 'grid'}));
        svg.append(W.make('line', {x1: x(value[0]) - 2, x2: x(value[1]) + 2, y1: 5, y2: 5, stroke: 'var(--accent)', 'stroke-width': 4, 'stroke-linecap': 'round'}));
        cell.replaceChildren(W.make('span', {}, cell.textContent), svg);
      }
    });
  });
  body.addEventListener('keydown', (event) => {
    const visible = [...body.rows].filter((row) => !row.hidden);
    const at = visible.indexOf(event.target.closest('tr'));
    const next = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: visible.length - 1}[event.key];
    if (next === undefined || !visible[next]) return;
    event.preventDefault();
    W.chooseRun(runs[rows.indexOf(visible[next])]);
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
    const scroll = W.byId('ranking-scroll'), row = rowOf.get(W.state.run);
    if (!row.contains(document.activeElement)) {
      const top = row.offsetTop - table.tHead.offsetHeight, low = row.offsetTop + row.offsetHeight;
      if (top < scroll.scrollTop) scroll.scrollTop = top;
      else if (low > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = low - scroll.clientHeight;
    }
  });
  document.querySelector('#ranking .controls').hidden = false;
  mark();
  filter();

  W.tables.ranking = () => ({
    columns: columns.map((c) => c.label),
    rows: [...body.rows].filter((row) => !row.hidden).map((row) => {
      const i = rows.indexOf(row);
      return columns.map((c) => (c.kind === 'interval' && c.values[i] ? W.show(c.values[i], 'interval') : c.values[i]));
    }),
  });
})();
