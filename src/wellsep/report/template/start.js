// Light or dark, printing, and the word that the page is ready.
(function () {
  const root = document.documentElement, button = W.byId('theme');
  const name = () => { button.textContent = W.theme() === 'dark' ? 'Light' : 'Dark'; button.setAttribute('aria-label', `Switch to ${button.textContent.toLowerCase()} colours`); };
  try { const kept = localStorage.getItem('wellsep-theme'); if (kept === 'light' || kept === 'dark') root.dataset.theme = kept; } catch { /* files may have no storage */ }
  const changed = () => { name(); W.emit('theme'); };
  button.addEventListener('click', () => {
    root.dataset.theme = W.theme() === 'dark' ? 'light' : 'dark';
    try { localStorage.setItem('wellsep-theme', root.dataset.theme); } catch { /* as above */ }
    changed();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', changed);
  button.hidden = false;
  name();
  let folded = [];
  addEventListener('beforeprint', () => {
    W.printing = true;
    folded = [...document.querySelectorAll('details.part:not([open])')];
    for (const part of folded) part.open = true;
    W.emit('theme');
  });
  addEventListener('afterprint', () => { W.printing = false; for (const part of folded) part.open = false; W.emit('theme'); });
  root.classList.add('scripted');
  root.dataset.ready = 'true';
})();
