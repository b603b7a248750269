"""The demonstration: the main job on data that scikit-learn ships."""

from __future__ import annotations

from wellsep.cli.output import JsonOption


def demo(as_json: JsonOption = False) -> None:
    """Score clusterings of the handwritten digits, from three to sixteen clusters.

    \b
    Examples:
      wellsep demo
    """
    from sklearn.cluster import KMeans

    import wellsep as ws
    from wellsep.cli.output import print_json, print_line
    from wellsep.cli.scoring import print_scores, scores_record

    digits = ws.load_dataset("digits")
    runs = {
        f"k-means, K={k}": KMeans(k, n_init=2, random_state=0).fit_predict(digits.X)
        for k in (3, 6, 8, 10, 12, 16)
    }
    scores = ws.score_partitions(digits.X, runs)
    if as_json:
        print_json(scores_record(scores))
        return
    print_line(f"{len(digits.X)} handwritten digits, {len(runs)} clusterings, none told the truth:")
    print_scores(scores)
