// The first screen: the map in the colours of the settled groups, answers to the questions, the export.
(function () {
  const data = W.data.answer;
  if (!data) return;
  const codes = W.codes(data.codes), questions = (data.questions || []).map((q) => ({
    ...q, objects: W.decode(q.objects), sides: q.sides.map((side) => ({...side, codes: W.codes(side.codes)})),
  }));
  const answers = new Map();  // question -> number of its side

  // Group of every object: agreed groups, and the side of each question that was chosen, else its first.
  function settled() {
    const names = Array.from(codes, (c) => (c < 0 ? '-1' : data.clusters[c]));
    for (const q of questions) {
      const side = q.sides[answers.get(q.id) ?? 0];
      q.objects.forEach((object, i) => { names[object] = side.codes[i] < 0 ? '-1' : side.groups[side.codes[i]]; });
    }
    return names;
  }
  // A group has the colour of the cluster of the best run that most of its objects are in.
  function colours(names) {
    const counts = new Map();
    names.forEach((name, i) => {
      if (codes[i] < 0) return;
      if (!counts.has(name)) counts.set(name, new Map());
      counts.get(name).set(codes[i], (counts.get(name).get(codes[i]) || 0) + 1);
    });
    return new Map([...counts].map(([name, own]) => [name, data.colours[[...own].sort((a, b) => b[1] - a[1])[0][0]]]));
  }
  const openCodes = () => new Set(questions.filter((q) => !answers.has(q.id)).flatMap((q) => q.clusters));

  const figure = W.byId('answer-map'), scatters = W.data.scatters;
  if (figure && scatters) {
    const canvas = figure.querySelector('canvas'), holder = figure.querySelector('.canvas'), {x, y, objects, view} = W.layout();
    let at = null, size = 0;
    const draw = (width) => {
      size = Math.min(width, 560);
      const pen = W.canvas(canvas, size, size), names = settled(), hues = colours(names), open = openCodes();
      const unit = (size - 12) / view.span;
      at = {px: (i) => size / 2 + (x[i] - view.x) * unit, py: (i) => size / 2 - (y[i] - view.y) * unit};
      const hue = (i) => (names[objects[i]] === '-1' ? -1 : hues.get(names[objects[i]]) ?? -1);
      W.dots(pen, size, x.length, at, hue, (i) => open.has(codes[objects[i]]));
      const groups = new Map();
      for (let i = 0; i < x.length; i++) if (names[objects[i]] !== '-1') (groups.get(names[objects[i]]) || groups.set(names[objects[i]], []).get(names[objects[i]])).push(i);
      if (groups.size <= 40) W.nameGroups(pen, at, groups, size);
      canvas.setAttribute('aria-label', `Map of ${x.length} objects in ${groups.size} groups`);
    };
    W.draw(holder, draw, 'answers', 'theme');
    W.redraw['answer-map'] = () => draw(Math.floor(holder.clientWidth));
    canvas.addEventListener('pointermove', (event) => {
      const box = canvas.getBoundingClientRect(), [a, b] = [event.clientX - box.left, event.clientY - box.top];
      let near = -1, least = 140;
      for (let i = 0; i < x.length; i++) { const d = (at.px(i) - a) ** 2 + (at.py(i) - b) ** 2; if (d < least) { least = d; near = i; } }
      const object = near < 0 ? null : objects[near];
      W.tip(near < 0 ? '' : `${W.objectName(object) ?? `object ${object}`}\n${settled()[object]}`, event.clientX, event.clientY, object);
    });
    canvas.addEventListener('pointerleave', () => W.tip(''));
  }

  function show() {
    document.querySelectorAll('.question').forEach((box) => {
      const chosen = answers.get(box.dataset.question);
      box.classList.toggle('done', chosen !== undefined);
      box.querySelectorAll('[data-side]').forEach((button) => button.setAttribute('aria-pressed', String(Number(button.dataset.side) === chosen)));
    });
    const said = W.byId('answered');
    if (said) said.textContent = `${answers.size} of ${questions.length} answered`;
    W.emit('answers');
  }
  document.querySelectorAll('.question [data-side]').forEach((button) => button.addEventListener('click', () => {
    const id = button.closest('.question').dataset.question, side = Number(button.dataset.side);
    if (answers.get(id) === side) answers.delete(id); else answers.set(id, side);
    show();
    W.say(`${questions.find((q) => q.id === id).sides[side].words}${answers.has(id) ? '' : ': taken back'}.`);
  }));
  W.answers = {
    text: () => [...answers].map(([id, side]) => `${questions.findIndex((q) => q.id === id)}.${side}`).join('-'),
    read: (text) => {
      answers.clear();
      for (const piece of text.split('-')) {
        const [q, side] = piece.split('.').map(Number);
        if (questions[q] && questions[q].sides[side]) answers.set(questions[q].id, side);
      }
      show();
    },
  };
  const support = data.support && W.decode(data.support), named = (i) => (data.ids ? data.ids[i] : i);
  const labels = () => {
    const names = settled();
    return {columns: [data.ids ? 'id' : 'object', 'group', ...(support ? ['support'] : [])], rows: names.map((name, i) => [named(i), name, ...(support ? [Number(support[i].toFixed(3))] : [])])};
  };
  if (questions.length) W.tables.labels = labels;
  const exportLabels = () => W.saveText('labels.csv', W.csv(labels()), 'text/csv');
  const exportAnswers = () => {
    const given = Object.fromEntries([...answers].map(([id, side]) => [id, questions.find((q) => q.id === id).sides[side].words]));
    W.saveText('answers.json', JSON.stringify({wellsep: 'answers', run: data.run, answers: given}, null, 1), 'application/json');
  };
  W.byId('export-labels')?.addEventListener('click', exportLabels);
  W.byId('export-answers')?.addEventListener('click', exportAnswers);
})();
