// The clusters of the chosen run: what is in them where it is stored, else their sizes.
(function () {
  const data = W.data.clusters;
  if (!data) return;
  const order = W.data.table.rows, classes = W.data.table.classes;
  const classOf = new Map(order.map((run, i) => [run, classes ? classes[i] : run]));
  const byClass = (names) => new Map(names.map((name) => [classOf.get(W.data.partitions.indexOf(name)), name]));
  const described = byClass(Object.keys(data.described)), sized = byClass(Object.keys(data.sizes));
  const holder = W.byId('clusters-shown').querySelector('.scroll');

  // {name, columns: {heading: values}, notes} of what is known of the run.
  function found(run) {
    if (W.data.whole) return {name: W.data.whole, columns: data.described[W.data.whole].table, notes: []};
    const own = classOf.get(run), name = W.data.partitions[run];
    const known = described.get(own), other = known ?? sized.get(own);
    const same = other !== undefined && other !== name ? [`The same clustering as ${other}, and its clusters are called as there.`] : [];
    if (known !== undefined) return {name, columns: data.described[known].table, notes: [...same, ...data.described[known].notes]};
    if (other === undefined) return {name, columns: null, notes: ['Its clusters are not stored: the page was made without the runs.']};
    const [clusters, sizes] = data.sizes[other], n = W.data.n_objects;
    return {
      name, columns: {cluster: clusters, objects: sizes, share: sizes.map((s) => `${((100 * s) / n).toFixed(1)}%`)},
      notes: [...same, 'Only the sizes of its clusters are stored.'],
    };
  }
  let now = W.data.best;
  function show() {
    if (W.state.run === now || W.data.whole) return;
    now = W.state.run;
    const {name, columns, notes} = found(now);
    W.byId('clusters-of').textContent = W.plain(name);
    W.byId('clusters-said').textContent = W.plain(notes.join(' '));
    holder.parentNode.hidden = !columns;
    if (!columns) return;
    const names = Object.keys(columns), number = (value) => (typeof value === 'number' ? 'number' : null);
    const head = W.make('tr', {}, ...names.map((c) => W.make('th', {scope: 'col', class: number(columns[c][0])}, c)));
    const body = W.make('tbody', {}, ...columns.cluster.map((_, i) => W.make('tr', {}, ...names.map((c) => W.make('td', {class: number(columns[c][i]), 'data-of': c}, W.show(columns[c][i]))))));
    holder.replaceChildren(W.make('table', {class: 'plain'}, W.make('caption', {class: 'unseen'}, `Clusters of ${name}`), W.make('thead', {}, head), body));
  }
  W.on('run', show);
  W.tables.clusters = () => {
    const {columns} = found(W.state.run), names = Object.keys(columns ?? {});
    return {columns: names, rows: columns ? columns.cluster.map((_, i) => names.map((c) => columns[c][i])) : []};
  };
})();
