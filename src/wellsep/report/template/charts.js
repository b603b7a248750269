// Scales, axes and marks that several figures share.
W.scale = function (low, high, from, to) {
  const span = high - low || 1;
  return (value) => from + ((value - low) / span) * (to - from);
};

W.range = function (values) {
  let low = Infinity, high = -Infinity;
  for (const v of values) {
    if (v === null || !Number.isFinite(v)) continue;
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return low > high ? [0, 1] : low === high ? [low - 0.5, high + 0.5] : [low, high];
};

W.ticks = function (low, high, about = 5) {
  const raw = (high - low) / about || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let t = Math.ceil(low / step - 1e-9); t * step <= high + step * 1e-9; t++) found.push(Number((t * step).toPrecision(10)));
  return found;
};

W.svg = function (holder, width, height, label) {
  holder.textContent = '';
  const svg = W.make('svg', {viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': label});
  holder.append(svg);
  return svg;
};

W.text = (svg, x, y, words, attributes = {}) => svg.append(W.make('text', {x, y, ...attributes}, words));

W.axisBelow = function (svg, scale, ticks, y, height, show = W.show) {
  for (const t of ticks) {
    svg.append(W.make('line', {x1: scale(t), x2: scale(t), y1: y - height, y2: y, class: 'grid'}));
    W.text(svg, scale(t), y + 15, show(t), {'text-anchor': 'middle'});
  }
  svg.append(W.make('line', {x1: scale(ticks[0] ?? 0), x2: scale(ticks[ticks.length - 1] ?? 0), y1: y, y2: y, class: 'axis'}));
};

W.cut = (words, most) => (words.length > most ? `${words.slice(0, most - 1)}…` : words);

// A mark by its number: circle, square, triangle, diamond, cross.
W.trace = function (pen, mark, x, y, r) {
  if (mark === 0) { pen.moveTo(x + r, y); pen.arc(x, y, r, 0, 2 * Math.PI); }
  else if (mark === 1) pen.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
  else if (mark === 2) { pen.moveTo(x, y - r * 1.2); pen.lineTo(x + r * 1.1, y + r * 0.8); pen.lineTo(x - r * 1.1, y + r * 0.8); pen.closePath(); }
  else if (mark === 3) { pen.moveTo(x, y - r * 1.3); pen.lineTo(x + r * 1.3, y); pen.lineTo(x, y + r * 1.3); pen.lineTo(x - r * 1.3, y); pen.closePath(); }
  else { pen.rect(x - r * 1.2, y - r * 0.4, r * 2.4, r * 0.8); pen.rect(x - r * 0.4, y - r * 1.2, r * 0.8, r * 2.4); }
};

W.swatch = function (code) {
  const svg = W.make('svg', {width: 12, height: 12, viewBox: '-6 -6 12 12', 'aria-hidden': 'true'});
  const mark = W.mark(code), fill = W.paint(code);
  if (mark === 0) svg.append(W.make('circle', {r: 5, fill}));
  else if (mark === 1) svg.append(W.make('rect', {x: -4.5, y: -4.5, width: 9, height: 9, fill}));
  else if (mark === 2) svg.append(W.make('polygon', {points: '0,-5.5 5.2,4 -5.2,4', fill}));
  else if (mark === 3) svg.append(W.make('polygon', {points: '0,-6 6,0 0,6 -6,0', fill}));
  else svg.append(W.make('path', {d: 'M-5.5 -2h3.5v-3.5h4v3.5h3.5v4h-3.5v3.5h-4v-3.5h-3.5z', fill}));
  return svg;
};

// Colours of correlations between −1 and 1; asked for once per drawing, the theme is looked up once.
W.ramp = function () {
  const stops = W.data.palette.diverging[W.theme()].map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
  const at = (r) => {
    const end = r < 0 ? stops[0] : stops[2], share = Math.min(Math.abs(r), 1);
    return stops[1].map((m, i) => Math.round(m + (end[i] - m) * share));
  };
  const steps = Array.from({length: 513}, (_, s) => at(s / 256 - 1)), names = steps.map((rgb) => `rgb(${rgb.join(',')})`);
  const step = (r) => Math.round((Math.max(-1, Math.min(1, r)) + 1) * 256);
  const named = (r) => names[step(r)];
  named.rgb = (r) => steps[step(r)];
  return named;
};

// Hovering and choosing inside an svg: elements carry data-tip and data-do.
W.touchable = function (svg, act) {
  svg.addEventListener('pointermove', (event) => {
    const tip = event.target.dataset && event.target.dataset.tip;
    W.tip(tip || '', event.clientX, event.clientY);
  });
  svg.addEventListener('pointerleave', () => W.tip(''));
  if (act) svg.addEventListener('click', (event) => {
    const what = event.target.dataset && event.target.dataset.do;
    if (what !== undefined) act(Number(what));
  });
};

// Arrow keys walk over the elements of an svg that can be chosen; Enter chooses.
W.walkable = function (svg, act) {
  const stops = () => [...svg.querySelectorAll('[data-do]')];
  let at = -1;
  svg.setAttribute('tabindex', '0');
  const mark = () => {
    const all = stops();
    all.forEach((node, i) => node.classList.toggle('chosen', i === at));
    if (all[at]) W.say(all[at].dataset.tip || '');
  };
  svg.addEventListener('keydown', (event) => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    const all = stops();
    if (step && all.length) {
      event.preventDefault();
      at = (at + step + all.length) % all.length;
      mark();
    } else if ((event.key === 'Enter' || event.key === ' ') && all[at]) {
      event.preventDefault();
      act(Number(all[at].dataset.do));
    }
  });
};
