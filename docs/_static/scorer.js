// How the search orders pages: guides and tutorials before the API, the API before project pages.
const PLACES = [
  [/^(guides|tutorials)\//, 40],
  [/^(get-started|installation|faq|coming-from)$/, 30],
  [/^auto_examples\//, 10],
  [/^reference\//, 0],
];

// Not const: searchtools.js declares it by var where it is missing.
var Scorer = {
  // Sphinx passes [page, title, anchor, description, score, file].
  score: ([page, title, anchor, , score]) => {
    const place = PLACES.find(([pattern]) => pattern.test(page));
    const words = (document.querySelector("input[name=q]") || {}).value || "";
    const asked = words.toLowerCase().split(/\s+/).filter(Boolean);
    const named = asked.filter((word) => title.toLowerCase().includes(word)).length;
    const inTitle = asked.length ? (30 * named) / asked.length : 0;
    return score + (place ? place[1] : -20) + inTitle - (anchor ? 15 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
