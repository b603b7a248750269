"""
Sentence embeddings: which model for my corpus?
===============================================

Many models turn sentences into vectors, and public benchmarks rank them on texts of other people.
Which one suits *my* sentences, when none of them has a label?

Here are messages to a shop, with typing errors. They are generated, so that the truth is known:
ten intents. Six models embed them: counts of words, TF-IDF, hashed words, pairs of words, character
n-grams, and the length of words as a model that cannot work. Each embedding is clustered with
several numbers of clusters. Vectors of a neural model go in the same way, as one more array.

We print the truth, our pick, what simple rules pick, and how near each pick is to the truth. For a
model that is the mean agreement of its clusterings.
"""

from __future__ import annotations

import importlib.util
import os

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.preprocessing import normalize

import wellsep as ws

SMALL = bool(os.environ.get("WELLSEP_SMALL_EXAMPLES"))  # a quick run, to see that it runs
N_TEXTS = 200 if SMALL else 800
NUMBERS = (5, 10) if SMALL else (4, 6, 8, 10, 12, 15, 20)
N_DIMENSIONS = 10 if SMALL else 20
SEED = 0
INTENTS = {
    "delivery": "parcel delivery courier arrive late shipping tracking delayed package waiting",
    "refund": "refund money back return repay amount bank reimbursed credited days",
    "invoice": "invoice bill receipt copy tax company address printed number billing",
    "password": "password login account reset locked email link forgotten access sign",
    "broken": "broken damaged cracked screen defective replacement scratched faulty box repair",
    "cancel": "cancel order mistake stop before withdrawn cancellation twice wrong button",
    "size": "size exchange larger smaller fit tight shoes trousers sleeve medium",
    "voucher": "voucher code discount coupon invalid expired promotion percent apply basket",
    "stock": "available stock again sold restock colour when shelf item reserve",
    "praise": "thanks great service friendly happy quick helpful team wonderful recommend",
}
ANYWHERE = "order item account money email card box shop today number"
FILLERS = "hello please could you i my the is was it for with and have not me can this your to a of"


# %%
# Messages
# --------
# A message has words of one intent, two words that occur with any intent, and words that everybody
# uses. Now and then it has a word of another intent. Every fifth word has a typing error.
def mistyped(word: str, rng: np.random.Generator) -> str:
    """The word with one letter left out, doubled, or exchanged with the next."""
    at = int(rng.integers(1, max(len(word) - 1, 2)))
    ways = (
        word[:at] + word[at + 1 :],
        word[:at] + word[at : at + 1] * 2 + word[at + 1 :],
        word[:at] + word[at + 1 : at + 2] + word[at : at + 1] + word[at + 2 :],
    )
    return ways[rng.integers(3)]


def message(intent: str, rng: np.random.Generator) -> str:
    """One message with this intent."""
    words = list(rng.choice(INTENTS[intent].split(), size=rng.integers(2, 5), replace=False))
    words += list(rng.choice(ANYWHERE.split(), size=2, replace=False))
    if rng.random() < 0.3:
        words.append(rng.choice(INTENTS[rng.choice(list(INTENTS))].split()))
    words += list(rng.choice(FILLERS.split(), size=rng.integers(4, 9)))
    wrong = rng.random(len(words)) < 0.2
    words = [mistyped(str(w), rng) if bad else str(w) for w, bad in zip(words, wrong, strict=True)]
    return " ".join(words[i] for i in rng.permutation(len(words)))


rng = np.random.default_rng(SEED)
shares = np.linspace(2, 1, len(INTENTS)) / np.linspace(2, 1, len(INTENTS)).sum()
truth = rng.choice(list(INTENTS), size=N_TEXTS, p=shares)
texts = [message(intent, rng) for intent in truth]
print(f"{len(texts)} messages, such as {texts[0]!r}.")
print(f"The truth: {len(np.unique(truth))} intents.")


# %%
# Models
# ------
def reduced(counts) -> np.ndarray:
    """Sparse features as a few dimensions, each row of length 1."""
    return normalize(TruncatedSVD(N_DIMENSIONS, random_state=SEED).fit_transform(counts))


def word_lengths(text: str) -> np.ndarray:
    """How many words have 1, 2, …, 12 letters."""
    return np.bincount([min(len(word), 12) for word in text.split()], minlength=13)[1:]


