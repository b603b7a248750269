"""cf-means: the estimator, one fit, the search of centres, the gradient steps."""
