"""
A deep sweep with Optuna: what should the study maximise?
=========================================================

Optuna searches settings and needs one number per trial to maximise. Deep clustering has no
validation labels, so many studies return the silhouette of the trial in its own embedding. But
networks can learn an embedding in which their own clusters look good. The study then finds the
settings that do so best.

Here the study returns the silhouette all the same, and each trial leaves its embedding and labels.
Afterwards `wellsep.judge` ranks the trials in all embeddings, not each in its own. The same runs
go to MLflow and come back from there. The data are handwritten digits. The networks are small:
k-means on the embedding of an autoencoder, and DEC.

We print the truth, our pick, what simple rules pick, and how near each pick is to the truth. It
needs PyTorch and Optuna, and uses MLflow where it is installed: ``pip install
".[deep,optuna,mlflow]"``.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import tempfile

import numpy as np
import optuna

import wellsep as ws
from wellsep.adapters import attach_run, log_run, runs_from_mlflow, runs_from_optuna
from wellsep.deep import DEC, DeepKMeans

SMALL = bool(os.environ.get("WELLSEP_SMALL_EXAMPLES"))  # a quick run, to see that it runs
N_OBJECTS = 150 if SMALL else 600
N_TRIALS = 4 if SMALL else 24
SEED = 0

# %%
# Data
# ----
X, truth = ws.load_dataset("digits", return_X_y=True)
X, truth = X[:N_OBJECTS] / 16, truth[:N_OBJECTS]
print(f"{len(X)} images. The truth: {len(np.unique(truth))} digits.")

# %%
# The study
# ---------
# `attach_run` saves embedding and labels of a trial, so that `judge` can read the study.
# ``wellsep.deep.sweep(..., n_trials=20)`` does all of this in one call.
folder = tempfile.TemporaryDirectory()
METHODS = {"DEC": DEC, "deep k-means": DeepKMeans}


def objective(trial: optuna.Trial) -> float:
    """Train one network; return the silhouette in its own embedding."""
    model = METHODS[trial.suggest_categorical("method", list(METHODS))](
        trial.suggest_int("n_clusters", 5, 20),
        n_latent=trial.suggest_int("n_latent", 2, 16),
        learning_rate=trial.suggest_float("learning_rate", 3e-4, 1e-2, log=True),
        hidden=(64,),
        pretrain_epochs=1 if SMALL else 6,
        epochs=1 if SMALL else 4,
        device="cpu",
        random_state=SEED,
    ).fit(X)
    embedding, labels = model.transform(X), model.labels_
    attach_run(trial, embedding, labels, folder=folder.name)
    if len(np.unique(labels)) < 2:
        return -1.0
    return float(ws.silhouette_score(embedding, labels))


optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(
    direction="maximize", sampler=optuna.samplers.TPESampler(seed=SEED), study_name="digits"
)
study.optimize(objective, n_trials=N_TRIALS)
print(f"{len(study.trials)} trials. Optuna's best: trial-{study.best_trial.number}.")

# %%
# Our pick
# --------
# A study goes into ``judge`` as it is. In the shell: ``wellsep rank sqlite:///study.db``.
judgement = ws.judge(study, random_state=SEED)
print(judgement)

# %%
# The same runs in MLflow
# -----------------------
# `log_run` writes a run, `runs_from_mlflow` reads all of an experiment. The answer is the same.
runs = runs_from_optuna(study)
if all(importlib.util.find_spec(package) for package in ("mlflow", "sqlalchemy", "alembic")):
    logging.getLogger("alembic").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory() as store:
        for trial in study.trials:
            name, params = f"trial-{trial.number}", trial.params
            Z, labels = runs.spaces[name], runs.partitions[name]
            log_run(Z, labels, tracking_uri=store, name=name, params=params)
        logged = runs_from_mlflow(store)
        again = ws.judge(logged, n_draws=0, details=False, random_state=SEED)
    print(f"MLflow holds {len(logged.names)} runs; best of them is {again.ranking.best}.")
else:
    print("MLflow is not installed, so this part is left out. Run pip install mlflow-skinny.")

# %%
# What simple rules pick
# ----------------------
names = list(runs.partitions)
clusters = {name: len(np.unique(labels)) for name, labels in runs.partitions.items()}
ari = {name: ws.ari_score(truth, labels) for name, labels in runs.partitions.items()}


def best(index: str, space: np.ndarray | None = None) -> str:
    """The trial with the best score in one space, or in its own embedding."""
    values = []
    for name, labels in runs.partitions.items():
        Z = runs.spaces[name] if space is None else space
        values.append(ws.score_partitions(Z, {name: labels}, [index]).values[0, 0])
    return names[int(np.nanargmax(values))]


by_ari = sorted(names, key=ari.__getitem__)
picks = {
    "our pick": judgement.ranking.best,
    "Optuna: best silhouette, own embedding": f"trial-{study.best_trial.number}",
    "best Calinski-Harabasz, likewise": best("calinski_harabasz"),
    "best silhouette in the pixels": best("silhouette", X),
    "last trial of the study": names[-1],
    "most clusters": max(names, key=clusters.__getitem__),
    "median run": by_ari[len(names) // 2],
    "best run, known only with the truth": by_ari[-1],
}
print(f"\n{'':<42}{'run':<12}{'method':<14}{'K':>4}{'ARI with truth':>16}")
for rule, name in picks.items():
    method = runs.params[name]["method"]
    print(f"{rule:<42}{name:<12}{method:<14}{clusters[name]:>4}{ari[name]:>16.3f}")

# %%
# Who won
# -------
# The silhouette in the pixels won, because no training can shape the pixels to suit a clustering.
# Our pick is better than Optuna's best trial and worse than the median run; the verdict calls it a
# tie. The silhouette led the search, so later trials are near settings that it favours;
# ``RandomSampler`` would try all numbers of clusters alike.
ours = ari[judgement.ranking.best]
ahead = [rule for rule, name in picks.items() if ari[name] > ours and "truth" not in rule]
print(f"{'; '.join(ahead) or 'No simple rule'} did better than our pick.")

# %%
# Pictures
# --------
# What the study maximised against the truth, trial by trial; and how much the trials agree.
if importlib.util.find_spec("matplotlib"):
    import matplotlib.pyplot as plt

    from wellsep.plot import RunAgreementDisplay

    fig, ax = plt.subplots(layout="constrained")
    values = [trial.value for trial in study.trials]
    ax.scatter(values, [ari[f"trial-{trial.number}"] for trial in study.trials], s=20)
    for rule, marker in (("our pick", "D"), ("Optuna: best silhouette, own embedding", "s")):
        name = picks[rule]
        place = (values[int(name.removeprefix("trial-"))], ari[name])
        ax.scatter(*place, s=90, marker=marker, facecolor="none", edgecolor="C3", label=rule)
    fig.legend(loc="outside upper left", ncols=2, frameon=False)
    ax.set(xlabel="silhouette in its own embedding (maximised)", ylabel="ARI with truth")
    RunAgreementDisplay.from_result(judgement)
    plt.show()
else:
    print("No pictures: matplotlib is not installed. Run pip install matplotlib.")
folder.cleanup()
