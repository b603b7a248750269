// The filter: words, "quoted words", -word, OR, and comparisons such as K >= 5 or space="PCA 20".
(function () {
  const compare = {
    '<': (a, b) => a < b, '<=': (a, b) => a <= b, '>': (a, b) => a > b, '>=': (a, b) => a >= b, '=': (a, b) => a === b, '!=': (a, b) => a !== b,
  };
  const unquoted = (text) => text.replace(/^"|"$/g, '');
  function comparison(column, sign, given, wrong) {
    const way = {'==': '=', ':': '=', '<>': '!='}[sign] || sign, word = unquoted(given).toLowerCase();
    const text = column.kind === 'text' || (column.kind === 'name' && !(column.values[0] ?? '').startsWith('K = '));
    if (text && (way === '=' || way === '!=')) return (i) => String(column.values[i] ?? '').toLowerCase().includes(word) === (way === '=');
    const parts = word.match(/^(-?[\d.]+(?:e[+-]?\d+)?)(%?)$/);
    if (text || !parts || !Number.isFinite(Number(parts[1]))) {
      wrong.push(text ? `${column.label} holds words, which ${way} does not compare` : `"${word}" is no number`);
      return null;
    }
    const limit = Number(parts[1]) / (parts[2] ? 100 : 1);
    return (i) => {
      const cell = column.values[i];
      const value = column.kind === 'interval' && cell ? cell[0] : column.kind === 'name' ? Number(String(cell).replace(/^K = /, '')) : cell;
      return typeof value === 'number' && compare[way](value, limit);
    };
  }
  const SIGN = /^\s*(<=|>=|!=|<>|==|=|<|>|:)\s*("[^"]*"?|[^\s"]+)/;
  // `known` are pairs of a lower-case name and its column; `textOf` gives the words of a row.
  W.understand = function (text, known, textOf) {
    const wrong = [], any = [[]];
    let at = 0;
    while (at < text.length) {
      const rest = text.slice(at), blank = rest.match(/^[\s]+/);
      if (blank) { at += blank[0].length; continue; }
      const or = rest.match(/^(OR|\|\|?)(?=\s|$)/);
      if (or) { any.push([]); at += or[0].length; continue; }
      const not = /^-[^\s\d.]/.test(rest), from = rest.slice(not ? 1 : 0), low = from.toLowerCase();
      let used = 0, test = null;
      for (const [name, column] of known) {
        const quoted = low.startsWith(`"${name}"`), long = name.length + (quoted ? 2 : 0);
        const sign = (quoted || low.startsWith(name)) && from.slice(long).match(SIGN);
        if (!sign) continue;
        used = long + sign[0].length;
        test = comparison(column, sign[1], sign[2], wrong);
        break;
      }
      if (!used) {
        const word = from.match(/^"[^"]*"?|^[^\s"]+/)[0], odd = !word.startsWith('"') && from.match(/^([^\s"<>=!]+)\s*(<=|>=|!=|==|=|<|>)\s*([^\s"]*)/);
        if (odd) {
          wrong.push(`there is no column ${odd[1]}`);
          used = odd[0].length;
        } else {
          const wanted = unquoted(word).toLowerCase();
          used = word.length;
          test = (i) => textOf(i).includes(wanted);
        }
      }
      if (test) any[any.length - 1].push(not ? (i) => !test(i) : test);
      at += used + (not ? 1 : 0);
    }
    return {wrong, any: any.filter((all, i) => all.length || i === 0)};
  };
})();
