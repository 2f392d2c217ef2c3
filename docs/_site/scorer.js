// How the search orders its results: pages whose title has the words of the query first, and among equals those that
// show how to do something. Endings are ignored: "prediction" finds "Predict with intervals". The numbers are Sphinx's.
var Scorer = {
  score: ([page, title, anchor, description, score]) => {
    const words = (new URLSearchParams(location.search).get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
    const found = words.filter((word) => title.toLowerCase().includes(word.slice(0, Math.max(4, word.length - 3))));
    return score + (20 * found.length) / Math.max(words.length, 1) + (/^(start|learn|howto)\//.test(page) ? 5 : 0);
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
