"""The words that results and help use, each with a plain definition: the one glossary."""

from __future__ import annotations

WORDS = {
    "embedding": "The coordinates of the objects in which clusterings are scored, such as PCA "
    "scores or the output of a network. Also called a space.",
    "space": "The same as an embedding.",
    "clustering": "One label for each object. Also called a partition.",
    "partition": "The same as a clustering.",
    "run": "A clustering, the embedding it was made in, or both, under one name.",
    "index": "A validity index: a formula that scores a clustering without true labels.",
    "score": "The value of an index, turned so that larger is better. A dash stands for a score "
    "that is undefined; such a clustering is ranked last.",
    "ace": "A judge that groups embeddings that rank alike and averages the scores of the best "
    "group. It decides where it is asked for.",
    "own_space": "Own-space score: the score of a clustering in the embedding it was made in.",
    "mean_all": "Average score of a clustering over all embeddings.",
    "input": "Score of a clustering in the data that the runs were made from.",
    "consensus": "Average agreement of a clustering with those that have about as many clusters, "
    "by the adjusted Rand index, times 1 + 2 index.",
    "relative_agreement": "In a vote: the average agreement with clusterings that have about as "
    "many clusters, as a share of the largest.",
    "support": "Of a cluster: how far the better half of the other runs find it again, as the mean "
    "of its best Jaccard similarity with one of their clusters.",
    "contender": "A run that comes first in some half-sample.",
    "dip test": "A test whether the objects of an embedding have more than one peak. An embedding "
    "with one peak only is not admitted.",
    "half-sample": "Half of the objects, drawn at random. Ranking many of them shows how certain "
    "a rank is.",
    "rank_low": "Best rank in 90 % of the half-samples.",
    "rank_high": "Worst rank in 90 % of the half-samples.",
    "first_in": "Share of the half-samples in which the clustering comes first. It says how stable "
    "the pick is, and is no probability.",
    "coverage": "Share of the objects that the clustering puts into clusters; the others are "
    "noise.",
    "borderline": "An object that lies about as near to another cluster as to its own.",
    "isolated": "An object whose neighbours do not lie between it and the middle of its cluster.",
    "rival": "The other cluster that is nearest to an object.",
    "margin": "Distance of an object to the plane halfway between its cluster and the rival; "
    "negative on the wrong side.",
    "width": "Silhouette width of an object, from -1 to 1. Below 0 it is nearer to another "
    "cluster.",
    "layout": "A drawing of the objects in two dimensions, such as UMAP. It is not judged.",
}