models = {
    "word counts": CountVectorizer(stop_words="english"),
    "TF-IDF": TfidfVectorizer(stop_words="english", min_df=2, sublinear_tf=True),
    "hashed words": HashingVectorizer(n_features=128, stop_words="english"),
    "pairs of words": TfidfVectorizer(ngram_range=(2, 2), min_df=2),
    "characters": TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4), min_df=2),
}
spaces = {name: reduced(model.fit_transform(texts)) for name, model in models.items()}
spaces["word lengths"] = normalize(np.array([word_lengths(text) for text in texts], dtype=float))

# %%
# Clusterings
# -----------
# Every model with every number of clusters.
partitions, made_in = {}, {}
for space, Z in spaces.items():
    for k in NUMBERS:
        name = f"{space}, K = {k}"
        partitions[name] = ws.KMeans(k, n_init=3, random_state=SEED).fit_predict(Z)
        made_in[name] = space
runs = ws.Runs.from_parts(spaces, partitions, pairs=made_in)
print(f"{len(partitions)} runs.")

# %%
# Our pick
# --------
# ``judge`` ranks clusterings, and with them the embeddings: a good embedding gives high scores to
# clusterings that others find too. In the shell: ``wellsep rank runs/``.
judgement = ws.judge(runs, random_state=SEED)
print(judgement)
embeddings = judgement.embeddings
print(embeddings.explain())

# %%
# What simple rules pick
# ----------------------
names = list(spaces)
ari = {name: ws.ari_score(truth, labels) for name, labels in partitions.items()}
mean_ari = {s: float(np.mean([ari[n] for n in partitions if made_in[n] == s])) for s in spaces}


def best_own_score(index: str) -> str:
    """The model whose own clusterings score best in its own embedding."""
    values = {
        name: ws.score_partitions(spaces[made_in[name]], {name: labels}, [index]).values[0, 0]
        for name, labels in partitions.items()
    }
    return made_in[max(values, key=values.__getitem__)]


by_ari = sorted(names, key=mean_ari.__getitem__)
picks = {
    "our pick": embeddings.best,
    "best silhouette in its own embedding": best_own_score("silhouette"),
    "best Calinski-Harabasz, likewise": best_own_score("calinski_harabasz"),
    "most directions used (RankMe)": embeddings.embeddings[int(np.argmax(embeddings.rankme))],
    "TF-IDF, the usual default": "TF-IDF",
    "median model": by_ari[len(names) // 2],
    "best model, known only with the truth": by_ari[-1],
}
print(f"\n{'':<42}{'model':<20}{'mean ARI with truth':>20}")
for rule, name in picks.items():
    print(f"{rule:<42}{name:<20}{mean_ari[name]:>20.3f}")

# %%
# Who won
# -------
# Among the models the silhouette won with characters, because our rule asks which embedding ranks
# the clusterings as their vote does, and TF-IDF does so best.
ours = mean_ari[embeddings.best]
ahead = [rule for rule, name in picks.items() if mean_ari[name] > ours and "truth" not in rule]
print(f"{'; '.join(ahead) or 'No simple rule'} did better than our pick.")

# %%
# All models, and the best clustering
# -----------------------------------
# Our pick is the second best model, and our clustering is the best of all. The verdict above is
# careful, because the consensus and ACE disagree: it asks you to look at both clusterings.
print(f"\n{'model':<20}{'our rank':>10}{'mean ARI':>10}")
for name in sorted(names, key=lambda name: embeddings.rank[embeddings.embeddings.index(name)]):
    place = embeddings.rank[embeddings.embeddings.index(name)]
    print(f"{name:<20}{place:>10}{mean_ari[name]:>10.3f}")
best = judgement.ranking.best
top = max(ari, key=ari.__getitem__)
print(f"Our clustering: {best}, ARI {ari[best]:.3f}. The best of all: {top}, ARI {ari[top]:.3f}.")

# %%
# Pictures
# --------
# How much the clusterings agree with each other, and embeddings coloured by the true intents.
if importlib.util.find_spec("matplotlib"):
    import matplotlib.pyplot as plt

    from wellsep.plot import RunAgreementDisplay, SpacesDisplay

    RunAgreementDisplay.from_result(judgement)
    SpacesDisplay.from_result(judgement, runs, labels=truth)
    plt.show()
else:
    print("No pictures: matplotlib is not installed. Run pip install matplotlib.")
