// What is seen, in the address: a link to it can be copied. And copying.
(function () {
  const SPLIT = /[#&]/;
  W.copy = async function (text, button) {
    const said = button.textContent;
    try { await navigator.clipboard.writeText(text); } catch {
      const box = W.make('textarea', {class: 'unseen'}, text);
      document.body.append(box);
      box.select();
      document.execCommand('copy');
      box.remove();
    }
    button.textContent = 'Copied';
    W.say('Copied.');
    setTimeout(() => { button.textContent = said; }, 1600);
  };
  document.querySelectorAll('[data-copy]').forEach((button) => {
    button.hidden = false;
    button.addEventListener('click', () => W.copy(W.byId(button.dataset.copy).textContent, button));
  });
  const link = W.byId('link');
  link.hidden = false;
  link.addEventListener('click', () => W.copy(location.href, link));

  let reading = false;
  function write() {
    if (reading) return;
    const {run, colour, other} = W.state, parts = {...(W.view ? W.view.get() : {})};
    if (run !== W.data.best) parts.run = W.data.partitions[run];
    if (colour) parts.colour = colour.startsWith('run:') ? `run:${W.data.partitions[Number(colour.slice(4))]}` : colour;
    if (other !== null && other !== undefined && other !== W.firstOther) parts.with = W.data.partitions[other];
    if (W.answers && W.answers.text()) parts.answers = W.answers.text();
    const said = Object.entries(parts).filter(([, v]) => v).map(([k, v]) => `${k}=${encodeURIComponent(v)}`).join('&');
    if (said || location.hash.includes('=')) history.replaceState(null, '', said ? `#${said}` : location.pathname + location.search);
  }
  function read() {
    if (!location.hash.includes('=')) return;
    const parts = {};
    for (const piece of location.hash.split(SPLIT)) {
      const at = piece.indexOf('=');
      if (at < 0) continue;
      try { parts[piece.slice(0, at)] = decodeURIComponent(piece.slice(at + 1)); } catch { /* no text */ }
    }
    reading = true;
    if (W.view) W.view.set(parts);
    const find = (name) => W.data.partitions.indexOf(name);
    if (parts.answers && W.answers) W.answers.read(parts.answers);
    for (const [id, keys] of [['clusterings', ['run', 'sort', 'filter']], ['map', ['colour', 'with']]]) if (W.byId(id) && keys.some((key) => parts[key])) W.byId(id).open = true;
    if (find(parts.run) >= 0) W.chooseRun(find(parts.run));
    if (find(parts.with) >= 0) W.choose('other', find(parts.with));
    if (parts.colour) {
      const named = parts.colour.startsWith('run:') ? `run:${find(parts.colour.slice(4))}` : parts.colour;
      const box = W.byId('colour-by');
      if (box && [...box.options].some((o) => o.value === named)) { box.value = named; W.choose('colour', named); }
    }
    reading = false;
  }
  for (const what of ['run', 'view', 'colour', 'other', 'answers']) W.on(what, write);
  // A link to something inside a folded part opens it.
  function open() {
    const id = location.hash.slice(1), node = id && !id.includes('=') && W.byId(id);
    if (!node) return;
    for (let at = node; at; at = at.parentElement) if (at.tagName === 'DETAILS') at.open = true;
    node.scrollIntoView();
  }
  addEventListener('hashchange', () => { open(); read(); });
  document.querySelectorAll('a[href^="#"]').forEach((link) => link.addEventListener('click', () => { const part = W.byId(link.hash.slice(1)); if (part) for (let at = part; at; at = at.parentElement) if (at.tagName === 'DETAILS') at.open = true; }));
  open();
  read();
})();
